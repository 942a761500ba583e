package storage

import (
	"fmt"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// Page is what one Read found.
type Page struct {
	// Batches are in offset order; they are shared, not to be changed.
	Batches []*batch.Batch
	// Next is where to read on.
	Next id.Offset
	// Lost counts the records between the asked offset and the first batch that the log no longer holds.
	Lost uint64
}

// Reader is the reading half of one shard's log. Any number of goroutines may use it, beside the one that appends.
type Reader interface {
	// Bounds returns the oldest offset that can be read and the offset after the newest readable record.
	Bounds() (oldest, end id.Offset)
	// Read returns batches from offset from on: at least one if any is readable, and no further one that would exceed
	// maxBatches or maxBytes. dst is reused for the result. An empty page means that nothing is readable yet: Arm.
	// The error is a *ClosedError once the log is closed and all that it may serve was read.
	Read(from id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) (Page, error)
	// Arm registers w to be rung once something at or after from is readable or the log closes. It returns false, and
	// registers nothing, when that is so already. A waiter is rung once and must be armed again.
	Arm(w *Waiter, from id.Offset) bool
	// Disarm removes w; afterwards it is not rung any more.
	Disarm(w *Waiter)
}

// Waiter is a reader's place in the list of those that wait for more. Ring is called with the log's lock held: it must
// not block and must not call back into the log.
type Waiter struct {
	Ring       func()
	next, prev *Waiter
	armed      bool
}

// ClosedError tells a reader that a log ended, and why.
type ClosedError struct{ Reason CloseReason }

func (e *ClosedError) Error() string { return fmt.Sprintf("read log: closed: %s", e.Reason) }

// CloseReason says why a log ended.
type CloseReason uint8

const (
	// ClosedShutdown: the node stops.
	ClosedShutdown CloseReason = iota + 1
	// ClosedDeleted: the stream or cache was deleted.
	ClosedDeleted
	// ClosedFailed: the shard failed and comes back with a new log.
	ClosedFailed
)

var closeReasons = [...]string{ClosedShutdown: "shutdown", ClosedDeleted: "deleted", ClosedFailed: "failed"}

func (r CloseReason) String() string {
	if int(r) < len(closeReasons) && closeReasons[r] != "" {
		return closeReasons[r]
	}
	return fmt.Sprintf("reason_%d", uint8(r))
}
