package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/felixd/felixd/wire"
)

// QueuePolicy says what becomes of events that arrive faster than the application takes them.
type QueuePolicy uint8

const (
	// QueueDefault is Options.SubQueuePolicy, which itself is QueueBlock unless set.
	QueueDefault QueuePolicy = iota
	// QueueBlock has no queue in the client: what is not taken stays in the receive window of its stream, and past that the
	// broker has to wait, which decides by its own policy. Nothing is lost here. On a connection shared with publishes and
	// cache requests, subscriptions that nobody reads use up its window; give them connections of their own (EventConns).
	QueueBlock
	// QueueDropNew reads as fast as events come and keeps up to ClientQueue batches, at most wire.SubscriberQueueBytes.
	// Beyond that the batch that arrives is dropped and counted, if it is live; history waits. Where events have offsets the
	// first drop ends the event stream like a lag at the broker: the subscription goes on right there, or without resumption
	// ends with a *SubscriptionLaggedError. Without offsets the next event has Gap set.
	QueueDropNew
)

// backlog is the queue of QueueDropNew, filled by a goroutine of its own.
type backlog struct {
	source   *source
	capacity int // batches, and news
	dropped  atomic.Uint64

	more, room chan struct{} // each holds a wake for the one who waits

	mu     sync.Mutex
	pieces fifo[piece]
	bytes  int
	end    error
}

func newBacklog(s *source, capacity int) *backlog {
	return &backlog{source: s, capacity: capacity, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// fill takes pieces off the source until it ends.
func (b *backlog) fill() {
	s := b.source
	for {
		p, err := s.pull(s.ctx)
		if err != nil {
			b.finish(err)
			return
		}
		switch {
		case p.kind != ItemEvent, s.isHistory(&p.batch):
			b.wait(p)
		case !b.offer(p):
			b.drop(&p.batch)
		}
	}
}

// isHistory reports whether a batch was published before the subscription began, as far as one can tell.
func (s *source) isHistory(b *batch) bool { return b.hasOffset && b.next < s.live }

// drop counts a batch, and has the source go back to it where that is possible.
func (b *backlog) drop(lost *batch) {
	s := b.source
	b.dropped.Add(uint64(lost.count))
	s.client.stats.dropped.Add(uint64(lost.count))
	s.client.opts.Hooks.dropped(Drop{Op: s.op, Shard: s.shard, Events: int(lost.count)})
	if !lost.hasOffset {
		s.gap = true
		return
	}
	s.next = lost.next
	lag := &SubscriptionLaggedError{Op: s.op, ResumeFrom: lost.next, Local: true}
	s.current().stop()
	if s.resume != ResumeNever { // not before the reader has made room: until then no stream of its fills the connection
		b.wait(piece{kind: ItemShardLost, err: lag})
	}
	s.after(lag)
}

// offer puts a piece in if there is room. A batch over the bound in bytes is taken by an empty queue.
func (b *backlog) offer(p piece) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.pieces.len()
	if n >= b.capacity || n > 0 && b.bytes+p.batch.bytes > wire.SubscriberQueueBytes {
		return false
	}
	b.pieces.push(p)
	b.bytes += p.batch.bytes
	wake(b.more)
	return true
}

// wait is offer that waits for room, until the source is stopped.
func (b *backlog) wait(p piece) {
	for !b.offer(p) {
		select {
		case <-b.room:
		case <-b.source.ctx.Done():
			return
		}
	}
}

func (b *backlog) finish(err error) {
	if over := b.source.over(); over != nil {
		err = over
	}
	b.mu.Lock()
	b.end = err
	b.mu.Unlock()
	wake(b.more)
}

// pull waits for the next piece, as source.pull does.
func (b *backlog) pull(ctx context.Context) (piece, error) {
	for {
		if p, ok, err := b.take(); ok || err != nil {
			return p, err
		}
		select {
		case <-b.more:
		case <-ctx.Done():
			return piece{}, fmt.Errorf("%s: wait for an event: %w", b.source.op, ctx.Err())
		}
	}
}

func (b *backlog) take() (p piece, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pieces.len() == 0 {
		return piece{}, false, b.end
	}
	p = b.pieces.remove(0)
	b.bytes -= p.batch.bytes
	wake(b.room)
	return p, true, nil
}

// wake rings a bell that holds one ring.
func wake(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
