package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
)

// seekFlags are the flags of group seek.
type seekFlags struct {
	shard, to  string
	ifNew, yes bool
}

func (a *app) groupSeekCommand() *cobra.Command {
	var f seekFlags
	cmd := &cobra.Command{
		Use:   "seek STREAM GROUP --to POSITION",
		Short: "Move a group, also backwards",
		Long: `Move a group, after asking: the next poll begins at the position. What is between comes again, or never. What the group has
handed out is void: settling it is refused. Dead letters stay.

With --if-new a group that has a position, or has handed something out, is left where it is, and nobody is asked: to choose
where a new one begins.`,
		Example: `  felixctl group seek orders billing --to latest --if-new
  felixctl group seek orders billing --to -1h --yes
  felixctl group seek orders billing --shard 2 --to 1200`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			to, err := parseStart("--to", f.to, time.Now())
			if f.to == "" {
				err = usagef("--to is missing; use latest, %s", startHelp)
			}
			if err != nil {
				return err
			}
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error { return a.seek(ctx, b, g, f, to) })
		}),
	}
	flags := cmd.Flags()
	shardFlag(cmd, &f.shard, everyShard)
	flags.StringVar(&f.to, "to", "", "where to: latest, "+startHelp)
	flags.BoolVar(&f.ifNew, "if-new", false, "only if the group is new")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fixedValues(cmd, "to", "latest", "earliest")
	return cmd
}

// movedShard is where a group stands on a shard after seek.
type movedShard struct {
	groupName
	Shard  uint32 `json:"shard"`
	Offset uint64 `json:"offset"`
	Moved  bool   `json:"moved"`
}

func (a *app) seek(ctx context.Context, b broker, g groupName, f seekFlags, to start) error {
	shards, err := shardsOf(ctx, b, g.Stream, f.shard)
	switch {
	case err != nil:
		return err
	case len(shards) > 1 && !to.timed && !to.earliest && !to.latest:
		return usagef("stream %s/%s has %d shards, each with offsets of its own; name one --shard", g.Namespace, g.Stream, len(shards))
	}
	if err := a.confirm(f.yes || f.ifNew, fmt.Sprintf("move %s to %s", g.text(), f.to)); err != nil {
		return err
	}
	stop := a.progress(func() string { return "moving " + g.text() })
	defer stop()
	for i, shard := range shards {
		at, err := b.GroupSeek(ctx, g.Namespace, g.Stream, shard, g.Group, to.Start, client.GroupSeekOptions{IfNew: f.ifNew})
		if err != nil {
			return ofSome(err, i, "moved on")
		}
		verb := "moved to"
		if !at.Moved {
			verb = "left at"
		}
		if err := a.result(movedShard{g, shard, uint64(at.Offset), at.Moved}, "shard %d: %s %d", shard, verb, uint64(at.Offset)); err != nil {
			return err
		}
	}
	return nil
}

// ofSome adds to an error on how many shards something was done before.
func ofSome(err error, n int, done string) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("%w (%s %s before)", err, done, plural(n, "shard"))
}

func (a *app) groupRmCommand() *cobra.Command {
	var shard string
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm STREAM GROUP",
		Short: "Remove a group",
		Long: `Remove a group, after asking: its position, its dead letters, and what it has handed out. The records stay in the stream. Who
polls it later begins at the oldest. A group that is not there ends with exit code 5.`,
		Example: `  felixctl group rm orders billing
  felixctl group rm orders billing --yes`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				if err := a.confirm(yes, "remove "+g.text()); err != nil {
					return err
				}
				return a.removeGroup(ctx, b, g, shard)
			})
		}),
	}
	shardFlag(cmd, &shard, everyShard)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) removeGroup(ctx context.Context, b broker, g groupName, flag string) error {
	stop := a.progress(func() string { return "removing " + g.text() })
	defer stop()
	shards, err := shardsOf(ctx, b, g.Stream, flag)
	if err != nil {
		return err
	}
	removed := 0
	for i, shard := range shards {
		existed, err := b.GroupDelete(ctx, g.Namespace, g.Stream, shard, g.Group)
		if err != nil {
			return ofSome(err, i, "asked")
		}
		if existed {
			removed++
		}
	}
	stop()
	if removed == 0 {
		return &absentError{g.text()}
	}
	return a.result(struct {
		groupName
		Status string `json:"status"`
		Shards int    `json:"shards"` // that had it
	}{g, "removed", removed}, "removed %s from %s", g.text(), plural(removed, "shard"))
}
