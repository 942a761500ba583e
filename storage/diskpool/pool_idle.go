package diskpool

// idleList is all idle workers, those that are idle longest first.
type idleList struct{ first, last *worker }

func (l *idleList) add(w *worker) {
	w.prev, w.next = l.last, nil
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
}

func (l *idleList) remove(w *worker) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// rest makes a worker idle.
func (p *Pool) rest(w *worker) {
	w.since = p.clock.Now()
	w.below, w.above = w.lane.idle, nil
	if w.below != nil {
		w.below.above = w
	}
	w.lane.idle = w
	p.idle.add(w)
	if p.closed {
		p.dismiss(w)
	}
}

// unrest takes a worker out of the idle ones.
func (p *Pool) unrest(w *worker) {
	if w.above != nil {
		w.above.below = w.below
	} else {
		w.lane.idle = w.below
	}
	if w.below != nil {
		w.below.above = w.above
	}
	w.above, w.below = nil, nil
	p.idle.remove(w)
}

// wake gives an idle worker a job.
func (p *Pool) wake(w *worker, j *job) {
	p.unrest(w)
	p.run(j)
	w.give <- j // has room: only idle workers are given something
}

// dismiss ends an idle worker.
func (p *Pool) dismiss(w *worker) {
	p.unrest(w)
	w.lane.workers--
	p.total--
	w.give <- nil
	p.allGone()
}

// allGone says that Close is done, once.
func (p *Pool) allGone() {
	select {
	case <-p.gone:
	default:
		if p.closed && p.total == 0 {
			close(p.gone)
		}
	}
}

// Close sends the workers away: idle ones at once, others after the job they have, when no other waits. The channel is closed when the
// last one was told to go; a job that hangs holds it open. It may be called again. Close it when all logs are closed: a job that comes later
// is still run, but nobody waits for it.
func (p *Pool) Close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.idle.first != nil {
		p.dismiss(p.idle.first)
	}
	p.allGone()
	p.arm(p.clock.Now())
	return p.gone
}
