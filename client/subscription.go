package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Subscription delivers the events of one shard, in order. With QueueBlock it has no queue and no goroutine of its own: Next
// takes frames off the stream as they are needed. Its methods may be called from several goroutines.
type Subscription struct {
	source   *source
	queue    *backlog // nil with QueueBlock
	feed     feed     // one of the two
	accepted wire.Subscribed
	closed   atomic.Bool

	turn chan struct{} // the right to pull; a new batch comes from its holder, when there is none

	mu       sync.Mutex // of batch, held for a moment
	batch    batch
	position position
}

// feed is where the pieces of a subscription come from. One goroutine pulls at a time.
type feed interface {
	pull(ctx context.Context) (piece, error)
}

// position is an offset that may be read while events are taken: the first not delivered yet, plus one, 0 for none.
type position struct{ plusOne atomic.Uint64 }

func (p *position) after(e *Event) {
	if e.HasOffset {
		p.set(e.Offset.Add(1))
	}
}

func (p *position) set(offset id.Offset) { p.plusOne.Store(uint64(offset) + 1) }

// begin is the position before the first event, where the broker told it.
func (p *position) begin(accepted *wire.Subscribed) {
	if accepted.StartOffset.Set {
		p.set(accepted.StartOffset.V)
	}
}

func (p *position) get() (offset id.Offset, ok bool) {
	n := p.plusOne.Load()
	if n == 0 {
		return 0, false
	}
	return id.Offset(n - 1), true
}

func newSubscription(s *source, o SubscribeOptions, first *opened) (*Subscription, error) {
	s.install(first)
	sub := &Subscription{source: s, feed: s, accepted: first.accepted, turn: make(chan struct{}, 1)}
	sub.turn <- struct{}{}
	sub.position.begin(&first.accepted)
	if o.Policy == QueueDropNew {
		sub.queue = newBacklog(s, o.ClientQueue)
		sub.feed = sub.queue
		if !s.client.life.spawn(sub.queue.fill) {
			s.stop()
			return nil, closedError(s.op)
		}
	}
	return sub, nil
}

// Shard is the shard this subscription reads.
func (s *Subscription) Shard() uint32 { return s.source.shard }

// StartOffset is the offset of the first event that was to be delivered; ok is false on in-memory streams.
func (s *Subscription) StartOffset() (offset id.Offset, ok bool) {
	return s.accepted.StartOffset.V, s.accepted.StartOffset.Set
}

// LiveOffset parts history from what was published after the subscription began; ok is false on in-memory streams.
func (s *Subscription) LiveOffset() (offset id.Offset, ok bool) {
	return s.accepted.LiveOffset.V, s.accepted.LiveOffset.Set
}

// QueueCapacity is how many batches the broker queues for this subscription, when it was asked and told.
func (s *Subscription) QueueCapacity() (batches uint32, ok bool) {
	return s.accepted.QueueCapacity.V, s.accepted.QueueCapacity.Set
}

// Position is the offset of the first event that Next has not returned: At(offset) goes on there. ok is false on in-memory
// streams.
func (s *Subscription) Position() (offset id.Offset, ok bool) { return s.position.get() }

// Dropped is how many events QueueDropNew has dropped. Those that a resumption brought back are counted too.
func (s *Subscription) Dropped() uint64 {
	if s.queue == nil {
		return 0
	}
	return s.queue.dropped.Load()
}

// Next waits for the next event. Its error is that of ctx, after which Next may be called again and no event is lost; or
// the end of the subscription, which it then returns for ever: io.EOF when the broker ended it, *SubscriptionLostError,
// *SubscriptionLaggedError, *ShardMovedError, *CursorError, *BrokerError, *ProtocolError, or ErrClosed. What Resume takes
// care of is no end.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	if ctx.Err() != nil {
		return Event{}, s.interrupted(ctx)
	}
	if e, ok, err := s.pop(); ok || err != nil {
		return e, err
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return Event{}, s.interrupted(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	for {
		if e, ok, err := s.pop(); ok || err != nil {
			return e, err
		}
		p, err := s.feed.pull(ctx)
		if err != nil {
			return Event{}, err
		}
		if p.kind == ItemEvent {
			s.mu.Lock()
			s.batch = p.batch
			s.mu.Unlock()
		}
	}
}

// pop takes the next event of the batch at hand, if there is one.
func (s *Subscription) pop() (e Event, ok bool, err error) {
	if s.closed.Load() {
		return Event{}, false, fmt.Errorf("%s: the subscription is %w", s.source.op, ErrClosed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok = s.batch.pop(); ok {
		s.position.after(&e)
	}
	return e, ok, nil
}

// Events iterates over the events until the subscription or ctx ends. The last pair carries the error; the end the broker
// chose has none. Breaking out loses nothing; another iteration goes on after it.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := s.Next(ctx)
			if err == io.EOF {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the subscription; Next returns ErrClosed, also one that waits. Closing again does nothing.
func (s *Subscription) Close() {
	if !s.closed.Swap(true) {
		s.source.stop()
	}
}

func (s *Subscription) interrupted(ctx context.Context) error {
	return fmt.Errorf("%s: wait for an event: %w", s.source.op, ctx.Err())
}
