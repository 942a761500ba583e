package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
)

// groupShard is how far a group is on a shard.
type groupShard struct {
	Shard       uint32  `json:"shard"`
	Committed   *uint64 `json:"committed,omitempty"` // all below is finished; absent: no position yet
	Tail        uint64  `json:"tail"`                // the offset that the next record gets
	Lag         uint64  `json:"lag"`                 // see unfinished
	InFlight    uint64  `json:"in_flight"`
	Owed        uint64  `json:"owed"`
	DeadLetters uint64  `json:"dead_letters"`
}

// groupFacts are those of all shards, and their sums.
type groupFacts struct {
	groupName
	Lag         uint64       `json:"lag"`
	InFlight    uint64       `json:"in_flight"`
	Owed        uint64       `json:"owed"`
	DeadLetters uint64       `json:"dead_letters"`
	Shards      []groupShard `json:"shards"`
}

func (a *app) groupInfoCommand() *cobra.Command {
	var shard string
	cmd := &cobra.Command{
		Use:   "info STREAM GROUP",
		Short: "Show how far a group is on each shard",
		Long: `Show how far a group is: COMMITTED is the offset below which everything is finished, TAIL the one that the next record gets, LAG what
is between, or what is claimed and owed if that is more, IN FLIGHT what is claimed now, OWED what is to be handed out again (after a
failure or a redrive, pauses included), DEAD what was given up.

A group without a position has finished nothing yet, or nobody has ever polled it: that looks the same, and is a success.`,
		Example: `  felixctl group info orders billing
  felixctl group info orders billing --shard 2 --json`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				facts, err := a.describe(ctx, b, g, shard)
				if err != nil {
					return err
				}
				return a.printFacts(facts)
			})
		}),
	}
	shardFlag(cmd, &shard, everyShard)
	return cmd
}

func (a *app) groupLagCommand() *cobra.Command {
	var shard string
	cmd := &cobra.Command{
		Use:   "lag STREAM GROUP",
		Short: "Print how many records a group has not finished",
		Long: `Print how many records a group has not finished, of all shards together: a number alone, for people and scripts alike, or with
--json an object that has each shard. Of a shard it is how many offsets lie between what is finished and the end, where records
that are finished out of order count until those before them are; or how many records are claimed and owed, if that is more, as
after a redrive. So 0 is: all is finished, but for the dead letters.`,
		Example: `  felixctl group lag orders billing`,
		Args:    cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				facts, err := a.describe(ctx, b, g, shard)
				switch {
				case err != nil:
					return err
				case a.flags.json:
					return writeJSON(a.sys.stdout, facts)
				}
				_, err = fmt.Fprintln(a.sys.stdout, facts.Lag)
				return err
			})
		}),
	}
	shardFlag(cmd, &shard, everyShard)
	return cmd
}

// describe asks for each shard.
func (a *app) describe(ctx context.Context, b broker, g groupName, flag string) (groupFacts, error) {
	defer a.progress(func() string { return "asking about " + g.text() })()
	facts := groupFacts{groupName: g}
	shards, err := shardsOf(ctx, b, g.Stream, flag)
	if err != nil {
		return facts, err
	}
	for _, shard := range shards {
		info, err := b.GroupDescribe(ctx, g.Namespace, g.Stream, shard, g.Group)
		if err != nil {
			return facts, err
		}
		s := groupShard{
			Shard: shard, Tail: uint64(info.Tail), Lag: unfinished(info), InFlight: info.InFlight, Owed: info.Owed, DeadLetters: info.DeadLetters,
		}
		if info.HasCommitted {
			s.Committed = new(uint64(info.Committed))
		}
		facts.Shards = append(facts.Shards, s)
		facts.Lag += s.Lag
		facts.InFlight += s.InFlight
		facts.Owed += s.Owed
		facts.DeadLetters += s.DeadLetters
	}
	return facts, nil
}

// unfinished is at least how many records a group has not finished on a shard, and 0 only if there are none: dead letters that were redriven are
// below its position, where no lag has them.
func unfinished(i client.GroupInfo) uint64 { return max(i.Lag(), i.InFlight+i.Owed) }

func (a *app) printFacts(facts groupFacts) error {
	if a.asJSON() {
		return writeJSON(a.sys.stdout, facts)
	}
	rows := make([][]string, len(facts.Shards))
	for i, s := range facts.Shards {
		committed := "none"
		if s.Committed != nil {
			committed = fmt.Sprint(*s.Committed)
		}
		rows[i] = []string{fmt.Sprint(s.Shard), committed, fmt.Sprint(s.Tail), fmt.Sprint(s.Lag), fmt.Sprint(s.InFlight), fmt.Sprint(s.Owed), fmt.Sprint(s.DeadLetters)}
	}
	return a.table([]string{"SHARD", "COMMITTED", "TAIL", "LAG", "IN FLIGHT", "OWED", "DEAD"}, rows)
}
