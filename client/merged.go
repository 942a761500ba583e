package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
)

// openersMax is how many shards of one SubscribeAll are opened at once: a round trip or two each, without a burst of a
// thousand streams.
const openersMax = 16

// SubscribeAllOptions says what to read of all shards. The zero value reads from now on.
type SubscribeAllOptions struct {
	From          Start
	QueueCapacity uint32 // as in SubscribeOptions, per shard
}

// MergedSubscription delivers the events of all shards of a stream. Order holds within a shard only. Each shard has one
// goroutine that holds one event at a time; what waits behind it waits in the receive window of the shard's stream.
type MergedSubscription struct {
	op     string
	shards []*Subscription
	items  chan mergedItem // unbuffered: an item is with its goroutine or with the caller, never between
	over   chan struct{}   // closed when all goroutines have ended

	cancel context.CancelFunc
	once   sync.Once
}

type mergedItem struct {
	event Event
	err   error
}

// SubscribeAll asks how many shards a stream has and subscribes to each. Either all succeed or the call fails, with the
// *ShardError of the first shard that failed in shard order.
func (c *Client) SubscribeAll(ctx context.Context, namespace, stream string, o SubscribeAllOptions) (*MergedSubscription, error) {
	shards, err := c.StreamShards(ctx, namespace, stream)
	if err != nil {
		return nil, err
	}
	m := &MergedSubscription{
		op:     fmt.Sprintf("subscribe to all shards of %s/%s", namespace, stream),
		shards: make([]*Subscription, shards.Count), items: make(chan mergedItem), over: make(chan struct{}),
	}
	errs := make([]error, shards.Count)
	room := make(chan struct{}, openersMax)
	var openers sync.WaitGroup
	for i := range m.shards {
		room <- struct{}{}
		openers.Go(func() {
			defer func() { <-room }()
			options := SubscribeOptions{Shard: uint32(i), From: o.From, QueueCapacity: o.QueueCapacity}
			m.shards[i], errs[i] = c.Subscribe(ctx, namespace, stream, options)
		})
	}
	openers.Wait()
	for i, err := range errs {
		if err != nil {
			m.closeShards()
			return nil, &ShardError{Shard: uint32(i), Err: err}
		}
	}
	m.run(c)
	return m, nil
}

// run starts the readers. They end with their shard, with Close, or with the client.
func (m *MergedSubscription) run(c *Client) {
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	var readers sync.WaitGroup
	for _, s := range m.shards {
		readers.Go(func() { m.forward(ctx, c, s) })
	}
	go func() {
		readers.Wait()
		close(m.over)
	}()
}

// forward hands the events of one shard over until it ends, and then its error.
func (m *MergedSubscription) forward(ctx context.Context, c *Client, s *Subscription) {
	for {
		e, err := s.Next(ctx)
		if err == io.EOF || ctx.Err() != nil {
			return
		}
		item := mergedItem{event: e}
		if err != nil {
			item = mergedItem{err: &ShardError{Shard: s.shard, Err: err}}
		}
		select {
		case m.items <- item:
		case <-ctx.Done():
			return
		case <-c.closing.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Shards is how many shards are read.
func (m *MergedSubscription) Shards() int { return len(m.shards) }

// Next waits for the next event of any shard. A *ShardError is the end of one shard; the others go on with the next call.
// io.EOF says that all shards have ended. The error of ctx loses no event. After Close it returns ErrClosed.
func (m *MergedSubscription) Next(ctx context.Context) (Event, error) {
	select {
	case item := <-m.items:
		return item.event, item.err
	case <-ctx.Done():
		return Event{}, fmt.Errorf("%s: wait for an event: %w", m.op, ctx.Err())
	case <-m.over:
	}
	for _, s := range m.shards {
		if s.closed.Load() || s.client.isClosed() {
			return Event{}, fmt.Errorf("%s: the subscription is %w", m.op, ErrClosed)
		}
	}
	return Event{}, io.EOF
}

// Events iterates over the events of all shards until all have ended, ctx ends, or the subscription is closed. The end of
// one shard is one pair with a *ShardError, after which the iteration goes on.
func (m *MergedSubscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := m.Next(ctx)
			if err == io.EOF {
				return
			}
			var shard *ShardError
			if !yield(e, err) || err != nil && !errors.As(err, &shard) {
				return
			}
		}
	}
}

// Close ends all subscriptions and returns when nothing of them runs any more. Closing again does nothing.
func (m *MergedSubscription) Close() {
	m.once.Do(func() {
		m.cancel()
		m.closeShards()
		<-m.over
	})
}

func (m *MergedSubscription) closeShards() {
	for _, s := range m.shards {
		if s != nil {
			s.Close()
		}
	}
}
