package diskpool

import (
	"slices"
	"sync"
	"time"
)

// Manual is an Executor that does nothing by itself: jobs wait until Step runs them, on the goroutine that calls it, and time stands still
// until Advance. With it a test or a simulation decides what the disk does when, and can stop the world between any two jobs.
//
// Submitting and timers are safe for concurrent use; Step, Run and Advance belong to one goroutine.
type Manual struct {
	time timers

	mu      sync.Mutex
	waiting []*manualJob // as submitted
	running *manualJob
	held    func(Job) bool
	pick    func(n int) int
	ran     int
}

type manualJob struct {
	Job
	stop    func() bool // of the stall timer
	stalled bool
}

// NewManual returns an Executor whose clock stands at an instant.
func NewManual(start time.Time) *Manual { return &Manual{time: timers{now: start}} }

// Go queues a job.
func (m *Manual) Go(j Job) {
	j.check()
	one := &manualJob{Job: j}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.waiting {
		if j.Owner != nil && w.key() == j.key() {
			twoWait(&j)
		}
	}
	one.stop = m.After(StallAfter, func() { m.stall(one) })
	m.waiting = append(m.waiting, one)
}

func (m *Manual) stall(j *manualJob) {
	j.stalled = true
	if j.Stalled != nil {
		j.Stalled()
	}
}

// After arms a timer, which fires within Advance.
func (m *Manual) After(d time.Duration, f func()) (stop func() bool) { return m.time.AfterFunc(d, f) }

// Now is the instant the clock stands at.
func (m *Manual) Now() time.Time { return m.time.Now() }

// Choose has pick(n) say which of n jobs that may run next does, in place of the one that waits longest: they are, in the order of their
// submission, the first one of each device and kind. nil ends that.
func (m *Manual) Choose(pick func(n int) int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pick = pick
}

// Hold keeps the jobs that match from being run, as a disk that hangs does; jobs behind them go on. nil lets all go.
func (m *Manual) Hold(match func(Job) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = match
}

// Step runs one job, and reports false if there is none to run. It panics within a job's Run: jobs do not nest.
func (m *Manual) Step() bool {
	j := m.take()
	if j == nil {
		return false
	}
	j.Run()
	m.mu.Lock()
	m.running = nil
	m.ran++
	m.mu.Unlock()
	if !j.stop() && j.stalled && j.Back != nil {
		j.Back()
	}
	return true
}

func (m *Manual) take() *manualJob {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running != nil {
		panic("diskpool: Manual.Step within a job")
	}
	ready := m.ready()
	if len(ready) == 0 {
		return nil
	}
	i := ready[0]
	if m.pick != nil && len(ready) > 1 {
		i = ready[m.pick(len(ready))]
	}
	m.running = m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	return m.running
}

// ready is the places of the jobs that may run next.
func (m *Manual) ready() []int {
	type lane struct {
		device uint64
		kind   Kind
	}
	seen := map[lane]bool{}
	var ready []int
	for i, j := range m.waiting {
		l := lane{j.Device, j.Kind}
		if seen[l] || m.held != nil && m.held(j.Job) {
			continue
		}
		seen[l] = true
		ready = append(ready, i)
	}
	return ready
}

// Run steps until no job is left to run, and returns how many did. Timers stay as they are. It panics after a hundred thousand jobs: somebody submits a job
// from every job.
func (m *Manual) Run() int {
	for n := 0; ; n++ {
		if !m.Step() {
			return n
		}
		if n == 100_000 {
			panic("diskpool: Manual.Run: jobs without end")
		}
	}
}

// Advance moves the clock and fires the timers that become due, in order; it runs no job. Those that wait for longer than StallAfter are
// told so.
func (m *Manual) Advance(d time.Duration) {
	if d < 0 {
		panic("diskpool: Manual.Advance: time does not go back")
	}
	m.time.advance(m.Now().Add(d))
}

// NextTimer is the instant of the earliest timer, the stalls of jobs that wait among them; false if there is none.
func (m *Manual) NextTimer() (time.Time, bool) { return m.time.next() }

// Timers counts armed timers without those of jobs that wait.
func (m *Manual) Timers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.time.pending()
	for _, j := range m.waiting {
		if !j.stalled {
			n--
		}
	}
	return n
}

// Waiting is the jobs that did not start yet, as submitted.
func (m *Manual) Waiting() []Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Job, len(m.waiting))
	for i, j := range m.waiting {
		list[i] = j.Job
	}
	return list
}

// Ran counts the jobs that ended.
func (m *Manual) Ran() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ran
}
