package diskpool

import (
	"slices"
	"sync"
	"time"
)

// timers are pending calls on a clock that moves only when it is told to. It is safe for concurrent use.
type timers struct {
	mu   sync.Mutex
	now  time.Time
	list []*timer // by instant, equal ones as they were armed
}

type timer struct {
	at time.Time
	f  func()
}

// Now is the instant the clock stands at.
func (t *timers) Now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// AfterFunc arms f for d from now, and never calls it itself.
func (t *timers) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &timer{at: t.now.Add(max(d, 0)), f: f}
	i, _ := slices.BinarySearchFunc(t.list, one, func(have, want *timer) int {
		if have.at.After(want.at) {
			return 1
		}
		return -1 // equal ones go behind those that are there
	})
	t.list = slices.Insert(t.list, i, one)
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		i := slices.Index(t.list, one)
		if i < 0 {
			return false
		}
		t.list = slices.Delete(t.list, i, i+1)
		return true
	}
}

// advance moves the clock to an instant and calls what is due on the way, each at its instant, with no lock held.
func (t *timers) advance(end time.Time) {
	for {
		f := t.due(end)
		if f == nil {
			return
		}
		f()
	}
}

func (t *timers) due(end time.Time) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) == 0 || t.list[0].at.After(end) {
		t.now = end
		return nil
	}
	one := t.list[0]
	t.list = slices.Delete(t.list, 0, 1)
	if one.at.After(t.now) {
		t.now = one.at
	}
	return one.f
}

// next is the instant of the earliest pending call.
func (t *timers) next() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) == 0 {
		return time.Time{}, false
	}
	return t.list[0].at, true
}

func (t *timers) pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.list)
}
