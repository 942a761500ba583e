package diskpool

import (
	"context"
	"slices"
	"sync"
)

// ReadSlots bounds how many reads of files run at once: each may keep a thread of the system for as long as a disk hangs. One owner, a log, may
// have a quarter of them, so that the reads of a log that do not come back leave most of the slots to others. Safe for concurrent use.
type ReadSlots struct {
	limit, share int

	mu      sync.Mutex
	used    int
	owners  map[any]int // what each has; none is 0
	waiting []*slotWait // in the order of their coming
}

// slotWait is who waits for a slot.
type slotWait struct {
	owner any
	got   chan struct{} // closed, under the lock, when it has one
}

// DefaultReadSlots is the bound a broker uses.
const DefaultReadSlots = 64

// NewReadSlots returns n slots, at least 1.
func NewReadSlots(n int) *ReadSlots {
	if n < 1 {
		panic("diskpool: NewReadSlots: no slots")
	}
	return &ReadSlots{limit: n, share: max(1, n/4), owners: map[any]int{}}
}

// Acquire takes a slot for an owner, and waits for one until the context ends; its error is then the context's. First come, first served, but
// whose owner has its share is passed over until it has less. Owners are compared with ==.
func (s *ReadSlots) Acquire(ctx context.Context, owner any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.used < s.limit && s.owners[owner] < s.share { // whoever waits is of an owner with its share
		s.take(owner)
		s.mu.Unlock()
		return nil
	}
	w := &slotWait{owner: owner, got: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.got:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 { // it has got one meanwhile
		return nil
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return ctx.Err()
}

func (s *ReadSlots) take(owner any) {
	s.used++
	s.owners[owner]++
}

// Release gives back a slot of an owner.
func (s *ReadSlots) Release(owner any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[owner] == 0 {
		panic("diskpool: ReadSlots.Release without Acquire")
	}
	s.used--
	if s.owners[owner]--; s.owners[owner] == 0 {
		delete(s.owners, owner)
	}
	for i, w := range s.waiting {
		if s.owners[w.owner] < s.share {
			s.take(w.owner)
			s.waiting = slices.Delete(s.waiting, i, i+1)
			close(w.got)
			return
		}
	}
}

// Used is how many slots are taken.
func (s *ReadSlots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// Waiting is how many callers wait for one.
func (s *ReadSlots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// Limit is how many there are.
func (s *ReadSlots) Limit() int { return s.limit }
