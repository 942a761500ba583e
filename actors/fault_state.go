package actors

import "time"

// fault is what was injected into one incarnation and is not over, as instants. It decides nothing about time: the mailbox, whose mu
// guards it, tells it the time when its timer rings, and arms the timer for next.
type fault struct {
	crash       bool
	pausedUntil time.Time // zero: not paused
	slowUntil   time.Time // zero: not slowed
	slowBy      time.Duration
	turnAt      time.Time // slowed, and a turn waits until then; zero: none waits
	turnDue     bool      // slowed, and the next turn has waited long enough

	timer    Timer
	armedFor time.Time // when the timer will ring; zero: it will not
}

// expire ends what is over at now.
func (f *fault) expire(now time.Time) {
	if over(f.pausedUntil, now) {
		f.pausedUntil = time.Time{}
	}
	if over(f.turnAt, now) {
		f.turnAt, f.turnDue = time.Time{}, true
	}
	if over(f.slowUntil, now) {
		f.endSlow()
	}
}

// over reports whether an instant that was set has come.
func over(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

func (f *fault) endSlow() {
	f.slowUntil, f.slowBy, f.turnAt, f.turnDue = time.Time{}, 0, time.Time{}, false
}

// next is the earliest instant at which something is over; zero when there is none.
func (f *fault) next() (at time.Time) {
	for _, x := range [...]time.Time{f.pausedUntil, f.slowUntil, f.turnAt} {
		if !x.IsZero() && (at.IsZero() || x.Before(at)) {
			at = x
		}
	}
	return at
}

// none reports whether nothing is injected any more.
func (f *fault) none() bool { return !f.crash && f.pausedUntil.IsZero() && f.slowUntil.IsZero() }

// holds reports whether an actor with work may not take a turn now.
func (f *fault) holds() bool {
	return !f.crash && (!f.pausedUntil.IsZero() || !f.slowUntil.IsZero() && !f.turnDue)
}

// await makes a turn of a slowed actor wait from now on, unless one does already. The delay also runs during a pause.
func (f *fault) await(now time.Time) {
	if !f.slowUntil.IsZero() && !f.turnDue && f.turnAt.IsZero() {
		f.turnAt = now.Add(f.slowBy)
	}
}

// takeTurn is called when a turn begins; the next one has to wait anew. It reports whether this one is to crash.
func (f *fault) takeTurn() (crash bool) {
	crash, f.crash = f.crash, false
	f.turnAt, f.turnDue = time.Time{}, false
	return crash
}
