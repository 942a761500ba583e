package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync/atomic"

	"github.com/felixd/felixd/wire/id"
)

// MergedSubscription delivers the events of all shards of a stream. Order holds within a shard only. Each shard has one
// goroutine that holds one batch at a time; what waits behind it waits where the policy says. Its methods may be called
// from several goroutines.
type MergedSubscription struct {
	op     string
	shards []*Subscription
	merger *merger

	positions []position // by shard

	closed atomic.Bool

	turn  chan struct{} // the right to take events; the field below belongs to its holder
	batch batch
}

// Shards is how many shards are read.
func (m *MergedSubscription) Shards() int { return len(m.shards) }

// Positions are the offsets of the first event of each shard that was not returned yet, for SubscribeAllOptions.Positions.
// A shard without offsets is not in it.
func (m *MergedSubscription) Positions() map[uint32]id.Offset {
	all := make(map[uint32]id.Offset)
	for i := range m.positions {
		if offset, ok := m.positions[i].get(); ok {
			all[uint32(i)] = offset
		}
	}
	return all
}

// Dropped is how many events QueueDropNew has dropped, of all shards.
func (m *MergedSubscription) Dropped() uint64 {
	var n uint64
	for _, s := range m.shards {
		n += s.Dropped()
	}
	return n
}

// NextItem waits for the next event of any shard, or for news of one. io.EOF says that all shards have ended. The error of
// ctx loses nothing. After Close it returns ErrClosed.
func (m *MergedSubscription) NextItem(ctx context.Context) (Item, error) {
	if ctx.Err() != nil {
		return Item{}, m.interrupted(ctx)
	}
	select {
	case <-m.turn:
	case <-ctx.Done():
		return Item{}, m.interrupted(ctx)
	}
	defer func() { m.turn <- struct{}{} }()
	for !m.closed.Load() {
		if e, ok := m.batch.pop(); ok {
			m.positions[e.Shard].after(&e)
			return Item{Shard: e.Shard, Event: e}, nil
		}
		select {
		case p := <-m.merger.pieces:
			if p.kind != ItemEvent {
				return Item{Kind: p.kind, Shard: p.shard, Err: p.err, Exact: p.exact}, nil
			}
			m.batch = p.batch
		case <-ctx.Done():
			return Item{}, m.interrupted(ctx)
		case <-m.merger.over:
			if m.merger.ctx.Err() == nil {
				return Item{}, io.EOF
			}
			return Item{}, m.closedError()
		}
	}
	return Item{}, m.closedError()
}

func (m *MergedSubscription) interrupted(ctx context.Context) error {
	return fmt.Errorf("%s: wait for an event: %w", m.op, ctx.Err())
}

func (m *MergedSubscription) closedError() error {
	return fmt.Errorf("%s: the subscription is %w", m.op, ErrClosed)
}

// Next is NextItem for those who want events only: losses that the client takes care of are passed over (see Event.Gap),
// and a shard that ended with an error is a *ShardError, after which the others go on with the next call.
func (m *MergedSubscription) Next(ctx context.Context) (Event, error) {
	for {
		item, err := m.NextItem(ctx)
		switch {
		case err != nil:
			return Event{}, err
		case item.Kind == ItemEvent:
			return item.Event, nil
		case item.Kind == ItemShardEnded && item.Err != nil:
			return Event{}, &ShardError{Shard: item.Shard, Err: item.Err}
		}
	}
}

// Events iterates over the events of all shards until all have ended, ctx ends, or the subscription is closed. The end of
// one shard is one pair with a *ShardError, after which the iteration goes on.
func (m *MergedSubscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return eachUntilEnd(func() (Event, error) { return m.Next(ctx) })
}

// Close ends all subscriptions and returns when nothing of them runs any more. Closing again does nothing.
func (m *MergedSubscription) Close() {
	if m.closed.Swap(true) {
		return
	}
	m.merger.cancel()
	for _, s := range m.shards {
		s.Close()
	}
	<-m.merger.over
}
