package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
)

func (a *app) groupAckCommand() *cobra.Command {
	var shard string
	cmd := &cobra.Command{
		Use:   "ack STREAM GROUP OFFSET...",
		Short: "Finish records",
		Long: `Finish records: they are never handed out again. Any member of the group may do so, also when the claim has lapsed; a record
that is finished already is a success. One that was not handed out is refused with exit code 4.`,
		Example: `  felixctl group ack orders billing 17
  felixctl group ack orders billing 0/17 0/18 2/5`,
		Args: cobra.MinimumNArgs(3), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			places, err := parsePlaces(args[2:], shard)
			if err != nil {
				return err
			}
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				return a.eachPlace(ctx, b, g, places, "acked", func(p place) error {
					return b.GroupAck(ctx, g.Namespace, g.Stream, p.Shard, g.Group, p.Offset)
				})
			})
		}),
	}
	shardFlag(cmd, &shard, offsetShard)
	return cmd
}

// offsetShard is for --shard of commands that take offsets.
const offsetShard = "shard of the offsets that name none"

func (a *app) groupNackCommand() *cobra.Command {
	var shard string
	var delay time.Duration
	var attempts uint32
	var giveUp bool
	cmd := &cobra.Command{
		Use:   "nack STREAM GROUP OFFSET...",
		Short: "Give records back, or give them up",
		Long: `Give records back: they are handed out again, after --delay if there is one, or become dead letters when they were handed out
too often. With --attempts only that delivery is given back: if it does not stand any more nothing happens, which is exit
code 4. Without it whatever delivery stands is, which may be somebody else's by now.

With --dead-letter they are given up at once.`,
		Example: `  felixctl group nack orders billing 17 --delay 30s --attempts 1
  felixctl group nack orders billing 0/17 --dead-letter`,
		Args: cobra.MinimumNArgs(3), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			places, err := parsePlaces(args[2:], shard)
			switch {
			case err != nil:
				return err
			case delay < 0:
				return usagef("--delay is %v; use a positive one, or 0 for the broker's", delay)
			case giveUp && (delay > 0 || attempts > 0):
				return usagef("--dead-letter is given with --delay or --attempts, which are for records that come again")
			}
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				if giveUp {
					return a.eachPlace(ctx, b, g, places, "gave up", func(p place) error {
						return b.GroupDeadLetter(ctx, g.Namespace, g.Stream, p.Shard, g.Group, p.Offset)
					})
				}
				return a.eachPlace(ctx, b, g, places, "gave back", func(p place) error {
					return b.GroupNack(ctx, g.Namespace, g.Stream, p.Shard, g.Group, p.Offset, client.GroupNackOptions{Attempts: attempts, Delay: delay})
				})
			})
		}),
	}
	flags := cmd.Flags()
	shardFlag(cmd, &shard, offsetShard)
	flags.DurationVar(&delay, "delay", 0, "hand them out again after so long; 0 leaves it to the broker")
	flags.Uint32Var(&attempts, "attempts", 0, "only this delivery, as poll shows it; 0 for whichever stands")
	flags.BoolVar(&giveUp, "dead-letter", false, "give them up: they become dead letters")
	return cmd
}
