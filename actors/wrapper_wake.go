package actors

import "time"

// arm sets the deadline and makes sure that the timer rings by then.
func (w *wrapper) arm(at time.Time) {
	w.deadline = at
	if w.armedFor.IsZero() || at.Before(w.armedFor) {
		w.setTimer(at)
	}
}

func (w *wrapper) setTimer(at time.Time) {
	d := at.Sub(w.b.sys.clock.Now())
	w.armedFor = at
	if w.timer == nil {
		w.timer = w.b.sys.clock.AfterFunc(d, w.b.timerFired)
		return
	}
	w.timer.Reset(d)
}

// checkWake decides whether this turn reports the deadline, and re-arms a timer that rang before it.
func (w *wrapper) checkWake(t *Turn) {
	if t.rang {
		w.armedFor = time.Time{}
	}
	switch {
	case w.deadline.IsZero():
	case !t.now.Before(w.deadline):
		w.deadline = time.Time{}
		t.woken = true
	case t.rang:
		w.setTimer(w.deadline)
	}
}
