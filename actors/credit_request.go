package actors

import "fmt"

// CreditRequest is a place in the queue for permits, for a caller that must not block: it is told instead. It is in the
// same queue as blocked Acquire calls and served in the same order.
type CreditRequest struct {
	credit *Credit
	w      creditWaiter
}

// Request asks for permits. ring is called once when they are granted or the credit is closed, with the credit's lock
// held: it must not block and must not call back. It may be called before Request returns.
func (c *Credit) Request(items, bytes int, ring func()) *CreditRequest {
	checkPermits("Request", items, bytes)
	r := &CreditRequest{credit: c, w: creditWaiter{items: items, bytes: bytes, ready: make(chan struct{}), ring: ring}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		ring()
		return r
	}
	c.push(&r.w)
	c.grant()
	return r
}

// State says whether the permits are held by now; err is why they never will be.
func (r *CreditRequest) State() (granted bool, err error) {
	r.credit.mu.Lock()
	defer r.credit.mu.Unlock()
	if !r.w.granted && r.credit.closed != nil {
		return false, fmt.Errorf("request credit: %w", r.credit.closed)
	}
	return r.w.granted, nil
}

// Cancel leaves the queue and reports true; false means that the permits were granted already and are the caller's.
func (r *CreditRequest) Cancel() bool {
	c := r.credit
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.w.granted {
		return false
	}
	if c.closed == nil {
		c.remove(&r.w)
		c.grant() // the one behind may fit where this one did not
	}
	return true
}
