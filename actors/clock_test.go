package actors

import (
	"fmt"
	"testing"
	"time"
)

func TestManualClockFiresDueTimersInOrderAtTheirInstants(t *testing.T) {
	c := NewManualClock(time.Unix(0, 0))
	var fired []string
	note := func(name string) func() {
		return func() { fired = append(fired, fmt.Sprintf("%s@%d", name, c.Now().Unix())) }
	}
	c.AfterFunc(3*time.Second, note("c"))
	c.AfterFunc(time.Second, func() {
		note("a")()
		c.AfterFunc(time.Second, note("nested"))
	})
	c.AfterFunc(3*time.Second, note("d"))
	stopped := c.AfterFunc(2*time.Second, note("stopped"))
	moved := c.AfterFunc(time.Second, note("moved"))
	if !stopped.Stop() || stopped.Stop() || !moved.Reset(4*time.Second) {
		t.Error("Stop or Reset told the wrong thing")
	}
	c.Advance(3 * time.Second)
	if got, want := fmt.Sprint(fired), "[a@1 nested@2 c@3 d@3]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if at, ok := c.Next(); !ok || at.Unix() != 4 || c.Pending() != 1 {
		t.Errorf("next %v %v", at, ok)
	}
	c.Advance(time.Second)
	if moved.Stop() || moved.Reset(time.Second) {
		t.Error("a fired timer was pending")
	}
	c.Advance(time.Second)
	if len(fired) != 6 {
		t.Errorf("%v", fired)
	}
	mustPanic(t, "going back", func() { c.Advance(-1) })
}

func TestChanTimersTellOnceAndNeverAStaleInstant(t *testing.T) {
	c := NewManualClock(time.Unix(0, 0))
	timer := c.NewTimer(time.Second)
	c.Advance(time.Second)
	timer.Reset(time.Second)
	select {
	case <-timer.C():
		t.Fatal("stale instant after Reset")
	default:
	}
	c.Advance(5 * time.Second)
	if at := <-timer.C(); at.Unix() != 2 {
		t.Error(at)
	}
	timer.Reset(0)
	c.Advance(0)
	timer.Stop()
	select {
	case <-timer.C():
		t.Fatal("stale instant after Stop")
	default:
	}
}

func TestRealClockRuns(t *testing.T) {
	c := RealClock()
	before := c.Now()
	done := make(chan struct{})
	c.AfterFunc(time.Millisecond, func() { close(done) })
	wait(t, done, "AfterFunc")
	timer := c.NewTimer(time.Millisecond)
	if at := wait(t, timer.C(), "timer"); at.Before(before.Add(time.Millisecond)) {
		t.Errorf("fired at %v, before %v", at, before)
	}
	if timer.Stop() || timer.Reset(time.Hour) || !timer.Stop() {
		t.Error("Stop or Reset told the wrong thing")
	}
}
