package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/felixd/felixd/wire/id"
)

// openersMax is how many shards of one SubscribeAll are opened at once: a round trip or two each, without a burst of a
// thousand streams.
const openersMax = 16

// SubscribeAllOptions says what to read of all shards. The zero value reads from now on, and resumes.
type SubscribeAllOptions struct {
	From Start
	// Positions are where to begin in shards that were read before, instead of From: what
	// MergedSubscription.Positions returned.
	Positions map[uint32]id.Offset
	// The rest is as in SubscribeOptions, per shard.
	QueueCapacity uint32
	Policy        QueuePolicy
	ClientQueue   int
	Resume        Resume
}

// of returns the options of one shard.
func (o *SubscribeAllOptions) of(shard uint32) SubscribeOptions {
	one := SubscribeOptions{
		Shard: shard, From: o.From, QueueCapacity: o.QueueCapacity, Policy: o.Policy, ClientQueue: o.ClientQueue, Resume: o.Resume,
	}
	if offset, ok := o.Positions[shard]; ok {
		one.From = At(offset)
	}
	return one
}

// SubscribeAll asks how many shards a stream has and subscribes to each. Either all succeed or the call fails, with a
// *SubscribeAllError that names each shard that could not be reached. Shards that only open or move are tried again as the
// options allow.
func (c *Client) SubscribeAll(ctx context.Context, namespace, stream string, o SubscribeAllOptions) (*MergedSubscription, error) {
	shards, err := c.StreamShards(ctx, namespace, stream)
	if err != nil {
		return nil, err
	}
	op := fmt.Sprintf("subscribe to all shards of %s/%s", namespace, stream)
	subs, err := c.subscribeEach(ctx, op, namespace, stream, shards.Count, &o)
	if err != nil {
		return nil, err
	}
	m := &MergedSubscription{
		op: op, shards: subs, positions: make([]position, len(subs)), turn: make(chan struct{}, 1),
	}
	m.turn <- struct{}{}
	feeds := make([]shardFeed, len(subs))
	for i, s := range subs {
		m.positions[i].begin(&s.accepted)
		feeds[i] = shardFeed{shard: uint32(i), feed: s.feed}
	}
	if m.merger, err = startMerger(c, op, feeds); err != nil {
		closeAll(subs)
		return nil, err
	}
	return m, nil
}

// subscribeEach opens all shards or none.
func (c *Client) subscribeEach(ctx context.Context, op, namespace, stream string, count uint32, o *SubscribeAllOptions) ([]*Subscription, error) {
	subs := make([]*Subscription, count)
	shards := make([]uint32, count)
	for i := range shards {
		shards[i] = uint32(i)
	}
	err := eachShard(op, shards, func(i int) (err error) {
		subs[i], err = c.openSubscription(ctx, namespace, stream, o.of(shards[i]), true)
		return err
	})
	if err != nil {
		closeAll(subs)
		return nil, err
	}
	return subs, nil
}

// eachShard opens shards, up to openersMax at once. open gets the index of a shard; those that fail are a *SubscribeAllError.
func eachShard(op string, shards []uint32, open func(i int) error) error {
	errs := make([]error, len(shards))
	room := make(chan struct{}, openersMax)
	var openers sync.WaitGroup
	for i := range shards {
		room <- struct{}{}
		openers.Go(func() {
			defer func() { <-room }()
			errs[i] = open(i)
		})
	}
	openers.Wait()
	failed := &SubscribeAllError{Op: op}
	for i, err := range errs {
		if err != nil {
			failed.Shards = append(failed.Shards, &ShardError{Shard: shards[i], Err: err})
		}
	}
	if len(failed.Shards) > 0 {
		return failed
	}
	return nil
}

func closeAll(subs []*Subscription) {
	for _, s := range subs {
		if s != nil {
			s.Close()
		}
	}
}
