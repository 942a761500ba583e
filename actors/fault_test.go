package actors

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// faultSystem is a system on goroutines and a virtual clock: what is held back stays so until the test advances.
func faultSystem(t testing.TB, opts Options) (*System, *ManualClock) {
	clock := NewManualClock(time.Unix(1_700_000_000, 0))
	opts.Clock = clock
	return newSystem(t, opts), clock
}

// tenants runs f on the pooled and on the fair dispatcher.
func tenants(t *testing.T, f func(t *testing.T, tenant string)) {
	for _, tenant := range []string{"", "t"} {
		t.Run("tenant="+tenant, func(t *testing.T) { f(t, tenant) })
	}
}

// clerk answers each request with an even number at once and leaves the others open. It is a parent's child named c.
func clerk(tenant string) Spec[*request] {
	return Spec[*request]{
		Name: "c", Kind: "clerk", Tenant: tenant, Bounds: Bounds{DataItems: 1000, DataBytes: 1 << 20},
		New: start(func(turn *Turn) {
			for _, m := range turn.Messages() {
				if r := m.(*request); r.n%2 == 0 {
					r.answer()
				}
			}
		}),
		OnUnstepped:  func(r *request) { r.unstepped.Add(1) },
		OnUnanswered: func(r *request) { r.unknow.Add(1) },
	}
}

func TestAnInjectedCrashIsARealOneAndSettlesEveryRequestOnce(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		events, reg := &recorder{}, prometheus.NewRegistry()
		s, h, _ := newHandDriven(t, Options{Events: events, Registerer: reg})
		var child Ref[*request]
		var ends []Terminated
		spawn(t, s, Spec[any]{Name: "p", Kind: "p", New: start(func(turn *Turn) {
			for _, x := range turn.ChildTerminated() {
				if x.Reason == Panicked { // at the end of the test it stops in order
					ends = append(ends, x)
				}
			}
			if turn.Lifecycle() == Started || len(ends) == 1 && !child.Alive() {
				child, _ = Spawn(turn, clerk(tenant)) // the second time: the name is free again
			}
		})})
		h.all()
		requests := make([]*request, 200)
		for i := range requests {
			requests[i] = &request{n: i}
			if err := child.TrySend(requests[i], 1); err != nil {
				t.Fatal(err)
			}
			if i == 49 {
				h.all() // 0 to 49 are stepped, the odd ones stay open
			}
		}
		first := child
		if err := s.Faults().Crash("p/c"); err != nil {
			t.Fatal(err)
		}
		h.all()
		var answered, unstepped, unknown int32
		for i, r := range requests {
			if r.answers() != 1 {
				t.Fatalf("request %d has %d answers", i, r.answers())
			}
			answered, unstepped, unknown = answered+r.answered.Load(), unstepped+r.unstepped.Load(), unknown+r.unknow.Load()
		}
		if answered != 25 || unknown != 25+64 || unstepped != 86 {
			t.Errorf("%d answered, %d unknown, %d refused", answered, unknown, unstepped)
		}
		if len(ends) != 1 || ends[0].Reason != Panicked || ends[0].Panic.During != "turn" || !errors.Is(ends[0].Panic.Value.(error), ErrInjected) {
			t.Errorf("the parent heard %+v", ends)
		}
		if first.Alive() || !child.Alive() || child == first {
			t.Error("the old incarnation lives, or the new one does not")
		}
		counts := scrape(t, reg)
		if counts["felixd_actor_panics_total{kind=clerk}"] != 1 || counts["felixd_actor_stopped_total{kind=clerk reason=panicked}"] != 1 {
			t.Errorf("the crash was not counted: %v", counts)
		}
		if got := events.list; len(got) < 2 || got[0] != (FaultInjected{Path: "p/c", Kind: "clerk", Do: FaultCrash}) || got[1].EventName() != "actor_panicked" {
			t.Errorf("events %+v", got)
		}
	})
}

