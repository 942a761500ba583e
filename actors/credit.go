package actors

import (
	"errors"
	"fmt"
	"sync"
)

// ErrAcquireCanceled says that the caller's done channel closed before there was room; nothing is held.
var ErrAcquireCanceled = errors.New("wait for credit was canceled")

// ErrCreditClosed is what waiters of a closed Credit get when Close was given no reason.
var ErrCreditClosed = errors.New("credit is closed")

// Credit is a bounded amount of permits, in items and bytes, held from the moment work is taken until its outcome. Waiters are
// served strictly in order and TryAcquire never overtakes one, so a large request is not starved by small ones. A request larger
// than the whole bound is admitted when nothing else is held. Safe for concurrent use.
type Credit struct {
	mu                    sync.Mutex
	limitItems, limitByte int
	items, bytes          int // held
	first, last           *creditWaiter
	waiting               int
	closed                error
}

// creditWaiter is one blocked Acquire; its channel is closed exactly once, when it is granted or the credit closes.
type creditWaiter struct {
	items, bytes int
	ready        chan struct{}
	ring         func() // of a CreditRequest, else nil
	granted      bool
	prev, next   *creditWaiter
}

// NewCredit returns a credit of items permits and bytes bytes; both must be positive.
func NewCredit(items, bytes int) *Credit {
	if items <= 0 || bytes <= 0 {
		panic(fmt.Sprintf("actors: NewCredit: bounds must be positive, got %d items and %d bytes", items, bytes))
	}
	return &Credit{limitItems: items, limitByte: bytes}
}

// TryAcquire takes the permits if there is room now, nobody waits for some, and the credit is open.
func (c *Credit) TryAcquire(items, bytes int) bool {
	checkPermits("TryAcquire", items, bytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil || c.first != nil || !c.fits(items, bytes) {
		return false
	}
	c.items += items
	c.bytes += bytes
	return true
}

// Acquire waits for the permits. It returns nil when they are held, ErrAcquireCanceled when done closed first, or the reason the
// credit was closed with. A nil done never cancels.
func (c *Credit) Acquire(done <-chan struct{}, items, bytes int) error {
	checkPermits("Acquire", items, bytes)
	c.mu.Lock()
	if c.closed != nil {
		defer c.mu.Unlock()
		return fmt.Errorf("acquire credit: %w", c.closed)
	}
	if c.first == nil && c.fits(items, bytes) {
		c.items += items
		c.bytes += bytes
		c.mu.Unlock()
		return nil
	}
	w := &creditWaiter{items: items, bytes: bytes, ready: make(chan struct{})}
	c.push(w)
	c.mu.Unlock()
	return c.await(done, w)
}

// await blocks until w is granted, the credit closes, or done closes.
func (c *Credit) await(done <-chan struct{}, w *creditWaiter) error {
	select {
	case <-w.ready:
	case <-done:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case w.granted:
		return nil // also when done closed at the same moment: the permits are held and the caller gives them back
	case c.closed != nil:
		return fmt.Errorf("acquire credit: %w", c.closed)
	}
	c.remove(w)
	c.grant() // the one behind may fit where this one did not
	return fmt.Errorf("acquire credit: %w", ErrAcquireCanceled)
}

// Release gives permits back and wakes exactly the waiters that now have room, oldest first. Giving back more than is held is a
// broken invariant and panics. Allowed after Close.
func (c *Credit) Release(items, bytes int) {
	checkPermits("Release", items, bytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if items > c.items || bytes > c.bytes {
		panic(fmt.Sprintf("actors: Credit.Release of %d items and %d bytes, but only %d and %d are held", items, bytes, c.items, c.bytes))
	}
	c.items -= items
	c.bytes -= bytes
	if c.closed == nil {
		c.grant()
	}
}

// Close refuses all waiters and later requests with err (ErrCreditClosed when nil). What is held stays held until released.
// A second Close changes nothing.
func (c *Credit) Close(err error) {
	if err == nil {
		err = ErrCreditClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return
	}
	c.closed = err
	for c.first != nil {
		w := c.first
		c.remove(w)
		w.tell()
	}
}

// InUse is what is held now; bytes may exceed the bound while one oversized request is held.
func (c *Credit) InUse() (items, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items, c.bytes
}

// Limit is the bound.
func (c *Credit) Limit() (items, bytes int) { return c.limitItems, c.limitByte }

// Waiting is the number of blocked Acquire calls.
func (c *Credit) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// fits reports whether the permits are free; the lock is held.
func (c *Credit) fits(items, bytes int) bool {
	if c.items == 0 && c.bytes == 0 {
		return true
	}
	return items <= c.limitItems-c.items && bytes <= c.limitByte-c.bytes
}

// grant serves waiters from the front as long as they fit; the lock is held.
func (c *Credit) grant() {
	for c.first != nil && c.fits(c.first.items, c.first.bytes) {
		w := c.first
		c.remove(w)
		c.items += w.items
		c.bytes += w.bytes
		w.granted = true
		w.tell()
	}
}

// tell wakes whoever waits: the permits are granted, or the credit is closed. The lock is held.
func (w *creditWaiter) tell() {
	close(w.ready)
	if w.ring != nil {
		w.ring()
	}
}

func (c *Credit) push(w *creditWaiter) {
	w.prev = c.last
	if c.last == nil {
		c.first = w
	} else {
		c.last.next = w
	}
	c.last = w
	c.waiting++
}

func (c *Credit) remove(w *creditWaiter) {
	if w.prev == nil {
		c.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		c.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	c.waiting--
}

func checkPermits(op string, items, bytes int) {
	if items < 0 || bytes < 0 {
		panic(fmt.Sprintf("actors: Credit.%s: permits must not be negative, got %d items and %d bytes", op, items, bytes))
	}
}
