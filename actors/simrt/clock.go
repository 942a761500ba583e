package simrt

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/felixd/felixd/actors"
)

// Clock is the clock of one node. It shows true time times its rate, plus its offset, and its timers ring no earlier than their
// instant on it.
type Clock struct {
	world  *World
	name   string
	ppm    int64
	offset time.Duration
	life   *Life // nil: the whole world's
}

var _ actors.Clock = (*Clock)(nil)

// Clock returns a clock that runs ppm millionths as fast as true time, between ClockRateMin and ClockRateMax, and is offset ahead of it.
// name is what its timers are called in a trace.
func (w *World) Clock(name string, ppm int64, offset time.Duration) *Clock {
	if ppm < ClockRateMin || ppm > ClockRateMax {
		panic(fmt.Sprintf("simrt: a clock at %d millionths of the true rate: use %d to %d", ppm, ClockRateMin, ClockRateMax))
	}
	return &Clock{world: w, name: name, ppm: ppm, offset: offset}
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time { return c.world.opts.Start.Add(c.offset + c.local(c.world.now)) }

// local is what the clock has counted at a true time.
func (c *Clock) local(at time.Duration) time.Duration {
	whole, rest := at/1_000_000, at%1_000_000
	return whole*time.Duration(c.ppm) + rest*time.Duration(c.ppm)/1_000_000
}

// after is the first true time at which the clock has counted d more than now.
func (c *Clock) after(d time.Duration) time.Duration {
	target := c.local(c.world.now) + max(d, 0)
	at := target / time.Duration(c.ppm) * 1_000_000 // at or before it: the rest is under a million millionths
	low, high := at, at+2_000_000
	for low < high { // the first one that is not too early
		middle := low + (high-low)/2
		if c.local(middle) < target {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return max(low, c.world.now)
}

// AfterFunc arms f for d from now on this clock. It never runs f itself: a step does.
func (c *Clock) AfterFunc(d time.Duration, f func()) actors.Timer {
	t := &timer{clock: c, fire: f, at: -1}
	t.Reset(d)
	return t
}

// NewTimer arms a channel timer for d from now on this clock.
func (c *Clock) NewTimer(d time.Duration) actors.ChanTimer {
	t := &chanTimer{c: make(chan time.Time, 1)}
	t.timer = timer{clock: c, at: -1, fire: func() {
		select {
		case t.c <- c.Now():
		default: // one that nobody has received is there already
		}
	}}
	t.Reset(d)
	return t
}

// timer is one armed function. due is in true time.
type timer struct {
	clock *Clock
	fire  func()
	due   time.Duration
	order uint64 // breaks ties in the heap; the seed breaks them when they fire
	at    int    // in the heap, -1 when not
	fired uint64 // the arming that is on its way to fire, 0 when none
}

// Stop implements actors.Timer. A timer that is due and has not had its step yet is still pending.
func (t *timer) Stop() bool {
	was := t.at >= 0 || t.fired != 0
	if t.at >= 0 {
		heap.Remove(&t.clock.world.timers, t.at)
	}
	t.fired = 0
	return was
}

// Reset implements actors.Timer.
func (t *timer) Reset(d time.Duration) bool {
	was := t.Stop()
	w := t.clock.world
	if t.clock.ended() {
		return was
	}
	w.armed++
	t.due, t.order = t.clock.after(d), w.armed
	heap.Push(&w.timers, t)
	return was
}

// fireDue makes every timer that is due a possible next step.
func (w *World) fireDue() {
	for len(w.timers) > 0 && w.timers[0].due <= w.now {
		t := heap.Pop(&w.timers).(*timer)
		t.fired = t.order
		arming := t.order
		w.Post(Timers, t.clock.name, func() {
			if t.fired != arming || t.clock.ended() { // stopped or armed anew since
				w.Note("was stopped")
				return
			}
			t.fired = 0
			t.fire()
		})
	}
}

// leap moves time to the next timer; false when there is none.
func (w *World) leap() bool {
	if len(w.timers) == 0 {
		return false
	}
	w.now = max(w.now, w.timers[0].due)
	return true
}

type chanTimer struct {
	timer
	c chan time.Time
}

func (t *chanTimer) C() <-chan time.Time { return t.c }

// Stop and Reset also forget an instant that was not received.
func (t *chanTimer) Stop() bool {
	was := t.timer.Stop()
	select {
	case <-t.c:
	default:
	}
	return was
}

func (t *chanTimer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.timer.Reset(d)
	return was
}

// timerHeap orders by instant, then by arming.
type timerHeap []*timer

// order makes it a heap again.
func (h *timerHeap) order() { heap.Init(h) }

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].order < h[j].order
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
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