func TestAnIdleActorCrashesAtOnceAndSoDoesAPausedOne(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		for _, pause := range []bool{false, true} {
			s, clock := faultSystem(t, Options{})
			ref := spawn(t, s, clerk(tenant))
			end := s.Watch(ref)
			r := &request{n: 1}
			if pause {
				if err := s.Faults().Pause("c", time.Minute); err != nil {
					t.Fatal(err)
				}
				_ = ref.TrySend(r, 1)
			}
			if err := s.Faults().Crash("c"); err != nil {
				t.Fatal(err)
			}
			if x := wait(t, end, "end"); x.Reason != Panicked {
				t.Errorf("%+v", x)
			}
			if pause && r.unknow.Load() != 1 {
				t.Error("the request that waited behind the pause was not settled")
			}
			if err := s.Faults().Crash("c"); !errors.Is(err, ErrUnknownActor) {
				t.Errorf("crashing what is gone: %v", err)
			}
			shutdown(t, s)
			if clock.Pending() != 0 {
				t.Error("a fault left a timer behind")
			}
		}
	})
}

func TestAPausedActorAcceptsUntilFullThenRefusesAndLosesNothing(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		s, clock := faultSystem(t, Options{})
		seen := make(chan int, 200)
		ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Tenant: tenant, Bounds: Bounds{DataItems: 100, DataBytes: 1 << 20, ControlItems: 1}, New: start(func(turn *Turn) {
			for _, m := range turn.Messages() {
				seen <- m.(int)
			}
		})})
		if err := s.Faults().Pause("a", time.Second); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := ref.TrySend(i, 1); err != nil {
				t.Fatalf("message %d of 100: %v", i, err)
			}
		}
		if err := ref.TrySend(100, 1); !errors.Is(err, ErrFull) {
			t.Fatalf("a full paused mailbox says %v", err)
		}
		_ = ref.Complete(-1)
		ref.Signal(Cell{Sender: 1})
		clock.Advance(time.Second - 1)
		if n := len(seen); n != 0 || ref.b.items.Load() != 100 {
			t.Fatalf("%d messages were stepped during the pause", n)
		}
		clock.Advance(1)
		for want := -1; want < 100; want++ { // the completion comes first
			if got := wait(t, seen, "message"); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
		if err := ref.TrySend(101, 1); err != nil {
			t.Fatalf("after the pause: %v", err)
		}
		wait(t, seen, "message after the pause")
	})
}

func TestASlowedActorTakesOneTurnPerDelay(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		s, h, clock := newHandDriven(t, Options{})
		turns := 0
		ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
			if turn.Lifecycle() == None {
				turns++
			}
		})})
		h.all()
		if err := s.Faults().Slow("a", 10*time.Millisecond, time.Second); err != nil {
			t.Fatal(err)
		}
		for range 5 * 64 { // five turns
			_ = ref.TrySend(0, 1)
		}
		for want := range 5 {
			h.all()
			clock.Advance(10*time.Millisecond - 1)
			h.all()
			if turns != want {
				t.Fatalf("%d turns a moment before the delay of the next is over, want %d", turns, want)
			}
			clock.Advance(1)
		}
		h.all()
		clock.Advance(500 * time.Millisecond)
		h.all()
		if turns != 5 {
			t.Fatalf("%d turns for five turns' messages", turns)
		}
		_ = ref.TrySend(0, 1) // the delay begins with the work, not with the turn before
		clock.Advance(9 * time.Millisecond)
		h.all()
		if turns != 5 {
			t.Fatal("a turn after an idle time did not wait")
		}
		clock.Advance(time.Second)
		h.all()
		if turns != 6 || ref.b.fault != nil || clock.Pending() != 0 {
			t.Fatalf("%d turns, fault %+v, %d timers after the slowdown", turns, ref.b.fault, clock.Pending())
		}
	})
}

