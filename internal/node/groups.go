package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// Groups returns the names of the consumer groups of a stream that this node hosts, the first most of them in their order. The error says
// why not all of its shards told theirs; it is nil, with no names, for a stream that is not known here.
func (n *Node) Groups(ctx context.Context, stream route.Name, most int) ([]string, error) {
	e := n.Table.Get(stream)
	if e == nil {
		return nil, nil
	}
	type told struct {
		names   []string
		refusal *wire.Refusal
	}
	shards := e.Shards()
	answers := make(chan told, len(shards))
	for i, t := range shards {
		if t.State != route.Local {
			return nil, fmt.Errorf("list groups of %s: shard %d is not served here right now", stream, i)
		}
		m := &shardactor.GroupNames{Max: most, Done: func(names []string, f *wire.Refusal) { answers <- told{names, f} }}
		if err := t.Shard.Ref.TrySend(m, shardactor.Size(m)); err != nil {
			return nil, fmt.Errorf("list groups of %s: shard %d: %w", stream, i, err)
		}
	}
	var all []string
	for range shards {
		select {
		case a := <-answers:
			if a.refusal != nil {
				return nil, fmt.Errorf("list groups of %s: %s", stream, a.refusal.Message)
			}
			all = append(all, a.names...)
		case <-ctx.Done():
			return nil, fmt.Errorf("list groups of %s: %w", stream, ctx.Err())
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), most)], nil
}
