package simrt

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// stepTo lets only time pass, up to d.
func stepTo(w *World, d time.Duration) {
	for len(w.timers) > 0 && w.timers[0].due <= d {
		_ = w.Step()
	}
	w.now = max(w.now, d)
}

func TestTimersRingAtTheFirstMomentOfTheirInstantOnTheirClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(Options{StepTime: -1})
		w.now = time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "now"))
		c := w.Clock("c", rapid.Int64Range(ClockRateMin, ClockRateMax).Draw(t, "ppm"), time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "offset")))
		d := time.Duration(rapid.Int64Range(-5, int64(time.Hour)).Draw(t, "delay"))
		want := c.Now().Add(max(d, 0))
		var rang time.Time
		c.AfterFunc(d, func() { rang = c.Now() })
		due, now := w.timers[0].due, w.now
		if err := w.Step(); err != nil {
			t.Fatal(err)
		}
		if rang.Before(want) {
			t.Fatalf("rang at %v, %v too early", rang, want.Sub(rang))
		}
		if due > now && c.local(due-1) >= want.Sub(w.opts.Start)-c.offset {
			t.Fatalf("due at %v, and a nanosecond earlier it was time already", due)
		}
	})
}

func TestAClockRunsAtItsRate(t *testing.T) {
	w := New(Options{})
	slow, fast := w.Clock("slow", 900_000, 0), w.Clock("fast", 1_100_000, time.Minute)
	a, b := slow.Now(), fast.Now()
	w.now = time.Hour
	if got := slow.Now().Sub(a); got != 54*time.Minute {
		t.Errorf("in an hour the slow clock counted %v", got)
	}
	if got := fast.Now().Sub(b); got != 66*time.Minute {
		t.Errorf("in an hour the fast clock counted %v", got)
	}
	if b.Sub(a) != time.Minute {
		t.Errorf("the offset is %v", b.Sub(a))
	}
	mustPanic(t, "too slow", func() { w.Clock("c", ClockRateMin-1, 0) })
	mustPanic(t, "too fast", func() { w.Clock("c", ClockRateMax+1, 0) })
}

func TestTheSeedBreaksTiesOfTimers(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(50) {
		w := New(Options{Seed: seed})
		c, order := w.Clock("c", 1_000_000, 0), ""
		for _, name := range []string{"a", "b"} {
			c.AfterFunc(time.Second, func() { order += name })
		}
		drainTimers(t, w)
		orders[order] = true
	}
	if !orders["ab"] || !orders["ba"] {
		t.Errorf("two timers of one instant rang in the orders %v", orders)
	}
}

func drainTimers(t *testing.T, w *World) {
	t.Helper()
	if err := w.Run(1000, func() bool { return w.Idle() && len(w.Timers()) == 0 }); err != nil {
		t.Fatal(err)
	}
}

func TestATimerThatIsDueCanStillBeStoppedOrMoved(t *testing.T) {
	w := New(Options{StepTime: -1})
	c, rang := w.Clock("c", 1_000_000, 0), ""
	stopped := c.AfterFunc(time.Second, func() { rang += "stopped " })
	moved := c.AfterFunc(time.Second, func() { rang += "moved " })
	w.now = 2 * time.Second
	w.fireDue()
	if !stopped.Stop() || !moved.Reset(time.Second) {
		t.Error("a due timer did not count as pending")
	}
	if stopped.Stop() {
		t.Error("a stopped timer is pending")
	}
	drainTimers(t, w)
	if rang != "moved " || w.Now() != 3*time.Second {
		t.Errorf("rang %q at %v", rang, w.Now())
	}
	if moved.Reset(time.Second) {
		t.Error("a timer that rang is pending")
	}
	drainTimers(t, w)
	if rang != "moved moved " {
		t.Errorf("rang %q", rang)
	}
}

func TestAChannelTimerTellsOnceAndForgetsWhenStopped(t *testing.T) {
	w := New(Options{StepTime: -1})
	c := w.Clock("c", 1_000_000, 0)
	timer := c.NewTimer(time.Second)
	drainTimers(t, w)
	if got := len(timer.C()); got != 1 {
		t.Fatalf("%d instants", got)
	}
	timer.Reset(time.Second)
	if len(timer.C()) != 0 {
		t.Error("a stale instant is left after Reset")
	}
	drainTimers(t, w)
	timer.Stop()
	if len(timer.C()) != 0 {
		t.Error("a stale instant is left after Stop")
	}
}

func TestAThousandTimersRingInTheOrderOfTheirInstants(t *testing.T) {
	w := New(Options{StepTime: -1})
	c := w.Clock("c", 1_000_000, 0)
	var rang []time.Duration
	for range 1000 {
		c.AfterFunc(time.Duration(w.rand.Int64N(1_000_000)), func() { rang = append(rang, w.Now()) })
	}
	stepTo(w, 500_000)
	half := len(rang)
	if half < 400 || half > 600 {
		t.Errorf("%d of 1000 timers rang in half of the time", half)
	}
	drainTimers(t, w)
	for i := 1; i < len(rang); i++ {
		if rang[i] < rang[i-1] {
			t.Fatal(fmt.Sprint("time went back at ", i))
		}
	}
}
