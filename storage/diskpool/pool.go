package diskpool

import (
	"sync"
	"time"
)

// Workers bounds the goroutines of one device, per kind of job. A job that hangs keeps its worker; what hangs beyond the bound waits in
// the queue, which costs no goroutine. Kinds do not share workers, so that a device that takes writes and hangs in syncs still writes, and opening
// a thousand logs keeps no sync waiting.
type Workers struct {
	Write, Sync, Work int
}

// DefaultWorkers is enough to keep a device busy: disks gain little from more than 16 transfers at once.
func DefaultWorkers() Workers { return Workers{Write: 16, Sync: 16, Work: 8} }

func (w Workers) of(k Kind) int {
	switch k {
	case Write:
		return w.Write
	case Sync:
		return w.Sync
	}
	return w.Work
}

// idleAfter is how long a worker without a job stays: a log that writes every second keeps its worker, a quiet disk costs nothing.
const idleAfter = 10 * time.Second

// maxSpares bounds the jobs that are kept to be used again; each is about 150 bytes.
const maxSpares = 256

// Options are what a Pool is made of. The zero value is what a broker uses.
type Options struct {
	Workers Workers // zero: DefaultWorkers; else each at least 1
	Clock   Clock   // nil: the machine's
}

// Pool is the Executor of a broker. Its queues are bounded by its users: an owner has at most two jobs of a kind, one that runs and one
// that waits (Job.Owner), so that there are never more than 6 per log.
//
// One timer serves all stalls and all idle workers; it is armed only while there is one of either.
type Pool struct {
	workers Workers
	clock   Clock

	mu      sync.Mutex
	devices map[uint64]*[kinds]lane
	owners  map[ownerKey]*job // who has a job; and the one that waits for it, or nil
	all     jobList           // not ended, as submitted
	idle    idleList
	counts  [kinds]Count
	total   int  // workers
	spare   *job // chained by queued
	spares  int
	closed  bool
	gone    chan struct{} // closed by the last worker that goes after Close
	alarm   alarm
}

// lane is one device's jobs of one kind.
type lane struct {
	limit   int
	workers int
	queue   queue
	idle    *worker // the one that became idle last is used first
}

// job is one submitted Job.
type job struct {
	Job
	since      time.Time
	prev, next *job // in Pool.all
	queued     *job // behind it in its lane
	stalled    bool // Stalled was or is being called
	told       bool // that call returned
	ended      bool // Run returned
}

// worker is one goroutine. It is in its lane's idle stack and in the pool's list while it waits.
type worker struct {
	lane       *lane
	kind       Kind
	give       chan *job // holds one; nil ends the worker
	since      time.Time
	below      *worker // in the lane's stack
	above      *worker
	prev, next *worker // in Pool.idle
}

// New returns a Pool without a goroutine; they come with jobs.
func New(o Options) *Pool {
	if o.Workers == (Workers{}) {
		o.Workers = DefaultWorkers()
	}
	if o.Workers.Write < 1 || o.Workers.Sync < 1 || o.Workers.Work < 1 {
		panic("diskpool: New: a kind of job without workers")
	}
	if o.Clock == nil {
		o.Clock = machineClock{}
	}
	return &Pool{
		workers: o.Workers, clock: o.Clock,
		devices: map[uint64]*[kinds]lane{}, owners: map[ownerKey]*job{}, gone: make(chan struct{}),
	}
}

// Now is the instant on the pool's clock.
func (p *Pool) Now() time.Time { return p.clock.Now() }

// After calls f once, d from now.
func (p *Pool) After(d time.Duration, f func()) (stop func() bool) { return p.clock.AfterFunc(d, f) }

// Go queues a job.
func (p *Pool) Go(j Job) {
	j.check()
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.newJob(j)
	ready := true
	if j.Owner != nil {
		ready = p.takeTurn(one)
	}
	p.all.add(one)
	p.counts[j.Kind-1].Queued++
	p.arm(one.since)
	if ready {
		p.start(one)
	}
}

// newJob takes a job from the spare ones, so that a busy log makes no garbage.
func (p *Pool) newJob(j Job) *job {
	one := p.spare
	if one == nil {
		one = &job{}
	} else {
		p.spare = one.queued
		p.spares--
	}
	*one = job{Job: j, since: p.clock.Now()}
	return one
}

// reuse keeps a job that ended. One that stalled may still be looked at by the alarm.
func (p *Pool) reuse(j *job) {
	if j.stalled || p.spares == maxSpares {
		return
	}
	*j = job{queued: p.spare}
	p.spare = j
	p.spares++
}

// takeTurn reports whether the job's owner has none of its kind; else the job waits for that one.
func (p *Pool) takeTurn(j *job) bool {
	waits, busy := p.owners[j.key()]
	if waits != nil {
		twoWait(&j.Job)
	}
	if !busy {
		p.owners[j.key()] = nil
		return true
	}
	p.owners[j.key()] = j
	return false
}

// start hands a job to an idle worker, a new one, or the queue.
func (p *Pool) start(j *job) {
	l := p.lane(j.Device, j.Kind)
	if w := l.idle; w != nil {
		p.wake(w, j)
		return
	}
	if l.workers == l.limit {
		l.queue.add(j)
		return
	}
	l.workers++
	p.total++
	p.run(j)
	go p.work(&worker{lane: l, kind: j.Kind, give: make(chan *job, 1)}, j)
}

func (p *Pool) lane(device uint64, k Kind) *lane {
	d := p.devices[device]
	if d == nil {
		d = &[kinds]lane{}
		for i := range d {
			d[i].limit = p.workers.of(Kind(i + 1))
		}
		p.devices[device] = d
	}
	return &d[k-1]
}

// run counts a job as running.
func (p *Pool) run(j *job) {
	p.counts[j.Kind-1].Queued--
	p.counts[j.Kind-1].Running++
}

// work is a worker's goroutine.
func (p *Pool) work(w *worker, j *job) {
	for j != nil {
		j.Run()
		j = p.done(w, j)
		if j == nil {
			j = <-w.give
		}
	}
}

// done ends a job and returns the worker's next one. Nil: it is idle, or shall go, and is told which by w.give.
func (p *Pool) done(w *worker, j *job) *job {
	p.mu.Lock()
	p.counts[j.Kind-1].Running--
	p.all.remove(j)
	j.ended = true
	var back func()
	if j.stalled && j.told {
		back = j.Back
	}
	if j.stalled {
		p.counts[j.Kind-1].Stalled--
	}
	if j.Owner != nil {
		p.passTurn(w, j)
	}
	next := w.lane.queue.take()
	if next != nil {
		p.run(next)
	} else {
		p.rest(w)
	}
	p.arm(p.clock.Now())
	p.reuse(j)
	p.mu.Unlock()
	if back != nil {
		back()
	}
	return next
}

// passTurn starts the job of the owner that waited for this one, behind those that wait for a worker.
func (p *Pool) passTurn(w *worker, j *job) {
	next := p.owners[j.key()]
	if next == nil {
		delete(p.owners, j.key())
		return
	}
	p.owners[j.key()] = nil
	if l := p.lane(next.Device, next.Kind); l == w.lane {
		l.queue.add(next) // this worker is about to take the first one
		return
	}
	p.start(next)
}
