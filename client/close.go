package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/felixd/felixd/transport"
)

// closePatience is how long Close waits for answers when its context has no deadline of its own.
const closePatience = 5 * time.Second

// quickCall is how long a call of the program's code may take before Close, whose time is up, waits for it no more.
const quickCall = time.Second

// ErrCloseInside is what Close returns with the context of a handler, or of the TokenProvider: the client closes, and waits for that call.
// Return from it; whoever has to know when it is closed calls Close in another goroutine, with another context.
var ErrCloseInside = errors.New("the client closes, and waits for the call that closed it")

// insideOf is the key of a value that contexts have which a client gives to the program's code.
type insideOf struct{ client *Client }

// Close refuses new work, waits until publishes and cache requests under way are answered and unacknowledged publishes
// were taken by the broker, and closes the connections. Consumers are stopped first, then batchers and producers flushed. Subscriptions end
// with ErrClosed. It waits as long as the first call's ctx allows, at most five seconds when that has no deadline; the error says what was given up.
// Further calls return the same.
//
// It may be called from everywhere. With the context of a handler of the client's consumers or of its TokenProvider, or one made from it, it
// returns ErrCloseInside at once. From OnError, RetryDelay and Hooks, or with another context, it may wait for its caller; it returns when the
// time of its ctx is up, with an error that matches that of ctx, and what is left to be done is done when the caller has returned.
func (c *Client) Close(ctx context.Context) error {
	if ctx.Value(insideOf{c}) != nil && !c.hasClosed() {
		c.beginClose(context.Background())
		return fmt.Errorf("close: %w", ErrCloseInside)
	}
	ctx, cancel := closeTime(ctx)
	defer cancel()
	limit := c.calls.begun() // one of those under way may be our caller
	c.beginClose(ctx)
	select {
	case <-c.done:
		return c.closed
	case <-ctx.Done():
	}
	for !c.calls.openBefore(limit) {
		limit = c.calls.begun()
		select {
		case <-c.done:
			return c.closed
		case <-time.After(quickCall):
		}
	}
	if c.hasClosed() {
		return c.closed
	}
	return fmt.Errorf("close: a call of OnError, a hook or the TokenProvider goes on, and the client is closed when it has returned: %w", ctx.Err())
}

// closeTime bounds a context that has no deadline.
func closeTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, closePatience)
}

func (c *Client) hasClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// beginClose lets the client close, on a goroutine of its own: whoever wants that may be one for whom it waits.
func (c *Client) beginClose(ctx context.Context) {
	c.once.Do(func() {
		go func() {
			c.closed = c.shutDown(ctx)
			close(c.done)
		}()
	})
}

func (c *Client) shutDown(ctx context.Context) error {
	ctx, cancel := closeTime(ctx)
	defer cancel()
	flushed := errors.Join(c.consumers.close(ctx), c.batchers.close(ctx), c.producers.close(ctx)) // in this order: each may use what follows
	c.life.seal()
	c.close()
	err := errors.Join(flushed, c.closeTargets(ctx))
	for _, l := range c.life.open() {
		transport.Close(l.conn, transport.CloseShutdown)
	}
	c.life.work.Wait()
	return err
}

// closeTargets ends the streams of all brokers, at once.
func (c *Client) closeTargets(ctx context.Context) error {
	targets := append(c.owners.all(), c.entry)
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() { errs[i] = t.close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// calls are those under way of the program's code, by goroutines for which Close waits.
type calls struct {
	mu   sync.Mutex
	next uint64
	open map[uint64]struct{}
}

// begin notes a call, which begins now, and end that it has returned.
func (c *calls) begin() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[uint64]struct{})
	}
	n := c.next
	c.next++
	c.open[n] = struct{}{}
	return n
}

func (c *calls) end(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, n)
}

// begun is how many have begun so far.
func (c *calls) begun() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// openBefore reports whether one of the first so many is under way.
func (c *calls) openBefore(limit uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.open {
		if n < limit {
			return true
		}
	}
	return false
}

// noted makes hooks whose calls are noted.
func (h Hooks) noted(c *calls) Hooks {
	if f := h.Connected; f != nil {
		h.Connected = func(i ConnectionInfo) { defer c.end(c.begin()); f(i) }
	}
	if f := h.Disconnected; f != nil {
		h.Disconnected = func(i ConnectionInfo, err error) { defer c.end(c.begin()); f(i, err) }
	}
	if f := h.Retrying; f != nil {
		h.Retrying = func(r Retry) { defer c.end(c.begin()); f(r) }
	}
	if f := h.Dropped; f != nil {
		h.Dropped = func(d Drop) { defer c.end(c.begin()); f(d) }
	}
	return h
}

// provide asks the TokenProvider.
func (c *Client) provide(ctx context.Context) (string, error) {
	defer c.calls.end(c.calls.begin())
	return c.opts.TokenProvider(context.WithValue(ctx, insideOf{c}, true))
}
