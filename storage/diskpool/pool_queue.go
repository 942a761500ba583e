package diskpool

// queue is a lane's jobs that have no worker, first come first served.
type queue struct{ first, last *job }

func (q *queue) add(j *job) {
	if q.last != nil {
		q.last.queued = j
	} else {
		q.first = j
	}
	q.last = j
}

// take returns nil from an empty queue.
func (q *queue) take() *job {
	j := q.first
	if j == nil {
		return nil
	}
	q.first = j.queued
	if q.first == nil {
		q.last = nil
	}
	j.queued = nil
	return j
}

// jobList is all jobs that did not end, oldest first. Those that stalled are at its front, for all stall at the same age.
type jobList struct {
	first, last *job
	fresh       *job // the oldest one that did not stall
}

func (l *jobList) add(j *job) {
	j.prev = l.last
	if l.last != nil {
		l.last.next = j
	} else {
		l.first = j
	}
	l.last = j
	if l.fresh == nil {
		l.fresh = j
	}
}

func (l *jobList) remove(j *job) {
	if l.fresh == j {
		l.fresh = j.next
	}
	if j.prev != nil {
		j.prev.next = j.next
	} else {
		l.first = j.next
	}
	if j.next != nil {
		j.next.prev = j.prev
	} else {
		l.last = j.prev
	}
	j.prev, j.next = nil, nil
}
