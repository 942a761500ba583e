package diskpool

import (
	"runtime"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const patience = time.Minute

// await waits for an event.
func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: nothing within %s", what, patience)
	}
	return v
}

// until waits for a state that other goroutines are about to reach and cannot announce: the end of a call into the pool.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !reached(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// newPool is a pool on a clock that stands still.
func newPool(t *testing.T, w Workers) (*Pool, *timers) {
	t.Helper()
	clock := &timers{now: start}
	p := New(Options{Workers: w, Clock: clock})
	t.Cleanup(func() { await(t, "workers gone", p.Close()) })
	return p, clock
}

func (t *timers) pass(d time.Duration) { t.advance(t.Now().Add(d)) }
