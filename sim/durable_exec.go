package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/storage/diskpool"
)

// simExec is the disk pool of one life of a node: each job is one step, at a later instant that the seed draws. What a kill or a power cut
// finds is whatever has not run by then.
//
// Jobs of one owner and kind keep their order, as the contract of diskpool.Executor says; those of different owners may overtake each other,
// since they end on different workers.
type simExec struct {
	run   *drun
	life  *simrt.Life
	clock *simrt.Clock
	waits map[execKey]bool // jobs that have not begun; never iterated
	open  int              // jobs that have not ended
}

type execKey struct {
	owner any
	kind  diskpool.Kind
}

var _ diskpool.Executor = (*simExec)(nil)

// Go runs a job later.
func (x *simExec) Go(j diskpool.Job) {
	key := execKey{j.Owner, j.Kind}
	if j.Owner != nil {
		if x.waits[key] {
			panic(fmt.Sprintf("sim: two %s jobs of one owner (%T) wait at once", j.Kind, j.Owner))
		}
		x.waits[key] = true
	}
	x.open++
	wait := x.run.disk.jobTime(x.run)
	stalled := false
	stop := func() bool { return false }
	if wait > diskpool.StallAfter {
		stop = x.After(diskpool.StallAfter, func() {
			stalled = true
			if j.Stalled != nil {
				j.Stalled()
			}
		})
	}
	x.After(wait, func() {
		w := x.run.world
		w.Name(fmt.Sprintf("n%d/disk %s", x.run.lives, j.Kind))
		delete(x.waits, key)
		j.Run()
		x.open--
		if !stop() && stalled && j.Back != nil {
			j.Back()
		}
	})
}

// After arms a timer.
func (x *simExec) After(d time.Duration, f func()) (stop func() bool) {
	return x.clock.AfterFunc(d, f).Stop
}

// Now is the node's time.
func (x *simExec) Now() time.Time { return x.clock.Now() }

// diskState is how the disk does at the moment.
type diskState struct {
	slow  time.Duration // the longest that a job waits now; zero: as long as it does on a good disk
	until time.Duration // true time at which that ends
	hangs bool          // nothing that is submitted before that ends until then
	hung  time.Duration // the latest instant at which a job that hung is to go on
}

// jobTime draws how long a job waits.
func (d *diskState) jobTime(r *drun) time.Duration {
	now, most := r.world.Now(), r.plan.Disk.JobTime
	if now >= d.until {
		d.slow, d.hangs = 0, false
	}
	if d.slow > 0 {
		most = d.slow
	}
	wait := time.Duration(r.world.Rand().Int64N(int64(most)))
	if d.hangs {
		wait += (d.until - now) * 5 / 4 // on a clock that is up to a tenth too fast
	}
	return wait
}
