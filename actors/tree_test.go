package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestChildrenEndBeforeTheirParentLeafFirst(t *testing.T) {
	s := NewSystem(Options{})
	var mu sync.Mutex
	var order []string
	ready := make(chan struct{})
	var node func(depth int) func() Actor
	node = func(depth int) func() Actor {
		return start(func(turn *Turn) {
			mu.Lock()
			order = append(order, fmt.Sprintf("%s %v", turn.Self().Path(), turn.Lifecycle()))
			mu.Unlock()
			if turn.Lifecycle() != Started {
				return
			}
			if depth == 0 {
				close(ready)
				return
			}
			spawn(t, turn, Spec[any]{Name: "c", Kind: "node", New: node(depth - 1)})
		})
	}
	spawn(t, s, Spec[any]{Name: "r", Kind: "node", New: node(2)})
	wait(t, ready, "leaf")
	shutdown(t, s)
	got := strings.Join(order[3:], ", ")
	want := "r stopping, r/c stopping, r/c/c stopping, r/c/c stopped, r/c none, r/c stopped, r none, r stopped"
	if got != want {
		t.Errorf("order\n got %s\nwant %s", got, want)
	}
	if _, err := Spawn(s, Spec[any]{Name: "x", Kind: "x", New: node(0)}); !errors.Is(err, ErrStopped) {
		t.Errorf("spawn after shutdown: %v", err)
	}
}

func TestANameIsTakenUntilTheParentHasHeardOfTheEnd(t *testing.T) {
	s := newSystem(t, Options{})
	result := make(chan error, 4)
	child := func(turn *Turn) error {
		_, err := Spawn(turn, Spec[any]{Name: "c", Kind: "c", New: start(func(*Turn) {})})
		return err
	}
	var first Ref[any]
	spawn(t, s, Spec[any]{Name: "p", Kind: "p", New: start(func(turn *Turn) {
		if turn.Lifecycle() == Started {
			first = spawn(t, turn, Spec[any]{Name: "c", Kind: "c", New: start(func(*Turn) {})})
			result <- child(turn) // alive
			first.Stop()
			<-s.Watch(first) // gone, but we have not been told: it is still ours
			result <- child(turn)
		}
		for range turn.ChildTerminated() {
			result <- child(turn)
		}
	})})
	for i, want := range []error{ErrNameTaken, ErrNameTaken, nil} {
		if err := wait(t, result, "spawn"); !errors.Is(err, want) {
			t.Errorf("spawn %d: %v, want %v", i, err, want)
		}
	}
	if first.TrySend(1, 0) != ErrStopped {
		t.Error("a ref to the old incarnation reached the new one")
	}
}

func TestATopLevelNameIsFreeWhenItsEndIsTold(t *testing.T) {
	s := newSystem(t, Options{})
	spec := Spec[any]{Name: "a", Kind: "a", New: start(func(*Turn) {})}
	for range 200 {
		ref := spawn(t, s, spec)
		if _, err := Spawn(s, spec); !errors.Is(err, ErrNameTaken) {
			t.Fatalf("second of one name: %v", err)
		}
		ref.Stop()
		if end := wait(t, s.Watch(ref), "end"); end.ID != ref.ID() || end.Reason != Orderly {
			t.Fatalf("%+v", end)
		}
	}
}

func TestNamesThatCollideAcrossLevelsAreRefused(t *testing.T) {
	s := newSystem(t, Options{})
	result := make(chan error, 2)
	idle := start(func(*Turn) {})
	spawn(t, s, Spec[any]{Name: "a/b", Kind: "x", New: idle})
	spawn(t, s, Spec[any]{Name: "a", Kind: "x", New: start(func(turn *Turn) {
		if turn.Lifecycle() == Started {
			_, err := Spawn(turn, Spec[any]{Name: "b", Kind: "x", Tenant: "t", New: idle})
			result <- err
			_, err = Spawn(turn, Spec[any]{Name: "c", Kind: "x", New: idle})
			result <- err
		}
	})})
	if err := wait(t, result, "spawn"); !errors.Is(err, ErrNameTaken) {
		t.Error(err)
	}
	if err := wait(t, result, "spawn"); err != nil {
		t.Error(err)
	}
}