// One executor, one tenant: if a held actor occupied either, the neighbour would starve, since nobody moves the clock.
func TestNeighboursOfAHeldActorAreNotSlowed(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		s, clock := faultSystem(t, Options{Executors: 1})
		seen := make(chan string, 64)
		echo := func(name string) Ref[int] {
			return spawn(t, s, Spec[int]{Name: name, Kind: "echo", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
				for range turn.Messages() {
					seen <- turn.Self().Name()
				}
			})})
		}
		held := []Ref[int]{echo("paused"), echo("slowed")}
		free := echo("free")
		for _, ref := range append(held, free) { // an actor that has not begun yet would have its first turn slowed, which brings no message
			if err := ref.TrySend(0, 1); err != nil {
				t.Fatal(err)
			}
			wait(t, seen, "an actor to begin")
		}
		if err := errors.Join(s.Faults().Pause("paused", time.Minute), s.Faults().Slow("slowed", 50*time.Millisecond, time.Minute)); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			for _, ref := range append(held, free) {
				if err := ref.TrySend(0, 1000); err != nil {
					t.Fatal(err)
				}
			}
			if got := wait(t, seen, "the neighbour's message"); got != "free" {
				t.Fatalf("%s took a turn while the clock stood", got)
			}
		}
		quiet(t, s, held[1]) // its first turn is over, and the delay of the next has begun
		clock.Advance(50 * time.Millisecond)
		if got := wait(t, seen, "the slowed actor's first message"); got != "slowed" {
			t.Fatalf("%s", got)
		}
		go func() { // the rest of the 3,000 must find room in seen
			for range seen {
			}
		}()
		t.Cleanup(func() { close(seen) })
		shutdown(t, s)
	})
}

func TestHeldActorsOccupyNoGoroutineAndNoPlaceInAQueue(t *testing.T) {
	s, h, clock := newHandDriven(t, Options{})
	stepped := 0
	refs := make([]Ref[int], 300)
	for i := range refs {
		refs[i] = spawn(t, s, Spec[int]{Name: fmt.Sprint(i), Kind: "a", Tenant: []string{"", "t"}[i%2], Bounds: roomy(), New: start(func(turn *Turn) { stepped += len(turn.Messages()) })})
	}
	h.all()
	for i, ref := range refs {
		var err error
		if i%3 == 0 {
			err = s.Faults().Slow(ref.Path(), time.Second, time.Minute)
		} else {
			err = s.Faults().Pause(ref.Path(), time.Minute)
		}
		_ = ref.TrySend(0, 1)
		if err != nil || ref.b.scheduled {
			t.Fatalf("held with work: %v, scheduled %v", err, ref.b.scheduled)
		}
	}
	if h.one() || s.fair.first != nil || s.fair.busy != 0 || clock.Pending() != len(refs) {
		t.Errorf("something runs: round %v, busy %d, %d timers", s.fair.first, s.fair.busy, clock.Pending())
	}
	if healed := s.Faults().HealAll(); healed != len(refs) {
		t.Errorf("healed %d", healed)
	}
	h.all()
	if stepped != len(refs) || clock.Pending() != 0 {
		t.Errorf("after healing all: %d stepped, %d timers left", stepped, clock.Pending())
	}
}

func TestHealingEndsAPauseAndASlowdownAtOnce(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		s, clock := faultSystem(t, Options{})
		seen := make(chan int, 10)
		ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
			for _, m := range turn.Messages() {
				seen <- m.(int)
			}
		})})
		f := s.Faults()
		for i, err := range []error{f.Slow("a", FaultTimeMax, FaultTimeMax), ref.TrySend(1, 1), f.Pause("a", time.Hour/6), ref.TrySend(2, 1), f.Heal("a"), f.Heal("a")} {
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		wait(t, seen, "first")
		wait(t, seen, "second")
		if clock.Pending() > 1 { // the pool's own
			t.Errorf("%d timers are left", clock.Pending())
		}
	})
}

