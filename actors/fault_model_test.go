package actors

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// faultModel is the naive twin of a faulted actor: instants, and the messages that were accepted.
type faultModel struct {
	pausedUntil, slowUntil time.Time
	slowBy                 time.Duration
	waiting                time.Time // since when a slowed actor has had something to do
	accepted, stepped      int
}

// faultMachine drives one actor, a millisecond at a time, beside the model.
type faultMachine struct {
	model  faultModel
	h      *handDriven
	clock  *ManualClock
	faults Faults
	ref    Ref[int]
	fail   string // what a turn did that it must not do
}

func (x *faultMachine) receive(t *Turn) {
	m := &x.model
	for _, got := range t.Messages() {
		if got.(int) != m.stepped {
			x.fail = "out of order"
		}
		m.stepped++
	}
	now := x.clock.Now()
	switch {
	case now.Before(m.pausedUntil):
		x.fail = "a turn during a pause"
	case now.Before(m.slowUntil) && now.Sub(m.waiting) < m.slowBy:
		x.fail = "a turn of a slowed actor that did not wait"
	}
	m.waiting = now
}

// settle runs what can be run now. Without a fault nothing is left.
func (x *faultMachine) settle(t *rapid.T) {
	x.h.all()
	m, now := &x.model, x.clock.Now()
	if x.fail != "" {
		t.Fatal(x.fail)
	}
	if !now.Before(m.pausedUntil) && !now.Before(m.slowUntil) && m.stepped != m.accepted {
		t.Fatalf("nothing holds the actor, and %d of %d messages were not stepped", m.accepted-m.stepped, m.accepted)
	}
	since := m.waiting // a delay also runs during a pause
	if m.stepped == m.accepted {
		m.waiting = time.Time{}
	} else if !now.Before(m.pausedUntil) && now.Sub(since) >= m.slowBy {
		t.Fatalf("a slowed actor took no turn although its work has waited since %v", since)
	}
}

func (x *faultMachine) send(t *rapid.T) {
	m := &x.model
	for range rapid.IntRange(1, 100).Draw(t, "messages") {
		if m.accepted == m.stepped && m.waiting.IsZero() {
			m.waiting = x.clock.Now()
		}
		if err := x.ref.TrySend(m.accepted, 1); err != nil {
			t.Fatal(err)
		}
		m.accepted++
	}
	x.settle(t)
}

func (x *faultMachine) pause(t *rapid.T) {
	d := time.Duration(rapid.IntRange(1, 50).Draw(t, "ms")) * time.Millisecond
	x.model.pausedUntil = x.clock.Now().Add(d)
	x.apply(t, x.faults.Pause("a", d))
}

func (x *faultMachine) slow(t *rapid.T) {
	by := time.Duration(rapid.IntRange(1, 20).Draw(t, "by")) * time.Millisecond
	lasts := time.Duration(rapid.IntRange(1, 100).Draw(t, "ms")) * time.Millisecond
	x.model.slowBy, x.model.slowUntil = by, x.clock.Now().Add(lasts)
	x.model.waiting = x.clock.Now() // what waited waits anew
	x.apply(t, x.faults.Slow("a", by, lasts))
}

func (x *faultMachine) heal(t *rapid.T) {
	x.model.pausedUntil, x.model.slowUntil = time.Time{}, time.Time{}
	x.apply(t, x.faults.Heal("a"))
}

func (x *faultMachine) apply(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
	x.settle(t)
}

func (x *faultMachine) advance(t *rapid.T) {
	for range rapid.IntRange(1, 60).Draw(t, "ms") {
		x.clock.Advance(time.Millisecond)
		x.settle(t)
	}
}

func TestFaultsBehaveAsTheirModel(t *testing.T) {
	for _, tenant := range []string{"", "t"} {
		rapid.Check(t, func(rt *rapid.T) {
			x := &faultMachine{}
			var s *System
			s, x.h, x.clock = newHandDriven(t, Options{})
			x.faults = s.Faults()
			x.ref = spawn(t, s, Spec[int]{Name: "a", Kind: "a", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
				if turn.Lifecycle() == None {
					x.receive(turn)
				}
			})})
			x.h.all()
			rt.Repeat(map[string]func(*rapid.T){"send": x.send, "pause": x.pause, "slow": x.slow, "heal": x.heal, "advance": x.advance})
			x.clock.Advance(FaultTimeMax)
			x.settle(rt)
			if x.ref.b.fault != nil || x.clock.Pending() != 0 {
				rt.Fatalf("over, and there is a fault %+v and %d timers", x.ref.b.fault, x.clock.Pending())
			}
		})
	}
}

// Real time, real goroutines: senders, and somebody who does to the actor what he likes. In the end it is crashed, or stopped.
func TestNothingIsLostOrDoubledWhateverIsDoneToAnActor(t *testing.T) {
	tenants(t, func(t *testing.T, tenant string) {
		for round := range 20 {
			s := newSystem(t, Options{})
			const senders = 4
			p := newPostbox(senders)
			ref := spawn(t, s, Spec[letter]{
				Name: "a", Kind: "a", Tenant: tenant, Bounds: Bounds{DataItems: 64, DataBytes: 1 << 20},
				New: start(func(turn *Turn) {
					for _, m := range turn.Messages() {
						p.note(p.stepped, m.(letter))
					}
				}),
				OnUnstepped:  func(l letter) { p.note(p.unstepped, l) },
				OnUnanswered: func(l letter) { p.note(p.stepped, l) }, // it was in the turn that crashed
			})
			var vandal sync.WaitGroup
			vandal.Go(func() { vandalize(t, s.Faults(), uint64(round)) })
			bombard(t, ref, p, senders, 300)
			vandal.Wait()
			end := s.Watch(ref)
			if err := s.Faults().Pause("a", FaultTimeMax); err == nil && round%2 == 0 {
				ref.Stop()
			} else if err := s.Faults().Crash("a"); err != nil && !errors.Is(err, ErrUnknownActor) {
				t.Fatal(err)
			}
			wait(t, end, "end")
			p.check(t)
			shutdown(t, s)
		}
	})
}

// vandalize does 200 random things to the actor a, none of which ends it.
func vandalize(t *testing.T, f Faults, seed uint64) {
	r := rand.New(rand.NewPCG(7, seed))
	for range 200 {
		d := time.Duration(1+r.IntN(300)) * time.Microsecond
		var err error
		switch r.IntN(4) {
		case 0:
			err = f.Pause("a", d)
		case 1:
			err = f.Slow("a", d, 5*d)
		case 2:
			err = f.Heal("a")
		case 3:
			_, _, err = f.List("", 1+r.IntN(FaultListMax))
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}
