// Package diskpool runs what may block on a disk, on goroutines that belong to nobody else: a few per device and kind of work, so that a disk that
// hangs takes a bounded number of goroutines along, and none of those that serve other disks, clients or actors.
//
// Logs reach it through Executor and start no goroutine and no timer of their own; a simulation puts a Manual in the place of the Pool.
package diskpool

import (
	"fmt"
	"time"
)

// Kind tells what a job does. Each kind has workers of its own on each device.
type Kind uint8

const (
	// Write appends to files or cuts them.
	Write Kind = iota + 1
	// Sync waits for the device.
	Sync
	// Work is what takes long and nobody waits for by the millisecond: open, roll, retention, compression.
	Work
)

// kinds counts them.
const kinds = 3

// String is the kind's name in metrics.
func (k Kind) String() string {
	switch k {
	case Write:
		return "write"
	case Sync:
		return "sync"
	case Work:
		return "work"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Kinds returns all kinds, for metrics.
func Kinds() []Kind { return []Kind{Write, Sync, Work} }

// Job is one piece of work.
type Job struct {
	Device uint64 // as vfs.FS tells devices apart
	Kind   Kind
	// Owner is who may have one such job at a time: of one owner and kind, one job runs and one more may wait, which Run of
	// the former is free to submit; it starts after that Run returned. A second one that waits is a panic. Owners are
	// compared with ==. A job with no owner is alone.
	Owner any
	// Run does it. It may block for as long as the disk does.
	Run func()
	// Stalled is called once, if the job has waited and run for longer than StallAfter; Back once, after both that call and Run returned.
	// Both come from any goroutine and must not block. Nil: nobody wants to know.
	Stalled func()
	Back    func()
}

// Executor runs jobs. It is safe for concurrent use.
type Executor interface {
	// Go runs a job once, soon, on another goroutine. It never blocks. Jobs of one device and kind start in the order in which they
	// were submitted, but for one that waits for its owner's former job: it takes its place when that is done.
	Go(j Job)
	// After calls f once, d from now, on another goroutine; f must not block. stop prevents that, and reports whether it did.
	After(d time.Duration, f func()) (stop func() bool)
	// Now is the instant on the clock that After uses.
	Now() time.Time
}

// StallAfter is how old a job may become before its disk is said to stall. Disks answer within milliseconds and bad ones within a
// second; after five, something is broken or hopelessly overloaded.
const StallAfter = 5 * time.Second

// check panics on a job that no Executor could run.
func (j *Job) check() {
	if j.Kind < Write || j.Kind > Work {
		panic("diskpool: a job of " + j.Kind.String())
	}
	if j.Run == nil {
		panic("diskpool: a job without Run")
	}
}

// ownerKey is whose turn it is.
type ownerKey struct {
	owner any
	kind  Kind
}

func (j *Job) key() ownerKey { return ownerKey{j.Owner, j.Kind} }

// twoWait is the panic for an owner that broke its duty.
func twoWait(j *Job) {
	panic(fmt.Sprintf("diskpool: two %s jobs of one owner (%T) wait at once", j.Kind, j.Owner))
}
