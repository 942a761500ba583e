package diskpool

import (
	"context"
	"sync/atomic"
)

// ReadSlots bounds how many reads of files run at once: each may keep a thread of the system for as long as a disk hangs.
type ReadSlots struct {
	slots   chan struct{}
	waiting atomic.Int64
}

// DefaultReadSlots is the bound a broker uses.
const DefaultReadSlots = 64

// NewReadSlots returns n slots, at least 1.
func NewReadSlots(n int) *ReadSlots {
	if n < 1 {
		panic("diskpool: NewReadSlots: no slots")
	}
	return &ReadSlots{slots: make(chan struct{}, n)}
}

// Acquire takes a slot, and waits for one until the context ends; its error is then the context's. First come, first served.
func (s *ReadSlots) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release gives back a slot.
func (s *ReadSlots) Release() {
	select {
	case <-s.slots:
	default:
		panic("diskpool: ReadSlots.Release without Acquire")
	}
}

// Used is how many slots are taken.
func (s *ReadSlots) Used() int { return len(s.slots) }

// Waiting is how many callers wait for one.
func (s *ReadSlots) Waiting() int { return int(s.waiting.Load()) }

// Limit is how many there are.
func (s *ReadSlots) Limit() int { return cap(s.slots) }
