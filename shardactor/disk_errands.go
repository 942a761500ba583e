package shardactor

import "sync"

// Bounds of what runs in the disk pool for single requests or for one log's good, all logs of a node together. The pool has a few workers for
// all such work, and opens and rolls, which others wait for, are to find one free however many logs ask.
const (
	// coldRuns is how many jobs read values for deletes at a time.
	coldRuns = 2
	// compactRuns is how many jobs read values for compactions, or remove what they left behind, at a time.
	compactRuns = 2
)

// errands lets at most limit jobs run at a time. The others wait outside of the pool, in the order in which they came; a log has at most one of
// a kind, which bounds the line.
type errands struct {
	limit int

	mu      sync.Mutex
	running int
	waiting []func()
}

// begin calls submit, now or when there is a place. Whoever was let in calls ended once.
func (e *errands) begin(submit func()) {
	e.mu.Lock()
	if e.running == e.limit {
		e.waiting = append(e.waiting, submit)
		e.mu.Unlock()
		return
	}
	e.running++
	e.mu.Unlock()
	submit()
}

// ended gives a place to who has waited longest.
func (e *errands) ended() {
	e.mu.Lock()
	if len(e.waiting) == 0 {
		e.running--
		e.mu.Unlock()
		return
	}
	next := e.waiting[0]
	e.waiting[0] = nil
	e.waiting = e.waiting[1:]
	e.mu.Unlock()
	next()
}

// errand runs something of this log in the disk pool, within a bound that all logs share. The files count as in use until it is over.
func (f *diskFiles) errand(e *errands, owner any, run func()) {
	f.disks.begin()
	e.begin(func() {
		f.job(owner, func() {
			run()
			e.ended()
			f.disks.ended()
		})
	})
}