func TestAPauseReplacesAnEarlierOneAndMayBeShorter(t *testing.T) {
	s, h, clock := newHandDriven(t, Options{})
	turns := 0
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(turn *Turn) { turns += len(turn.Messages()) })})
	h.all()
	_ = s.Faults().Pause("a", time.Minute)
	_ = s.Faults().Pause("a", time.Second)
	_ = ref.TrySend(0, 0)
	clock.Advance(time.Second)
	h.all()
	if turns != 1 {
		t.Error("the second, shorter pause did not end")
	}
	_ = s.Faults().Slow("a", time.Minute, time.Minute)
	_ = ref.TrySend(0, 0)
	_ = s.Faults().Slow("a", time.Second, time.Minute)
	clock.Advance(time.Second)
	h.all()
	if turns != 2 {
		t.Error("the turn still waits for the delay of the slowdown that was replaced")
	}
	_ = ref.TrySend(0, 0)
	_ = s.Faults().Slow("a", time.Minute, time.Second)
	clock.Advance(time.Second)
	h.all()
	if turns != 3 {
		t.Error("a turn that waits begins when the slowdown is over")
	}
}

// Nobody moves the clock: a stop that waited for a pause would never end.
func TestAPauseNeverDelaysAStop(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		s, clock := faultSystem(t, Options{})
		ready := make(chan Ref[*request], 1)
		parent := spawn(t, s, Spec[*request]{Name: "p", Kind: "p", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
			if turn.Lifecycle() == Started {
				ready <- spawn(t, turn, clerk(tenant))
			}
		}), OnUnstepped: func(r *request) { r.unstepped.Add(1) }})
		child := wait(t, ready, "child")
		requests := []*request{{n: 1}, {n: 1}}
		for i, err := range []error{
			s.Faults().Pause("p", FaultTimeMax), s.Faults().Pause("p/c", FaultTimeMax), s.Faults().Slow("p/c", time.Minute, FaultTimeMax),
			parent.TrySend(requests[0], 1), child.TrySend(requests[1], 1),
		} {
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		shutdown(t, s)
		for i, r := range requests {
			if r.unstepped.Load() != 1 || r.answers() != 1 {
				t.Errorf("request %d was not refused exactly once", i)
			}
		}
		if clock.Pending() != 0 {
			t.Errorf("%d timers are left", clock.Pending())
		}
	})
}

func TestFaultsBelongToAnIncarnationAndNotToItsName(t *testing.T) {
	s, clock := faultSystem(t, Options{})
	ref := spawn(t, s, clerk(""))
	_ = s.Faults().Pause("c", time.Minute)
	ref.Stop()
	wait(t, s.Watch(ref), "end")
	r := &request{}
	done := make(chan struct{})
	spec := clerk("")
	spec.New = start(func(turn *Turn) {
		if len(turn.Messages()) > 0 {
			r.answer()
			close(done)
		}
	})
	if err := spawn(t, s, spec).TrySend(r, 1); err != nil {
		t.Fatal(err)
	}
	wait(t, done, "a turn of the new incarnation, although the clock stands")
	clock.Advance(time.Minute)
}

// earlyClock rings a millisecond too early the first time, as a coarse clock may.
type earlyClock struct{ *ManualClock }

func (c earlyClock) AfterFunc(d time.Duration, f func()) Timer {
	return c.ManualClock.AfterFunc(d-time.Millisecond, f)
}

func TestATimerThatRingsTooEarlyEndsNothing(t *testing.T) {
	h, clock := &handDriven{}, NewManualClock(time.Unix(0, 0))
	s := NewSystem(Options{Scheduler: h, Clock: earlyClock{clock}})
	turns := 0
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(turn *Turn) { turns += len(turn.Messages()) })})
	_ = s.Faults().Pause("a", time.Second)
	_ = ref.TrySend(0, 0)
	clock.Advance(time.Second - time.Millisecond)
	h.all()
	if turns != 0 {
		t.Error("the pause ended with the ring, and not with its time")
	}
	clock.Advance(time.Millisecond)
	h.all()
	if turns != 1 {
		t.Error("the pause did not end")
	}
	s.StopAll()
	h.all()
	shutdown(t, s)
}
