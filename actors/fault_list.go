package actors

import (
	"container/heap"
	"fmt"
	"sort"
	"time"
)

// ActorInfo is one live actor as Faults.List shows it.
type ActorInfo struct {
	Path         string
	ID           uint64 // the incarnation, equal to Ref.ID
	Kind         string
	Tenant       string        // empty on the pooled dispatcher
	MailboxItems int           // data messages queued
	MailboxBytes int           // their bytes
	PausedFor    time.Duration // what is left of a pause; 0: not paused
	SlowBy       time.Duration // what each turn waits; 0: not slowed
	SlowFor      time.Duration // what is left of a slowdown
	Stopping     bool          // its end is decided
}

// List returns the first limit live actors whose paths sort after after, in the order of their paths; more tells whether there are others
// behind. limit is 1 to FaultListMax. It looks at every actor once, and is a snapshot of none: actors come and go meanwhile.
func (f Faults) List(after string, limit int) (page []ActorInfo, more bool, err error) {
	if limit < 1 || limit > FaultListMax {
		return nil, false, fmt.Errorf("fault list: %w", &BadFaultError{What: "the limit", Got: fmt.Sprint(limit), Range: fmt.Sprintf("1 to %d", FaultListMax)})
	}
	var first pathHeap // the smallest, largest on top
	f.s.metrics.each(func(b *mailbox) {
		switch {
		case b.path <= after:
		case len(first) <= limit: // one more than asked for, to know whether there is one
			heap.Push(&first, b)
		case b.path < first[0].path:
			first[0] = b
			heap.Fix(&first, 0)
		}
	})
	sort.Slice(first, func(i, j int) bool { return first[i].path < first[j].path })
	more = len(first) > limit
	now := f.s.clock.Now()
	for _, b := range first[:min(limit, len(first))] {
		page = append(page, b.info(now))
	}
	return page, more, nil
}

// info describes b at now.
func (b *mailbox) info(now time.Time) ActorInfo {
	a := ActorInfo{Path: b.path, ID: b.id, Kind: b.kind.name, MailboxItems: int(b.items.Load()), MailboxBytes: int(b.bytes.Load())}
	if b.tenant != nil {
		a.Tenant = b.tenant.name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.Stopping = b.closed
	if f := b.fault; f != nil && !b.closed {
		if !f.pausedUntil.IsZero() {
			a.PausedFor = max(f.pausedUntil.Sub(now), 1) // its timer is about to ring
		}
		if !f.slowUntil.IsZero() {
			a.SlowBy, a.SlowFor = f.slowBy, max(f.slowUntil.Sub(now), 1)
		}
	}
	return a
}

// find returns the live actor with that path, or an *UnknownActorError with the one that looks most like it.
func (f Faults) find(path string) (*mailbox, error) {
	var found *mailbox
	near, best := "", len(path)/2 // half of it must be right
	f.s.metrics.each(func(b *mailbox) {
		if b.path == path {
			found = b
		}
		if n := likeness(b.path, path); n > best || n == best && near != "" && b.path < near {
			near, best = b.path, n
		}
	})
	if found == nil {
		return nil, &UnknownActorError{Path: path, Near: near}
	}
	return found, nil
}

// likeness is the number of bytes that a and b have in common at their beginnings and, beyond those, at their ends.
func likeness(a, b string) (n int) {
	shorter := min(len(a), len(b))
	for n < shorter && a[n] == b[n] {
		n++
	}
	for end := 1; n < shorter && a[len(a)-end] == b[len(b)-end]; end++ {
		n++
	}
	return n
}

// pathHeap has the mailbox with the largest path on top.
type pathHeap []*mailbox

func (h pathHeap) Len() int           { return len(h) }
func (h pathHeap) Less(i, j int) bool { return h[i].path > h[j].path }
func (h pathHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *pathHeap) Push(x any)        { *h = append(*h, x.(*mailbox)) }

func (h *pathHeap) Pop() any {
	old := *h
	b := old[len(old)-1]
	*h = old[:len(old)-1]
	return b
}
