package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/wire/id"
)

func (a *app) groupCommand() *cobra.Command {
	c := group("group", "Work on a durable stream as a queue: poll, settle, watch the lag, run a command per record",
		a.groupLsCommand(), a.groupWorkCommand(), a.groupPollCommand(), a.groupAckCommand(), a.groupNackCommand(), a.groupInfoCommand(), a.groupLagCommand(),
		a.groupDeadLettersCommand(), a.groupRedriveCommand(), a.groupDiscardCommand(), a.groupSeekCommand(), a.groupRmCommand())
	c.Long = `A group of workers shares the records of a durable stream: each record is claimed by one of them, until it is acked, given
back, or given up. A group has a position of its own on each shard, so several groups of a stream do not see each other.

The first poll creates a group, at the oldest record there is; seek --if-new chooses another place. ls asks the control
plane for the names; everything else asks the brokers. Any text of 1 to 255 bytes is a name, so a typing error is a group of its
own; one with / * or : cannot be named alone in a permission.

An OFFSET is a number, or SHARD/OFFSET as poll and dead-letters show it. A number alone needs --shard where the stream has
several shards.`
	return c
}

// groupName is a group of a stream.
type groupName struct {
	Namespace string `json:"namespace"`
	Stream    string `json:"stream"`
	Group     string `json:"group"`
}

func (g groupName) text() string {
	return fmt.Sprintf("group %q of %s/%s", g.Group, g.Namespace, g.Stream)
}

// withGroup connects on behalf of a command whose first arguments are STREAM and GROUP.
func (a *app) withGroup(cmd *cobra.Command, args []string, work func(ctx context.Context, b broker, g groupName) error) error {
	return a.withBroker(cmd.Context(), func(b broker) error {
		return work(cmd.Context(), b, groupName{Namespace: b.namespace, Stream: args[0], Group: args[1]})
	})
}

// shardFlag adds --shard.
func shardFlag(cmd *cobra.Command, target *string, what string) {
	cmd.Flags().StringVar(target, "shard", "all", what)
	fixedValues(cmd, "shard", "all")
}

// everyShard is for --shard of commands that do the same to each.
const everyShard = "one shard by its number, or all"

// shardsOf are the shards that --shard names.
func shardsOf(ctx context.Context, b broker, stream, flag string) ([]uint32, error) {
	shard, all, err := parseShard(flag)
	if err != nil || !all {
		return []uint32{shard}, err
	}
	shards, err := b.StreamShards(ctx, b.namespace, stream)
	if err != nil {
		return nil, err
	}
	numbers := make([]uint32, shards.Count)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	return numbers, nil
}

// place is a record of a stream.
type place struct {
	Shard  uint32    `json:"shard"`
	Offset id.Offset `json:"offset"`
	bare   bool      // no shard was named
}

func (p place) text() string { return fmt.Sprintf("%d/%d", p.Shard, uint64(p.Offset)) }

// parsePlaces reads OFFSET and SHARD/OFFSET; the former take what --shard says.
func parsePlaces(texts []string, flag string) ([]place, error) {
	of, all, err := parseShard(flag)
	if err != nil {
		return nil, err
	}
	places := make([]place, len(texts))
	for i, text := range texts {
		number, offset, both := strings.Cut(text, "/")
		if !both {
			number, offset = strconv.FormatUint(uint64(of), 10), text
		}
		shard, err := strconv.ParseUint(number, 10, 32)
		at, wrong := strconv.ParseUint(offset, 10, 64)
		switch {
		case err != nil || wrong != nil:
			return nil, usagef("%q is no offset; use a number, or SHARD/OFFSET", text)
		case both && !all && uint32(shard) != of:
			return nil, usagef("%s is given with --shard %d; use one of them", text, of)
		}
		places[i] = place{Shard: uint32(shard), Offset: id.Offset(at), bare: all && !both}
	}
	return places, nil
}

// unambiguous refuses places without a shard on a stream that has several: settling the wrong record cannot be undone.
func unambiguous(ctx context.Context, b broker, stream string, places []place) error {
	for _, p := range places {
		if !p.bare {
			continue
		}
		shards, err := b.StreamShards(ctx, b.namespace, stream)
		if err == nil && shards.Count > 1 {
			err = usagef("stream %s/%s has %d shards, each with offsets of its own; use SHARD/OFFSET, or --shard", b.namespace, stream, shards.Count)
		}
		return err
	}
	return nil
}

// eachPlace does something to one record after the other, and says so. The first failure ends it; the error says how many were done.
func (a *app) eachPlace(ctx context.Context, b broker, g groupName, places []place, done string, do func(p place) error) error {
	if err := unambiguous(ctx, b, g.Stream, places); err != nil {
		return err
	}
	n := 0
	stop := a.progress(func() string { return fmt.Sprintf("settling records of %s", g.text()) })
	defer stop()
	for _, p := range places {
		if err := do(p); err != nil {
			if n > 0 {
				err = fmt.Errorf("%w (%s %s before)", err, plural(n, "record"), done)
			}
			return err
		}
		n++
		stop()
		if err := a.result(settled{groupName: g, place: p, Status: done}, "%s %s of %s", done, p.text(), g.text()); err != nil {
			return err
		}
	}
	return nil
}

// settled is what was done to a record, in JSON.
type settled struct {
	groupName
	place
	Status string `json:"status"`
}
