package simrt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/actors"
)

func TestTheSameSeedGivesTheSameTraceToTheLastHash(t *testing.T) {
	for seed := range uint64(20) {
		a, hashA := play(t, seed)
		b, hashB := play(t, seed)
		if hashA != hashB || !slices.Equal(a, b) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

func TestDifferentSeedsGiveDifferentTraces(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(200) {
		_, hash := play(t, seed)
		if other, twice := seen[hash]; twice {
			t.Errorf("seeds %d and %d have the same hash", seed, other)
		}
		seen[hash] = seed
	}
}

// swap sends two messages of one type and size in one order or the other, in one turn or in two, and returns the trace hash.
func swap(t *testing.T, turnItems int, first, second uint64) uint64 {
	w := New(Options{Seed: 7, TurnItems: turnItems})
	ref := spawn(t, system(t, w), "a", actors.Around(&adder{}, nil, nil)) // its digest is that of the actor inside
	send(t, ref, first)
	send(t, ref, second)
	drain(t, w)
	return w.Hash()
}

func TestSwappingTwoMessagesChangesTheHash(t *testing.T) {
	for _, items := range []int{1, 64} {
		if swap(t, items, 1, 2) == swap(t, items, 2, 1) {
			t.Errorf("turns of %d: the order of two messages is not in the hash", items)
		}
		first := swap(t, items, 1, 2)
		if again := swap(t, items, 1, 2); again != first {
			t.Errorf("turns of %d: the hash depends on something else", items)
		}
	}
}

func TestATraceSaysWhoDidWhat(t *testing.T) {
	var lines []string
	w := New(Options{Seed: 1, StepTime: -1, Trace: func(l Line) { lines = append(lines, strings.Join(strings.Fields(l.String()), " ")) }})
	ref := spawn(t, system(t, w), "a", &adder{seen: func(n uint64) { w.Note("took %d", n) }})
	drain(t, w)
	send(t, ref, 5)
	send(t, ref, 6)
	for n := 0; len(lines) < 2 || !strings.Contains(lines[len(lines)-1], "took 6"); n++ {
		if err := w.Step(); err != nil || n > 5 {
			t.Fatalf("%v: %q", err, lines)
		}
	}
	if lines[0] != "1 0s turn n/a started" {
		t.Errorf("first line: %q", lines[0])
	}
	if got := strings.Join(lines[1:], "\n"); !strings.Contains(got, "turn n/a took 5") {
		t.Errorf("no line says that a took 5:\n%s", got)
	}
}

func TestAnIdleWorldSaysSo(t *testing.T) {
	w := New(Options{})
	if !w.Idle() || !errors.Is(w.Step(), ErrIdle) {
		t.Error("an empty world has something to do")
	}
	if err := w.Run(10, func() bool { return false }); !errors.Is(err, ErrIdle) {
		t.Errorf("%v, want idle", err)
	}
	var again func()
	again = func() { w.Post(Outside, "loop", again) }
	again()
	if err := w.Run(10, func() bool { return false }); err == nil || errors.Is(err, ErrIdle) {
		t.Errorf("%v, want that it takes too long", err)
	}
}

func TestAFailedCheckEndsTheRunAfterItsStep(t *testing.T) {
	wrong := errors.New("wrong")
	n := 0
	w := New(Options{Check: func() error {
		if n == 3 {
			return wrong
		}
		return nil
	}})
	for range 5 {
		w.Post(Network, "count", func() { n++ })
	}
	if err := w.Run(10, func() bool { return n == 5 }); !errors.Is(err, wrong) || n != 3 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestAClassWithoutWeightRunsWhenNothingElseCan(t *testing.T) {
	w := New(Options{Weights: [classes]int{Pumps: 1}})
	var order []string
	w.Post(Turns, "t", func() { order = append(order, "turn") })
	for range 5 {
		w.Post(Pumps, "p", func() { order = append(order, "pump") })
	}
	drain(t, w)
	if got := fmt.Sprint(order); got != "[pump pump pump pump pump turn]" {
		t.Error(got)
	}
}

func TestTurnsAreAsSmallAsTheSeedLikesAndNeverLarger(t *testing.T) {
	w := New(Options{Seed: 3, TurnItems: 5})
	s := w.Scheduler("n/")
	seen := map[int]bool{}
	for range 200 {
		items, bytes := s.TurnLimit()
		if items < 1 || items > 5 || bytes < 1 || bytes > turnBytesMax {
			t.Fatalf("a turn of %d messages and %d bytes", items, bytes)
		}
		seen[items] = true
	}
	if len(seen) != 5 {
		t.Errorf("sizes seen: %v", seen)
	}
	var _ actors.TurnLimiter = s
}

func TestAContextThatEndsWakesWhoeverWaitsForIt(t *testing.T) {
	w := New(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	got := ""
	w.Go(Pumps, "waits", func() {
		got = fmt.Sprint(w.NewGate().Wait(context.Background(), ctx))
	})
	drain(t, w)
	w.Post(Outside, "ends", cancel)
	drain(t, w)
	if got != "false" || len(w.Alive()) != 0 {
		t.Errorf("waited: %s, alive: %v", got, w.Alive())
	}
}
