package actors

import (
	"testing"
	"time"
)

// sleeper arms what it is told and counts.
type sleeper struct {
	turns, wakes int
	wokenAt      time.Time
}

func (s *sleeper) Receive(t *Turn) {
	if t.Lifecycle() != None {
		return
	}
	s.turns++
	if t.Wake() {
		s.wakes++
		s.wokenAt = t.Now()
	}
	for _, m := range t.Messages() {
		switch at := m.(type) {
		case time.Time:
			t.ArmWake(at)
		default:
			t.DisarmWake()
		}
	}
}

func newSleeper(t *testing.T) (*sleeper, Ref[any], *handDriven, *ManualClock) {
	s, h, clock := newHandDriven(t, Options{})
	a := &sleeper{}
	ref := spawn(t, s, Spec[any]{Name: "a", Kind: "a", Bounds: roomy(), New: func() Actor { return a }})
	h.all()
	return a, ref, h, clock
}

func tell(t *testing.T, ref Ref[any], h *handDriven, m any) {
	t.Helper()
	if err := ref.TrySend(m, 0); err != nil {
		t.Fatal(err)
	}
	h.all()
}

func TestADeadlineWakesTheActorOnceAndNotBefore(t *testing.T) {
	a, ref, h, clock := newSleeper(t)
	at := clock.Now().Add(time.Second)
	tell(t, ref, h, at)
	clock.Advance(time.Second - 1)
	h.all()
	if a.wakes != 0 {
		t.Fatal("too early")
	}
	clock.Advance(1)
	h.all()
	clock.Advance(time.Hour)
	h.all()
	if a.wakes != 1 || !a.wokenAt.Equal(at) || clock.Pending() != 0 {
		t.Fatalf("%d wakes at %v, %d timers", a.wakes, a.wokenAt, clock.Pending())
	}
}

// decision 39: the timer is touched only when the deadline moves earlier.
func TestALaterDeadlineTouchesNoTimerAndCostsNoTurn(t *testing.T) {
	a, ref, h, clock := newSleeper(t)
	begin := clock.Now()
	tell(t, ref, h, begin.Add(time.Second))
	armed := clock.armed
	for i := range 100 {
		tell(t, ref, h, begin.Add(time.Second+time.Duration(i)*time.Millisecond))
	}
	if clock.armed != armed {
		t.Errorf("later deadlines armed the timer %d times", clock.armed-armed)
	}
	turns := a.turns
	clock.Advance(time.Second) // rings for the old deadline
	h.all()
	if a.turns != turns || a.wakes != 0 {
		t.Errorf("an outdated ring cost %d turns, %d wakes", a.turns-turns, a.wakes)
	}
	clock.Advance(99 * time.Millisecond)
	h.all()
	if a.wakes != 1 {
		t.Error("the later deadline was lost")
	}
}

func TestAnEarlierDeadlineMovesTheTimer(t *testing.T) {
	a, ref, h, clock := newSleeper(t)
	tell(t, ref, h, clock.Now().Add(time.Hour))
	tell(t, ref, h, clock.Now().Add(time.Second))
	clock.Advance(time.Second)
	h.all()
	if a.wakes != 1 || clock.Pending() != 0 {
		t.Fatalf("%d wakes, %d timers", a.wakes, clock.Pending())
	}
}

func TestADisarmedOrPastDeadlineBehaves(t *testing.T) {
	a, ref, h, clock := newSleeper(t)
	tell(t, ref, h, clock.Now().Add(time.Second))
	tell(t, ref, h, "disarm")
	clock.Advance(time.Hour)
	h.all()
	if a.wakes != 0 {
		t.Fatal("a disarmed deadline woke")
	}
	tell(t, ref, h, clock.Now().Add(-time.Second))
	clock.Advance(0)
	h.all()
	if a.wakes != 1 {
		t.Fatal("a past deadline did not wake")
	}
}

func TestAMessageTurnAfterTheDeadlineReportsItBeforeTheTimerDoes(t *testing.T) {
	a, ref, h, clock := newSleeper(t)
	tell(t, ref, h, clock.Now().Add(time.Second))
	clock.mu.Lock()
	clock.now = clock.now.Add(2 * time.Second) // the timer is late
	clock.mu.Unlock()
	if err := ref.TrySend("x", 0); err != nil {
		t.Fatal(err)
	}
	h.all()
	clock.Advance(time.Second)
	h.all()
	if a.wakes != 1 {
		t.Fatalf("%d wakes", a.wakes)
	}
}

func TestAStoppedActorLeavesNoTimer(t *testing.T) {
	_, ref, h, clock := newSleeper(t)
	tell(t, ref, h, clock.Now().Add(time.Second))
	ref.Stop()
	h.all()
	if clock.Pending() != 0 {
		t.Fatalf("%d timers", clock.Pending())
	}
}
