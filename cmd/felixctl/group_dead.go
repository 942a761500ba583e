package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire/id"
)

func (a *app) groupDeadLettersCommand() *cobra.Command {
	var shard string
	var payloads bool
	cmd := &cobra.Command{
		Use:   "dead-letters STREAM GROUP",
		Short: "List what a group has given up",
		Long: `List the records that a group has given up, by shard and offset: SHARD/OFFSET lines on a terminal, an object per line elsewhere
and with --json. With --payloads each is read from the stream too; one that is not kept any more has none.`,
		Example: `  felixctl group dead-letters orders billing --payloads
  felixctl group dead-letters orders billing --shard 2 --json`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				dead, err := a.deadLetters(ctx, b, g, shard)
				for i := 0; err == nil && i < len(dead); i++ {
					err = a.printDead(ctx, b, g, dead[i], payloads)
				}
				return err
			})
		}),
	}
	shardFlag(cmd, &shard, everyShard)
	cmd.Flags().BoolVar(&payloads, "payloads", false, "print what is in them")
	return cmd
}

// deadLetters asks for those of each shard.
func (a *app) deadLetters(ctx context.Context, b broker, g groupName, flag string) ([]place, error) {
	defer a.progress(func() string { return "listing dead letters of " + g.text() })()
	shards, err := shardsOf(ctx, b, g.Stream, flag)
	if err != nil {
		return nil, err
	}
	var dead []place
	for _, shard := range shards {
		offsets, err := b.GroupDeadLetters(ctx, g.Namespace, g.Stream, shard, g.Group)
		if err != nil {
			return nil, err
		}
		for _, at := range offsets {
			dead = append(dead, place{Shard: shard, Offset: at})
		}
	}
	return dead, nil
}

// deadLine is a dead letter in JSON.
type deadLine struct {
	groupName
	place
	Timestamp     string  `json:"timestamp,omitempty"`
	Publisher     string  `json:"publisher,omitempty"`
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
	Gone          bool    `json:"gone,omitempty"` // the stream does not keep it any more
}

func (a *app) printDead(ctx context.Context, b broker, g groupName, p place, payload bool) error {
	line, text := deadLine{groupName: g, place: p}, p.text()
	if payload {
		r, found, err := recordAt(ctx, b, g.Stream, p)
		switch {
		case err != nil:
			return err
		case found:
			line.Timestamp, line.Publisher = timeText(r.Time), r.Publisher
			line.Payload, line.PayloadBase64 = blob(r.Payload).members()
			text = fmt.Sprintf("%-10s %s", text, escape(r.Payload))
		default:
			line.Gone = true
			text = fmt.Sprintf("%-10s (not kept any more)", text)
		}
	}
	return a.result(line, "%s", text)
}

// recordAt reads one record; found is false when the stream does not keep it any more.
func recordAt(ctx context.Context, b broker, stream string, p place) (r client.Record, found bool, err error) {
	page, err := b.Read(ctx, b.namespace, stream, client.ReadOptions{Shard: p.Shard, From: p.Offset, End: p.Offset + 1, MaxRecords: 1})
	switch {
	case errors.Is(err, client.ErrTooOld):
		return r, false, nil
	case err != nil || len(page.Records) == 0:
		return r, false, err
	}
	return page.Records[0], page.Records[0].Offset == p.Offset, nil
}

// deadCommand is a command that does something to dead letters, some or all.
type deadCommand struct {
	use, short, long string
	done             string
	ask              bool // before it is done to all
	do               func(ctx context.Context, b broker, g groupName, shard uint32, offset id.Offset) error
}

func (a *app) groupRedriveCommand() *cobra.Command {
	return a.deadCommand(deadCommand{
		use: "redrive", short: "Hand dead letters out again", done: "redrove",
		long: `Hand dead letters out again, as if for the first time: those named, or with --all every one.`,
		do: func(ctx context.Context, b broker, g groupName, shard uint32, offset id.Offset) error {
			return b.GroupRedrive(ctx, g.Namespace, g.Stream, shard, g.Group, offset)
		},
	})
}

func (a *app) groupDiscardCommand() *cobra.Command {
	return a.deadCommand(deadCommand{
		use: "discard", short: "Forget dead letters", done: "discarded", ask: true,
		long: `Forget dead letters: those named, or with --all every one, after asking. The records stay in the stream. One that was redriven is
not handed out any more. What the group has not given up on is left as it is, and that is a success too: see dead-letters for what
is listed.`,
		do: func(ctx context.Context, b broker, g groupName, shard uint32, offset id.Offset) error {
			return b.GroupDiscard(ctx, g.Namespace, g.Stream, shard, g.Group, offset)
		},
	})
}

func (a *app) deadCommand(c deadCommand) *cobra.Command {
	var shard string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   c.use + " STREAM GROUP {OFFSET... | --all}",
		Short: c.short, Long: c.long,
		Example: "  felixctl group " + c.use + " orders billing 2/1041 2/1077\n  felixctl group " + c.use + " orders billing --all",
		Args:    cobra.MinimumNArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			places, err := parsePlaces(args[2:], shard)
			switch {
			case err != nil:
				return err
			case all == (len(places) > 0):
				return usagef("give offsets, or --all")
			}
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				if all {
					if places, err = a.deadLetters(ctx, b, g, shard); err != nil || len(places) == 0 {
						return err
					}
					if err := a.confirm(yes || !c.ask, fmt.Sprintf("%s %s of %s", c.use, plural(len(places), "dead letter"), g.text())); err != nil {
						return err
					}
				}
				return a.eachPlace(ctx, b, g, places, c.done, func(p place) error { return c.do(ctx, b, g, p.Shard, p.Offset) })
			})
		}),
	}
	shardFlag(cmd, &shard, offsetShard+", and with --all the one to look at")
	cmd.Flags().BoolVar(&all, "all", false, "every dead letter there is")
	if c.ask {
		cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	}
	return cmd
}
