package simrt

import (
	"context"
	"testing"
	"time"
)

// Nothing of a life runs after its end: no function that was ready, no timer, and no coroutine, wherever it waited; what others do goes on.
func TestNothingOfALifeRunsAfterItsEnd(t *testing.T) {
	w := New(Options{Seed: 7, StepTime: -1})
	life := w.NewLife()
	clock := w.Clock("clock", 1_000_000, 0)
	own := life.Clock(clock)
	ran, others, left := 0, 0, 0
	life.Post(Turns, "turn", func() { ran++ })
	life.Scheduler("n/").Schedule(func() { ran++ })
	own.AfterFunc(time.Second, func() { ran++ })
	clock.AfterFunc(2*time.Second, func() { others++ })
	gate, rung := w.NewGate(), w.NewGate()
	for _, g := range []*Gate{gate, rung} {
		life.Go(Pumps, "pump", func() {
			defer func() { left++ }()
			for g.Wait() || g.Wait(context.Background()) {
				ran++
			}
			if w.Pause() {
				ran++
			}
		})
	}
	for len(w.waiting) < 2 { // both pumps stand at their gates
		if err := w.Step(); err != nil {
			t.Fatal(err)
		}
	}
	ran = 0
	rung.Ring()
	w.Post(Outside, "the end", func() { life.End() })
	life.Go(Pumps, "never begun", func() { ran++ })
	life.End()
	life.End()
	life.Go(Pumps, "too late", func() { ran++ })
	life.Post(Turns, "too late", func() { ran++ })
	own.AfterFunc(time.Second, func() { ran++ })
	if err := w.Run(100, func() bool { return others > 0 }); err != nil {
		t.Fatal(err)
	}
	if ran != 0 || left != 2 || !life.Over() {
		t.Errorf("%d things ran after the end, %d of 2 pumps have left", ran, left)
	}
	if armed := w.Timers(); len(armed) != 0 {
		t.Errorf("armed: %v", armed)
	}
	if still := w.Close(); len(still) != 0 {
		t.Errorf("alive: %v", still)
	}
}

func TestACoroutineDoesNotEndItsOwnLife(t *testing.T) {
	w := New(Options{Seed: 1})
	life := w.NewLife()
	failed := false
	life.Go(Pumps, "pump", func() {
		defer func() { failed = recover() != nil }()
		life.End()
	})
	if err := w.Step(); err != nil {
		t.Fatal(err)
	}
	if !failed {
		t.Error("a coroutine has ended the life that it belongs to")
	}
	w.Close()
}

// What has ended by itself is forgotten, so that a long life of many short pumps costs what is alive.
func TestALifeForgetsWhatHasEnded(t *testing.T) {
	w := New(Options{Seed: 1})
	life := w.NewLife()
	for range 1000 {
		life.Go(Pumps, "pump", func() {})
		if err := w.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if len(life.coroutines) > 100 {
		t.Errorf("%d coroutines are remembered, and none is alive", len(life.coroutines))
	}
	life.End()
}
