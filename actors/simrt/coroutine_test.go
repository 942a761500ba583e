package simrt

import (
	"context"
	"fmt"
	"testing"
)

func TestRingsDoNotAddUp(t *testing.T) {
	w := New(Options{})
	gate, passed := w.NewGate(), 0
	gate.Ring()
	gate.Ring()
	w.Go(Pumps, "p", func() {
		for gate.Wait() {
			passed++
		}
	})
	drain(t, w)
	if passed != 1 {
		t.Errorf("two rings let %d waits through", passed)
	}
	w.Post(Outside, "ring", func() { gate.Ring(); gate.Ring() })
	drain(t, w)
	if passed != 2 {
		t.Errorf("%d waits went through, want 2", passed)
	}
	if left := w.Close(); fmt.Sprint(left) != "[p]" || passed != 2 {
		t.Errorf("left: %v, passed: %d", left, passed)
	}
}

func TestAnEndedContextIsToldBeforeARing(t *testing.T) {
	w := New(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	gate := w.NewGate()
	gate.Ring()
	var first, second bool
	w.Go(Pumps, "p", func() {
		first = gate.Wait(ctx)
		second = gate.Wait()
	})
	drain(t, w)
	if first || !second {
		t.Errorf("with an ended context: %v; the ring is still there: %v", first, second)
	}
}

func TestOnlyOneCoroutineAtATimeMayWaitAtAGate(t *testing.T) {
	w := New(Options{})
	gate := w.NewGate()
	w.Go(Pumps, "first", func() { gate.Wait() })
	drain(t, w)
	w.Go(Pumps, "second", func() { gate.Wait() })
	mustPanic(t, "two at one gate", func() { drain(t, w) })
	w.Close()
}

func TestWhoIsNoCoroutineMustNotWait(t *testing.T) {
	w := New(Options{})
	mustPanic(t, "wait", func() { w.NewGate().Wait() })
	mustPanic(t, "pause", func() { w.Pause() })
}

func TestAPanicOfACoroutineIsOneOfItsStep(t *testing.T) {
	w := New(Options{})
	w.Go(Pumps, "p", func() { panic("broken") })
	mustPanic(t, "step", func() { _ = w.Step() })
	if w.Running() == "p" && w.current != nil {
		t.Error("the coroutine still counts as running")
	}
}

func TestCloseEndsEveryCoroutineAndNamesThem(t *testing.T) {
	w := New(Options{})
	ended := 0
	for i := range 3 {
		w.Go(Pumps, fmt.Sprint(i), func() {
			defer func() { ended++ }()
			gate := w.NewGate()
			if gate.Wait() || w.Pause() || gate.Wait() || w.NewGate().Wait() {
				t.Error("a wait of a closed world was let through")
			}
		})
	}
	w.Go(Pumps, "done", func() {})
	drain(t, w)
	w.Go(Pumps, "never began", func() { t.Error("ran after the end") })
	left := w.Close()
	if len(left) != 4 || ended != 3 {
		t.Errorf("left %v, %d ended", left, ended)
	}
	mustPanic(t, "go after close", func() { w.Go(Pumps, "late", func() {}) })
}

func TestPauseLetsOthersGoFirst(t *testing.T) {
	both := map[string]bool{}
	for seed := range uint64(50) {
		w := New(Options{Seed: seed})
		order := ""
		for _, name := range []string{"a", "b"} {
			w.Go(Pumps, name, func() {
				for range 2 {
					order += name
					w.Pause()
				}
			})
		}
		drain(t, w)
		both[order] = true
	}
	if len(both) < 4 {
		t.Errorf("50 seeds gave the orders %v", both)
	}
}

func TestTooManyCoroutinesAreALeak(t *testing.T) {
	w := New(Options{})
	w.alive = make([]*coroutine, coroutinesMax)
	mustPanic(t, "one more", func() { w.Go(Pumps, "p", func() {}) })
}
