package actors

import (
	"fmt"
	"testing"
)

func TestAWatcherHearsOfEachIncarnationExactlyOnce(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	idle := start(func(*Turn) {})
	target := spawn(t, s, Spec[any]{Name: "target", Kind: "t", New: idle})
	gone := spawn(t, s, Spec[any]{Name: "gone", Kind: "t", New: idle})
	gone.Stop()
	h.all()
	var heard []uint64
	var child Ref[any]
	spawn(t, s, Spec[any]{Name: "w", Kind: "w", New: start(func(turn *Turn) {
		if turn.Lifecycle() == Started {
			child = spawn(t, turn, Spec[any]{Name: "c", Kind: "t", New: idle})
			for range 2 {
				turn.Watch(target)
				turn.Watch(child)
				turn.Watch(RefOf[any](turn))
			}
			turn.Watch(gone)
			turn.Watch(Ref[any]{})
		}
		for _, end := range turn.ChildTerminated() {
			heard = append(heard, end.ID)
		}
	})})
	h.all()
	if fmt.Sprint(heard) != fmt.Sprint([]uint64{gone.ID(), 0}) {
		t.Fatalf("heard %v: want the dead one and the zero ref, at once", heard)
	}
	heard = nil
	target.Stop()
	child.Stop()
	h.all()
	if fmt.Sprint(heard) != fmt.Sprint([]uint64{target.ID(), child.ID()}) {
		t.Fatalf("heard %v", heard)
	}
}

func TestAWatchedActorForgetsWatchersThatEndOrUnwatch(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	target := spawn(t, s, Spec[any]{Name: "target", Kind: "t", New: start(func(*Turn) {})})
	for i := range 10 {
		w := spawn(t, s, Spec[any]{Name: fmt.Sprint(i), Kind: "w", Bounds: roomy(), New: start(func(turn *Turn) {
			if turn.Lifecycle() == Started {
				turn.Watch(target)
			}
			if len(turn.Messages()) > 0 {
				turn.Unwatch(target)
				turn.Unwatch(target)
			}
			if len(turn.ChildTerminated()) > 0 {
				t.Error("heard of it")
			}
		})})
		h.all()
		if i%2 == 0 {
			w.Stop()
		} else if err := w.TrySend("unwatch", 0); err != nil {
			t.Fatal(err)
		}
		h.all()
	}
	if n := len(target.b.watchers); n != 0 {
		t.Errorf("%d watchers left", n)
	}
	target.Stop()
	h.all()
}

func TestWatchersAreToldInTheOrderTheyCame(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	target := spawn(t, s, Spec[any]{Name: "target", Kind: "t", New: start(func(*Turn) {})})
	var told []int
	for i := range 20 {
		spawn(t, s, Spec[any]{Name: fmt.Sprint(i), Kind: "w", New: start(func(turn *Turn) {
			if turn.Lifecycle() == Started {
				turn.Watch(target)
			}
			if len(turn.ChildTerminated()) > 0 {
				told = append(told, i)
			}
		})})
	}
	h.all()
	target.Stop()
	h.all()
	for i, n := range told {
		if n != i {
			t.Fatalf("order %v", told)
		}
	}
	if len(told) != 20 {
		t.Fatalf("told %v", told)
	}
}
