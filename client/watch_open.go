package client

import (
	"context"

	"github.com/felixd/felixd/wire"
)

// watchedShards are the shards to watch, in order.
func (c *Client) watchedShards(ctx context.Context, namespace, cache string, o *WatchOptions) ([]uint32, error) {
	if o.Shard != nil {
		return []uint32{*o.Shard}, nil
	}
	count, err := c.CacheShards(ctx, namespace, cache)
	if err != nil {
		return nil, err
	}
	if o.Key != nil {
		return []uint32{wire.RoutingModulo.Shard([]byte(*o.Key), true, count)}, nil // as every cache routes
	}
	shards := make([]uint32, count)
	for i := range shards {
		shards[i] = uint32(i)
	}
	return shards, nil
}

// openWatches opens one source for each shard, or none.
func (c *Client) openWatches(ctx context.Context, op, namespace, cache string, shards []uint32, o *WatchOptions) ([]*source, error) {
	sources := make([]*source, len(shards))
	open := func(i int) (err error) {
		sources[i], err = c.openWatch(ctx, namespace, cache, shards[i], o)
		return err
	}
	var err error
	if len(shards) == 1 {
		err = open(0)
	} else {
		err = eachShard(op, shards, open)
	}
	if err == nil {
		return sources, nil
	}
	for _, s := range sources {
		if s != nil {
			s.stop()
		}
	}
	return nil, err
}

func (c *Client) openWatch(ctx context.Context, namespace, cache string, shard uint32, o *WatchOptions) (*source, error) {
	s := newWatchSource(c, namespace, cache, shard, o)
	if c.isClosed() {
		return nil, closedError(s.op)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	var from wire.Start
	if offset, ok := o.From[shard]; ok {
		from = wire.Start{Kind: wire.StartOffset, Offset: offset}
	}
	var first *opened
	err := c.repeat(ctx, s.op, repeatable, func() (err error) {
		first, err = s.open(ctx, from)
		return err
	})
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.install(first)
	return s, nil
}
