package actors

import (
	"container/heap"
	"sync"
	"time"
)

// ManualClock is a clock that moves only when told to. Due timers fire in order of their instant, equal ones in the order they were
// armed, on the goroutine that calls Advance, with no lock held: a timer's function may arm and stop timers, and one it arms within
// the advanced span fires in the same Advance. It is safe for concurrent use, but two goroutines must not advance it at once.
type ManualClock struct {
	mu     sync.Mutex
	now    time.Time
	armed  uint64 // counts armings: breaks ties
	timers timerHeap
}

// NewManualClock returns a clock that stands at start.
func NewManualClock(start time.Time) *ManualClock { return &ManualClock{now: start} }

// Now is the instant the clock stands at; inside a timer's function, that timer's instant.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc arms f for d from now. It never runs f itself, even if d <= 0: the next Advance does.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) Timer {
	t := &manualTimer{clock: c, fire: func(time.Time) { f() }, at: -1}
	t.Reset(d)
	return t
}

// NewTimer arms a channel timer for d from now.
func (c *ManualClock) NewTimer(d time.Duration) ChanTimer {
	ch := make(chan time.Time, 1)
	t := &manualChanTimer{c: ch}
	t.manualTimer = manualTimer{clock: c, at: -1, drain: ch, fire: func(now time.Time) { offer(ch, now) }}
	t.Reset(d)
	return t
}

// Advance moves the clock by d, which must not be negative, and fires what becomes due.
func (c *ManualClock) Advance(d time.Duration) {
	if d < 0 {
		panic("actors: ManualClock.Advance: time does not go back")
	}
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		t := c.due(end)
		if t == nil {
			break
		}
		if t.when.After(c.now) {
			c.now = t.when
		}
		now := c.now
		c.mu.Unlock()
		t.fire(now)
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

// Next is the instant of the earliest pending timer; false when there is none.
func (c *ManualClock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].when, true
}

// Pending is the number of armed timers.
func (c *ManualClock) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// due removes and returns the earliest timer that expires by end, or nil.
func (c *ManualClock) due(end time.Time) *manualTimer {
	if len(c.timers) == 0 || c.timers[0].when.After(end) {
		return nil
	}
	return heap.Pop(&c.timers).(*manualTimer)
}

type manualTimer struct {
	clock *ManualClock
	fire  func(now time.Time)
	drain chan time.Time // emptied by Stop and Reset, so that no stale instant is received
	when  time.Time
	order uint64
	at    int // index in the heap, -1 when not armed
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.disarm()
}

func (t *manualTimer) Reset(d time.Duration) bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	was := t.disarm()
	c.armed++
	t.when, t.order = c.now.Add(max(d, 0)), c.armed
	heap.Push(&c.timers, t)
	return was
}

// disarm takes t off the heap and forgets an instant not yet received; the clock's lock is held.
func (t *manualTimer) disarm() bool {
	was := t.at >= 0
	if was {
		heap.Remove(&t.clock.timers, t.at)
	}
	select {
	case <-t.drain:
	default:
	}
	return was
}

// offer sends now unless an instant is already waiting: a timer that fires while it is being reset must not block the clock.
func offer(ch chan<- time.Time, now time.Time) {
	select {
	case ch <- now:
	default:
	}
}

type manualChanTimer struct {
	manualTimer
	c chan time.Time
}

func (t *manualChanTimer) C() <-chan time.Time { return t.c }

// timerHeap orders by instant, then by arming.
type timerHeap []*manualTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if !h[i].when.Equal(h[j].when) {
		return h[i].when.Before(h[j].when)
	}
	return h[i].order < h[j].order
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*manualTimer)
	t.at = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.at = -1
	return t
}
