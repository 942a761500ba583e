package diskpool

import "time"

// alarm is the pool's one timer.
type alarm struct {
	at   time.Time   // when it will ring; zero: it will not
	stop func() bool // what keeps it from it
	id   uint64      // of the arming: a ring of an earlier one is not heeded
}

// due is when the pool has something to do by itself: a job stalls, or a worker was idle for long enough.
func (p *Pool) due() (at time.Time) {
	if p.all.fresh != nil {
		at = p.all.fresh.since.Add(StallAfter)
	}
	if p.idle.first != nil {
		if end := p.idle.first.since.Add(idleAfter); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

// arm sets the timer. One that rings too early is left alone, so that a job that is done in time costs no arming: it finds nothing to do, and
// arms the next.
func (p *Pool) arm(now time.Time) {
	at := p.due()
	a := &p.alarm
	switch {
	case at.IsZero():
		if a.stop != nil {
			a.stop()
		}
		p.alarm = alarm{id: a.id + 1}
	case a.stop == nil || at.Before(a.at):
		if a.stop != nil {
			a.stop()
		}
		a.id++
		id := a.id
		a.at, a.stop = at, p.clock.AfterFunc(at.Sub(now), func() { p.ring(id) })
	}
}

// ring does what is due.
func (p *Pool) ring(id uint64) {
	p.mu.Lock()
	if id != p.alarm.id {
		p.mu.Unlock()
		return
	}
	p.alarm = alarm{id: id + 1}
	now := p.clock.Now()
	var stalled []*job
	for j := p.all.fresh; j != nil && !now.Before(j.since.Add(StallAfter)); j = j.next {
		j.stalled = true
		p.counts[j.Kind-1].Stalled++
		stalled = append(stalled, j)
		p.all.fresh = j.next
	}
	for w := p.idle.first; w != nil && !now.Before(w.since.Add(idleAfter)); w = p.idle.first {
		p.dismiss(w)
	}
	p.arm(now)
	p.mu.Unlock()
	for _, j := range stalled {
		p.tell(j)
	}
}

// tell says that a job stalled, and that it is back if it ended meanwhile.
func (p *Pool) tell(j *job) {
	if j.Stalled != nil {
		j.Stalled()
	}
	p.mu.Lock()
	j.told = true
	back := j.ended
	p.mu.Unlock()
	if back && j.Back != nil {
		j.Back()
	}
}
