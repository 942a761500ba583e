package bench

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/internal/bench/machine"
)

// Timing is how long a trial runs.
type Timing struct {
	WarmUp   time.Duration // not counted
	Duration time.Duration // counted
}

// drainTime is how long a trial waits, after its stretch, for the answers to what was begun in it: two thousand records of a queue, each acked, on a
// machine that does some dozens a second.
const drainTime = 90 * time.Second

// trial is one load on one side. Its workers run until over, and then finish what they have begun; the first failure cancels ctx.
type trial struct {
	timing Timing
	meter  Meter // nil: the server is not asked
	base   time.Time
	ctx    context.Context
	fail   context.CancelCauseFunc

	begin, end atomic.Int64 // the measured stretch, since base
	done       atomic.Bool
	workers    sync.WaitGroup
}

func newTrial(ctx context.Context, timing Timing, meter Meter) *trial {
	t := &trial{timing: timing, meter: meter, base: time.Now()}
	t.ctx, t.fail = context.WithCancelCause(ctx)
	t.begin.Store(math.MaxInt64)
	t.end.Store(math.MaxInt64)
	return t
}

// work runs f as one of the workers. Its error ends the trial.
func (t *trial) work(f func(ctx context.Context) error) {
	t.workers.Go(func() {
		if err := f(t.ctx); err != nil {
			t.fail(err)
		}
	})
}

// over says that nothing new is to be begun.
func (t *trial) over() bool { return t.done.Load() || t.ctx.Err() != nil }

// now is the time since the trial began.
func (t *trial) now() time.Duration { return time.Since(t.base) }

// counts reports whether what began at an instant belongs to the measured stretch.
func (t *trial) counts(at time.Duration) bool {
	return int64(at) >= t.begin.Load() && int64(at) < t.end.Load()
}

// stretch is what was measured.
type stretch struct {
	seconds       float64
	units         uint64   // what count said at the end, less what it said at the beginning
	generator     *float64 // CPUs that this process used on average; nil: not known
	server        *float64 // the same of the server
	before, after ServerUsage
}

// load is what a trial runs.
type load struct {
	start  func()        // the workers
	count  func() uint64 // how much has been done so far
	finish func() error  // waits for the end once nothing new is begun; may be nil
}

// run starts a load, lets it warm up, measures it and sees it to its end. The error is the first of a worker, or that of ctx.
func (t *trial) run(l load) (stretch, error) {
	before, err := t.usage()
	if err != nil {
		return stretch{}, err
	}
	l.start()
	s, err := t.measure(l.count)
	if stopped := t.stop(l.finish); err == nil {
		err = stopped
	}
	if err != nil {
		return stretch{}, err
	}
	s.before = before
	if s.after, err = t.usage(); err != nil {
		return stretch{}, err
	}
	return s, nil
}

// measure waits for the stretch and looks at both of its ends.
func (t *trial) measure(count func() uint64) (stretch, error) {
	if err := t.pause(t.timing.WarmUp); err != nil {
		return stretch{}, err
	}
	server0, err := t.usage()
	if err != nil {
		return stretch{}, err
	}
	cpu0, cpuErr := machine.CPUTime()
	units0 := count()
	begin := t.now()
	t.begin.Store(int64(begin))
	if err := t.pause(t.timing.Duration); err != nil {
		return stretch{}, err
	}
	units1 := count()
	end := t.now()
	t.end.Store(int64(end))
	s := stretch{seconds: (end - begin).Seconds(), units: units1 - units0}
	if cpu1, err := machine.CPUTime(); cpuErr == nil && err == nil {
		s.generator = ptr((cpu1 - cpu0).Seconds() / s.seconds)
	}
	server1, err := t.usage()
	if err != nil {
		return stretch{}, err
	}
	if server0.CPU != nil && server1.CPU != nil {
		s.server = ptr((*server1.CPU - *server0.CPU).Seconds() / server1.At.Sub(server0.At).Seconds())
	}
	return s, nil
}

func (t *trial) usage() (ServerUsage, error) {
	if t.meter == nil {
		return ServerUsage{}, nil
	}
	return t.meter.Usage(t.ctx)
}

func (t *trial) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// stop waits for the workers, and gives up on those that do not end.
func (t *trial) stop(finish func() error) error {
	t.done.Store(true)
	late := time.AfterFunc(drainTime, func() {
		t.fail(fmt.Errorf("the load did not end within %v after its last request", drainTime))
	})
	defer late.Stop()
	var err error
	if finish != nil {
		err = finish()
	}
	t.workers.Wait()
	if cause := context.Cause(t.ctx); cause != nil {
		return cause
	}
	return err
}

func ptr[T any](v T) *T { return &v }
