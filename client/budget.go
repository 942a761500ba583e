package client

import (
	"context"
	"sync"
)

// byteBudget bounds bytes that are under way. Who asks first is served first, so a large request is not starved by small
// ones and one caller's requests keep their order. A request larger than the whole takes the whole.
//
// One shard has at most half of it, unless a single request needs more: what a shard that stands still owes must leave room for
// the others (decision 37). Who asks for more of a shard waits in the shard's own line, and joins the common one when the
// shard has given something back. Those who wait are the caller's own goroutines, one each, so their number needs no bound here.
type byteBudget struct {
	total int64

	mu      sync.Mutex
	used    int64
	waiting fifo[*budgetWaiter]
	whole   budgetShare // of those that name no share: it may be everything
}

// budgetShare is what one shard has of a budget. Its fields are under the budget's lock.
type budgetShare struct {
	claimed int64               // granted, or waiting in the common line
	waiting fifo[*budgetWaiter] // for the shard's own bytes to come back
}

type budgetWaiter struct {
	share   *budgetShare
	bytes   int64
	granted chan struct{}
}

func newByteBudget(total int64) *byteBudget { return &byteBudget{total: total} }

// share is the share of those that belong to no shard.
func (b *byteBudget) share() *budgetShare { return &b.whole }

// take waits for n bytes for a shard and returns how many to give back.
func (b *byteBudget) take(ctx context.Context, s *budgetShare, n int64) (int64, error) {
	n = min(n, b.total)
	b.mu.Lock()
	mine := s.waiting.len() == 0 && b.allows(s, n)
	if mine {
		s.claimed += n
		if b.waiting.len() == 0 && b.used+n <= b.total {
			b.used += n
			b.mu.Unlock()
			return n, nil
		}
	}
	w := &budgetWaiter{share: s, bytes: n, granted: make(chan struct{})}
	if mine {
		b.waiting.push(w)
	} else {
		s.waiting.push(w)
	}
	b.mu.Unlock()
	select {
	case <-w.granted:
		return n, nil
	case <-ctx.Done():
		b.leave(w)
		return 0, ctx.Err()
	}
}

// allows reports whether a shard may claim n bytes more. The lock is held.
func (b *byteBudget) allows(s *budgetShare, n int64) bool {
	return s == &b.whole || s.claimed == 0 || s.claimed+n <= b.total/2
}

// leave takes a waiter out of its line, or gives back what it was granted in the last moment.
func (b *byteBudget) leave(w *budgetWaiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !remove(&w.share.waiting, w) {
		if !remove(&b.waiting, w) {
			b.used -= w.bytes
		}
		w.share.claimed -= w.bytes
	}
	b.grant(w.share) // it may have been the one that did not fit
}

func remove(line *fifo[*budgetWaiter], w *budgetWaiter) bool {
	for i := range line.len() {
		if line.at(i) == w {
			line.remove(i)
			return true
		}
	}
	return false
}

// give returns n bytes of a shard.
func (b *byteBudget) give(s *budgetShare, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	s.claimed -= n
	b.grant(s)
}

// grant serves the line of a shard that has given something back, then the common one, each from its front as far as there is
// room. The lock is held.
func (b *byteBudget) grant(s *budgetShare) {
	for s.waiting.len() > 0 && b.allows(s, s.waiting.at(0).bytes) {
		w := s.waiting.at(0)
		s.claimed += w.bytes
		s.waiting.remove(0)
		b.waiting.push(w)
	}
	for b.waiting.len() > 0 && b.used+b.waiting.at(0).bytes <= b.total {
		w := b.waiting.at(0)
		b.used += w.bytes
		b.waiting.remove(0)
		close(w.granted)
	}
}
