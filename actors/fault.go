package actors

import (
	"fmt"
	"time"
)

// FaultAction names what can be done to an actor; a log line and the fault door use the same words.
type FaultAction string

const (
	// FaultCrash makes the actor's next turn panic.
	FaultCrash FaultAction = "crash"
	// FaultPause holds back all turns for a while.
	FaultPause FaultAction = "pause"
	// FaultSlow makes each turn wait before it begins, for a while.
	FaultSlow FaultAction = "slow"
	// FaultHeal ends a pause and a slowdown.
	FaultHeal FaultAction = "heal"
)

// Faults breaks actors on purpose: tests and operators use the same door. All methods may be called from any goroutine and return at
// once. Paths are those of Ref.Path. Errors say what was tried and match ErrUnknownActor, ErrBadFault or ErrStopped. Each call
// that finds a live actor is a FaultInjected event.
type Faults struct{ s *System }

// Faults is the way to break actors of s.
func (s *System) Faults() Faults { return Faults{s} }

// Crash makes the actor take a turn that panics with ErrInjected: at once, also when it is idle, paused or slowed. Messages that the
// turn would have stepped are unknown, those behind them refused, as after a panic of the actor's own.
func (f Faults) Crash(path string) error {
	return f.inject(path, FaultInjected{Do: FaultCrash}, func(x *fault, _ time.Time) { x.crash = true })
}

// Pause holds back the actor's turns until d from now on the system's clock: more than 0, at most FaultTimeMax. The mailbox accepts until
// it is full and then refuses. A pause of a paused actor replaces the earlier one.
func (f Faults) Pause(path string, d time.Duration) error {
	if err := checkFaultTime(FaultPause, "how long it lasts", d); err != nil {
		return err
	}
	return f.inject(path, FaultInjected{Do: FaultPause, For: d}, func(x *fault, now time.Time) { x.pausedUntil = now.Add(d) })
}

// Slow makes each turn of the actor that begins until lasts from now wait by before it begins, both more than 0 and at most FaultTimeMax.
// A turn that still waits when the time is over begins then. A slowdown of a slowed actor replaces the earlier one.
func (f Faults) Slow(path string, by, lasts time.Duration) error {
	if err := checkFaultTime(FaultSlow, "the delay of a turn", by); err != nil {
		return err
	}
	if err := checkFaultTime(FaultSlow, "how long it lasts", lasts); err != nil {
		return err
	}
	return f.inject(path, FaultInjected{Do: FaultSlow, By: by, For: lasts}, func(x *fault, now time.Time) {
		x.endSlow()
		x.slowBy, x.slowUntil = by, now.Add(lasts)
	})
}

// Heal ends a pause and a slowdown of the actor; what waited is looked at now. Without either it does nothing.
func (f Faults) Heal(path string) error {
	return f.inject(path, FaultInjected{Do: FaultHeal}, func(x *fault, _ time.Time) {
		x.pausedUntil = time.Time{}
		x.endSlow()
	})
}

// HealAll heals every actor that is paused or slowed, and returns how many that were: before an orderly end, which would wait for them.
func (f Faults) HealAll() (healed int) {
	for after, more := "", true; more; {
		page, rest, err := f.List(after, FaultListMax)
		if err != nil {
			panic("actors: HealAll lists with a limit that is refused: " + err.Error())
		}
		for _, a := range page {
			if (a.PausedFor > 0 || a.SlowBy > 0) && f.Heal(a.Path) == nil {
				healed++
			}
		}
		if more = rest; more {
			after = page[len(page)-1].Path
		}
	}
	return healed
}

// inject finds the actor, tells, and changes its fault.
func (f Faults) inject(path string, e FaultInjected, change func(x *fault, now time.Time)) error {
	b, err := f.find(path)
	if err == nil && b.isClosed() {
		err = ErrStopped
	}
	if err == nil {
		e.Path, e.Kind = b.path, b.kind.name
		f.s.Emit(e) // before what it causes
		err = b.inject(change)
	}
	if err != nil {
		return fmt.Errorf("fault %s %s: %w", e.Do, path, err)
	}
	return nil
}
