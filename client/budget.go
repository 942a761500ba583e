package client

import (
	"context"
	"sync"
)

// byteBudget bounds bytes that are under way. Who asks first is served first, so a large request is not starved by small
// ones and one caller's requests keep their order. A request larger than the whole takes the whole. Those who wait are the
// caller's own goroutines, one each, so their number needs no bound here.
type byteBudget struct {
	total int64

	mu      sync.Mutex
	used    int64
	waiting fifo[*budgetWaiter]
}

type budgetWaiter struct {
	bytes   int64
	granted chan struct{}
}

func newByteBudget(total int64) *byteBudget { return &byteBudget{total: total} }

// take waits for n bytes and returns how many to give back.
func (b *byteBudget) take(ctx context.Context, n int64) (int64, error) {
	n = min(n, b.total)
	b.mu.Lock()
	if b.waiting.len() == 0 && b.used+n <= b.total {
		b.used += n
		b.mu.Unlock()
		return n, nil
	}
	w := &budgetWaiter{bytes: n, granted: make(chan struct{})}
	b.waiting.push(w)
	b.mu.Unlock()
	select {
	case <-w.granted:
		return n, nil
	case <-ctx.Done():
		b.leave(w)
		return 0, ctx.Err()
	}
}

// leave takes a waiter out of the line, or gives back what it was granted in the last moment.
func (b *byteBudget) leave(w *budgetWaiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiting.len() {
		if b.waiting.at(i) == w {
			b.waiting.remove(i)
			b.grant() // it may have been the one that did not fit
			return
		}
	}
	b.used -= w.bytes
	b.grant()
}

// give returns n bytes.
func (b *byteBudget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.grant()
}

// grant serves the line from its front as far as there is room.
func (b *byteBudget) grant() {
	for b.waiting.len() > 0 {
		w := b.waiting.at(0)
		if b.used+w.bytes > b.total {
			return
		}
		b.used += w.bytes
		b.waiting.remove(0)
		close(w.granted)
	}
}