func TestBadSpecsAreRefusedNamingEveryMistake(t *testing.T) {
	s := newSystem(t, Options{})
	_, err := Spawn(s, Spec[any]{Name: "/", Bounds: Bounds{DataItems: 1, Cells: -1}})
	for _, word := range []string{"Name", "Kind", "New", "negative", "DataBytes"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not speak of %s", err, word)
		}
	}
	if !errors.Is(err, ErrBadSpec) {
		t.Error(err)
	}
	for _, name := range []string{"", "a//b", "a/", "a\nb", "\xff", strings.Repeat("x", nameBytesMax+1)} {
		if err := checkName(name); !errors.Is(err, ErrBadSpec) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if err := checkName(strings.Repeat("x", nameBytesMax)); err != nil {
		t.Error(err)
	}
}

// field case ACT-05
func TestAPanicTakesTheChildrenAlongAndReachesTheParentWithItsStack(t *testing.T) {
	events := &recorder{}
	s := newSystem(t, Options{Events: events})
	ended := make(chan Terminated, 1)
	var grandchild Ref[any]
	var failedTurns []string
	spawn(t, s, Spec[any]{Name: "p", Kind: "p", New: start(func(turn *Turn) {
		if turn.Lifecycle() == Started {
			spawn(t, turn, Spec[any]{Name: "c", Kind: "c", New: start(func(turn *Turn) {
				if f := turn.Failed(); f != nil {
					failedTurns = append(failedTurns, turn.Lifecycle().String())
					return
				}
				if turn.Lifecycle() == Started {
					grandchild = spawn(t, turn, Spec[any]{Name: "g", Kind: "g", New: start(func(*Turn) {})})
					none := turn.Messages()
					_ = none[len(none)]
				}
			})})
		}
		for _, end := range turn.ChildTerminated() {
			ended <- end
		}
	})})
	end := wait(t, ended, "end")
	if end.Reason != Panicked || end.Panic.During != "started" || !strings.Contains(end.Panic.Error(), "index out of range") {
		t.Fatalf("%+v", end)
	}
	if !strings.Contains(string(end.Panic.Stack), "tree_test.go") || len(end.Panic.Stack) > stackBytesMax {
		t.Errorf("stack of %d bytes: %s", len(end.Panic.Stack), end.Panic.Stack)
	}
	if grandchild.Alive() || !slices.Equal(failedTurns, []string{"stopped"}) {
		t.Errorf("grandchild alive: %v; turns after the panic: %v", grandchild.Alive(), failedTurns)
	}
	if got := events.named("actor_panicked"); len(got) != 1 || got[0].(ActorPanicked).Path != "p/c" {
		t.Errorf("events %v", got)
	}
}

func TestAfterAPanicTheActorGetsItsStoppedTurnAndNothingElse(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	var after []string
	failed := false
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(turn *Turn) {
		if failed {
			after = append(after, turn.Lifecycle().String())
			return
		}
		if turn.Lifecycle() == Started {
			spawn(t, turn, Spec[int]{Name: "c", Kind: "c", New: start(func(*Turn) {})})
			return
		}
		turn.Watch(Ref[int]{}) // its end is waiting to be told
		turn.ArmWake(turn.Now())
		RefOf[int](turn).Signal(Cell{})
		failed = true
		panic("x")
	})})
	h.one()
	_ = ref.TrySend(1, 1)
	h.all()
	if !slices.Equal(after, []string{"stopped"}) {
		t.Errorf("turns after the panic: %v", after)
	}
}

func TestAnEndOfTheGoroutineCountsAsAPanic(t *testing.T) {
	for _, tenant := range []string{"", "t"} {
		s := newSystem(t, Options{Executors: 1})
		exit := func(turn *Turn) {
			if len(turn.Messages()) > 0 {
				runtime.Goexit()
			}
		}
		for i := range 3 { // the executor and the workers survive it
			unknown := make(chan int, 1)
			ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Tenant: tenant, Bounds: roomy(), New: start(exit), OnUnanswered: func(m int) { unknown <- m }})
			end := s.Watch(ref)
			if err := ref.TrySend(i, 1); err != nil {
				t.Fatal(err)
			}
			if got := wait(t, end, "end"); got.Reason != Panicked || wait(t, unknown, "unknown") != i {
				t.Errorf("%+v", got)
			}
		}
	}
}

