package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// shardOffsets is what a shard of a durable stream holds.
type shardOffsets struct {
	Shard  uint32 `json:"shard"`
	Oldest uint64 `json:"oldest"` // first offset kept
	Tail   uint64 `json:"tail"`   // that of the next record
}

func (a *app) streamOffsetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "offsets NAME",
		Short: "Show which offsets each shard of a durable stream holds",
		Long: `Ask the broker for the oldest offset that each shard of a durable stream keeps, and for its tail, the
offset that its next record gets: what --from takes, and what --if-offset takes.`,
		Example: `  felixctl stream offsets orders`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return a.withBroker(cmd.Context(), func(b broker) error { return a.offsets(cmd.Context(), b, args[0]) })
		}),
	}
}

func (a *app) offsets(ctx context.Context, b broker, stream string) error {
	stop := a.progress(func() string { return "asking for the offsets of " + b.namespace + "/" + stream })
	all, err := offsetsOf(ctx, b, stream)
	stop()
	if err != nil {
		return err
	}
	if a.asJSON() {
		return writeJSON(a.sys.stdout, struct {
			Namespace string         `json:"namespace"`
			Stream    string         `json:"stream"`
			Shards    []shardOffsets `json:"shards"`
		}{b.namespace, stream, all})
	}
	rows := make([][]string, len(all))
	for i, s := range all {
		rows[i] = []string{fmt.Sprint(s.Shard), fmt.Sprint(s.Oldest), fmt.Sprint(s.Tail)}
	}
	return a.table([]string{"SHARD", "OLDEST", "TAIL"}, rows)
}

func offsetsOf(ctx context.Context, b broker, stream string) ([]shardOffsets, error) {
	shards, err := b.StreamShards(ctx, b.namespace, stream)
	if err != nil {
		return nil, err
	}
	all := make([]shardOffsets, shards.Count)
	for i := range all {
		oldest, tail, err := b.Bounds(ctx, b.namespace, stream, uint32(i))
		if err != nil {
			return nil, err
		}
		all[i] = shardOffsets{Shard: uint32(i), Oldest: uint64(oldest), Tail: uint64(tail)}
	}
	return all, nil
}
