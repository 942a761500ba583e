package client

import (
	"context"
	"sync"
)

// cell holds one thing that dies and is made again when somebody asks for it: a connection, a stream. Those who ask while
// it is being made share the making and its outcome, failure included: a hundred callers of a dead broker fail together
// after one making, not one after the other. The making belongs to the client and goes on when those who asked gave up, so
// that callers with little patience still get somewhere together.
type cell[T any] struct {
	life  *life
	ctx   context.Context // of the client: bounds each making
	build func(ctx context.Context) (T, error)
	alive func(T) bool

	mu     sync.Mutex
	value  T
	full   bool
	making *making[T]
}

// making is one attempt. Its results may be read once done is closed.
type making[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// get returns the thing, making it if it is not there or dead. The error is that of the making, or of ctx.
func (c *cell[T]) get(ctx context.Context) (T, error) {
	c.mu.Lock()
	if c.full && c.alive(c.value) {
		defer c.mu.Unlock()
		return c.value, nil
	}
	m := c.making
	if m == nil {
		m = &making[T]{done: make(chan struct{})}
		if !c.life.spawn(func() { c.run(m) }) {
			defer c.mu.Unlock()
			var none T
			return none, ErrClosed
		}
		c.making = m
	}
	c.mu.Unlock()
	select {
	case <-m.done:
		return m.value, m.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (c *cell[T]) run(m *making[T]) {
	m.value, m.err = c.build(c.ctx)
	c.mu.Lock()
	c.making = nil
	if m.err == nil {
		c.value, c.full = m.value, true
	}
	c.mu.Unlock()
	close(m.done)
}

// current returns what there is, dead or alive.
func (c *cell[T]) current() (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, c.full
}

// settled is current after the making under way. It is for Close, when no further one begins.
func (c *cell[T]) settled() (T, bool) {
	c.mu.Lock()
	m := c.making
	c.mu.Unlock()
	if m != nil {
		<-m.done
	}
	return c.current()
}
