package simrt

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// adder is an actor whose state depends on the order of what it gets.
type adder struct {
	state uint64
	seen  func(n uint64)
}

func (a *adder) Receive(t *actors.Turn) {
	for _, m := range t.Messages() {
		n := m.(uint64)
		a.state = a.state*31 + n
		if a.seen != nil {
			a.seen(n)
		}
	}
}

func (a *adder) Digest() uint64 { return a.state }

// system makes an actor system inside w, and ends it with the test.
func system(t *testing.T, w *World) *actors.System {
	t.Helper()
	s := actors.NewSystem(actors.Options{Name: "test", Clock: w.Clock("clock", 1_000_000, 0), Scheduler: w.Scheduler("n/")})
	t.Cleanup(func() {
		s.StopAll()
		for w.Step() == nil && len(s.Live()) > 0 {
		}
		if live := s.Live(); len(live) > 0 {
			t.Errorf("actors are left: %v", live)
		}
		if left := w.Close(); len(left) > 0 {
			t.Errorf("coroutines are left: %v", left)
		}
	})
	return s
}

func spawn(t *testing.T, s *actors.System, name string, a actors.Actor) actors.Ref[uint64] {
	t.Helper()
	ref, err := actors.Spawn[uint64](s, actors.Spec[uint64]{
		Name: name, Kind: "adder", New: func() actors.Actor { return a }, Bounds: actors.Bounds{DataItems: 1000, DataBytes: 1 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func send(t *testing.T, to actors.Ref[uint64], n uint64) {
	t.Helper()
	if err := to.TrySend(n, 8); err != nil {
		t.Fatal(err)
	}
}

// drain steps until nothing can happen any more.
func drain(t *testing.T, w *World) {
	t.Helper()
	if err := w.Run(100_000, w.Idle); err != nil {
		t.Fatal(err)
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

// play runs a small world of actors, coroutines and timers, and returns its trace.
func play(t *testing.T, seed uint64) (lines []string, hash uint64) {
	t.Helper()
	w := New(Options{Seed: seed, Trace: func(l Line) { lines = append(lines, fmt.Sprintf("%v %016x", l, l.Hash)) }})
	s := system(t, w)
	var refs []actors.Ref[uint64]
	for i := range 4 {
		refs = append(refs, spawn(t, s, fmt.Sprint(i), &adder{}))
	}
	clock := w.Clock("clock", 1_100_000, 0)
	for i := range 5 {
		w.Go(Pumps, fmt.Sprintf("pump %d", i), func() {
			gate := w.NewGate()
			for n := range 10 {
				_ = refs[w.Rand().IntN(len(refs))].TrySend(uint64(10*i+n), 8)
				clock.AfterFunc(1000, gate.Ring)
				gate.Wait()
			}
		})
	}
	drain(t, w)
	return lines, w.Hash()
}