func TestANewThatPanicsOrReturnsNilEndsTheActorOnly(t *testing.T) {
	s := newSystem(t, Options{})
	for _, f := range []func() Actor{func() Actor { panic("no") }, func() Actor { return nil }} {
		refused := make(chan int, 1)
		ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), New: f, OnUnstepped: func(m int) { refused <- m }})
		end := s.Watch(ref)
		if ref.TrySend(7, 0) == nil {
			wait(t, refused, "refusal")
		}
		if got := wait(t, end, "end"); got.Reason != Panicked || got.Panic.During != "new" {
			t.Errorf("%+v", got)
		}
	}
}

func TestAStoppingActorCannotSpawn(t *testing.T) {
	s := newSystem(t, Options{})
	got := make(chan error, 2)
	ref := spawn(t, s, Spec[any]{Name: "a", Kind: "a", New: start(func(turn *Turn) {
		if l := turn.Lifecycle(); l == Stopping || l == Stopped {
			_, err := Spawn(turn, Spec[any]{Name: "b", Kind: "b", New: start(func(*Turn) {})})
			got <- err
		}
	})})
	ref.Stop()
	for range 2 {
		if err := wait(t, got, "spawn"); !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	}
}

func TestShutdownNamesWhoDoesNotEndAndCanBeCalledAgain(t *testing.T) {
	s := NewSystem(Options{Name: "n1"})
	gate := make(chan struct{})
	spawn(t, s, Spec[any]{Name: "stuck", Kind: "a", New: start(func(*Turn) { <-gate })})
	spawn(t, s, Spec[any]{Name: "fine", Kind: "a", New: start(func(*Turn) {})})
	ctx, cancel := context.WithCancel(context.Background())
	fine := s.Watch(Ref[any]{s.tops["fine"]})
	s.StopAll()
	wait(t, fine, "end of fine")
	cancel()
	err := s.Shutdown(ctx)
	var late *ShutdownError
	if !errors.As(err, &late) || !slices.Equal(late.Live, []string{"stuck"}) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "n1") {
		t.Errorf("%v", err)
	}
	close(gate)
	shutdown(t, s)
	shutdown(t, s)
}

// field case ACT-06
func TestShutdownRacingSpawnsAndFailuresEndsEverything(t *testing.T) {
	for range 12 {
		s := NewSystem(Options{})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					ref, err := Spawn(s, Spec[int]{Name: fmt.Sprintf("%d-%d", g, i), Kind: "a", Bounds: roomy(), Tenant: []string{"", "t"}[i%2], New: start(func(turn *Turn) {
						if turn.Lifecycle() == Started {
							spawn2(turn, i)
						}
						if len(turn.Messages()) > 0 && i%5 == 0 {
							panic("x")
						}
					})})
					if errors.Is(err, ErrStopped) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if i%3 == 0 {
						ref.Stop()
					}
					_ = ref.TrySend(i, 1)
				}
			})
		}
		runtime.Gosched()
		shutdown(t, s)
		wg.Wait()
		if live := s.Live(); len(live) != 0 {
			t.Fatalf("left: %v", live)
		}
	}
}

// spawn2 tries to have two children; a stop decided meanwhile refuses, which is fine.
func spawn2(turn *Turn, i int) {
	for c := range 2 {
		_, _ = Spawn(turn, Spec[int]{Name: fmt.Sprint(c), Kind: "c", New: start(func(turn *Turn) {
			if i%4 == 0 && turn.Lifecycle() == Stopping {
				panic("child")
			}
		})})
	}
}

func TestATurnUsedAfterReceivePanics(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	var kept *Turn
	spawn(t, s, Spec[any]{Name: "a", Kind: "a", New: start(func(turn *Turn) { kept = turn })})
	h.all()
	mustPanic(t, "Messages", func() { kept.Messages() })
	mustPanic(t, "Stop", func() { kept.Stop() })
}

func TestSelfAndRefOfAreTheIncarnation(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	var self Self
	var own Ref[int]
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "k", New: start(func(turn *Turn) {
		self, own = turn.Self(), RefOf[int](turn)
		if turn.Lifecycle() == Started {
			mustPanic(t, "RefOf of another type", func() { RefOf[string](turn) })
		}
	})})
	h.all()
	if own != ref || self.ID() != ref.ID() || self.Path() != "a" || self.Name() != "a" || self.Kind() != "k" || self.Clock() != s.Clock() {
		t.Errorf("%+v %v %v", self, own, ref)
	}
}
