package storage

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// Reader is the reading half of one shard's log. Any number of goroutines may use it, beside the one that appends.
type Reader interface {
	// Bounds returns the oldest offset that can be read and the offset after the newest readable record.
	Bounds() (oldest, end id.Offset)
	// Register adds a reader. What becomes readable from now on is for it; Release must be called once. The error is a
	// *TooOldError or an *InFutureError, and only for StartOffset.
	Register(o CursorOptions) (Cursor, error)
	// Cursors returns the state of at most limit readers with a number above after, in the order of their numbers.
	Cursors(after uint64, limit int) []CursorState
}

// Start is where a reader begins.
type Start uint8

const (
	// StartLatest begins with what becomes readable after the registration.
	StartLatest Start = iota
	// StartEarliest begins with the oldest batch the log holds. That history is the reader's whatever its size; its window counts
	// it, so that nothing further is queued until enough of it was read.
	StartEarliest
	// StartOffset begins with the record at CursorOptions.Offset. A log in memory knows only what its ring holds.
	StartOffset
)

// CursorOptions is what a reader registers with.
type CursorOptions struct {
	Start Start
	// Offset is where StartOffset begins: at most the readable end, which is to wait for what comes.
	Offset id.Offset
	// Capacity is how many batches may be queued for the reader, those in its hand included; at least 1.
	Capacity int
	// Ring is called when what the reader has armed for is there, with the lock of the log held: it must not block and must
	// not call back into the log.
	Ring func()
	// Owner says whose reader it is, to those who list readers or hear of drops. The log never looks inside.
	Owner any
}

// Cursor is a registered position in a log. One goroutine uses it at a time.
//
// What Take hands out stays the reader's, and counts in its window, until the next call of Take, Arm or Release says that it
// is done with it. So a reader that stands still in the middle of a write has everything it was given, and its window bounds what it
// keeps alive.
type Cursor interface {
	// Take returns the next batches: at least one if any is queued, none behind a hole, and no further one that would
	// exceed maxBatches or maxBytes. dst is reused for the result. An empty page without Lost means that nothing is queued:
	// Arm. The first batch of a reader begins where the reader does, later ones where they were written. It may wait for the disk,
	// until ctx is done. The error is a *ClosedError once the log is closed and everything queued was taken, a *TooOldError once
	// retention has removed what comes next, and otherwise says what is wrong with the log or the disk.
	Take(ctx context.Context, maxBatches, maxBytes int, dst []*batch.Batch) (Page, error)
	// Arm has the reader rung once, when as many batches or bytes are queued as it names, or when the log closes. It returns
	// false, and rings nobody, when that is so already. A reader that waits for the first batch costs a commit nothing but
	// its wake.
	Arm(batches int, bytes int64) bool
	// Disarm takes Arm back. Afterwards the reader is not rung any more.
	Disarm()
	// Start is where the reader began, and Live the readable end at that moment: what lies between them is history, what comes
	// from Live on is live.
	Start() id.Offset
	Live() id.Offset
	// Behind reports whether the reader has not come to the tail yet: what it reads is stored, and will be there for whoever resumes.
	Behind() bool
	// LetGo says that the last page is not held any more, though the reader has not finished with it: if it was read from disk it is not counted
	// from then on.
	LetGo()
	// Drop counts records that the reader took and could not pass on.
	Drop(records uint64)
	// Release ends the registration. What was queued is let go, and publishers that waited for this reader go on.
	Release()
}

// Page is what one Take found.
type Page struct {
	// From is where the page before ended. The reader does not get what lies between there and the first batch, or Next if there
	// is none.
	From id.Offset
	// Batches are in offset order and follow each other without a gap; they are shared, not to be changed.
	Batches []*batch.Batch
	// Next is where the next page begins, or the hole in front of it.
	Next id.Offset
	// Lost counts the records that it does not get.
	Lost uint64
}

// History is the whole of a durable log, read a piece at a time and without a registration.
type History interface {
	// Bounds returns the oldest offset that can be read and the offset after the newest readable record.
	Bounds() (oldest, end id.Offset)
	// Read returns whole batches, all kinds of them, the first of which holds from; none that begins at or past end or past the
	// readable end, at most maxBatches, and after the first one no more than maxBytes of them. dst is reused for the result. It may
	// wait for the disk, until ctx is done. The error is a *TooOldError below the oldest offset, a *ClosedError, or says what is wrong
	// with the log or the disk.
	Read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error)
	// OffsetForTime returns the first readable offset whose batch was appended at or after a time in microseconds since the Unix
	// epoch; false when none is that recent. Clocks that were set back make it approximate.
	OffsetForTime(ctx context.Context, micros uint64) (o id.Offset, ok bool, err error)
}

// TooOldError says that a log does not hold an offset any more: begin at Oldest.
type TooOldError struct{ Requested, Oldest id.Offset }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("read log: offset %d is too old: the oldest one kept is %d", e.Requested, e.Oldest)
}

// InFutureError says that a log has not come to an offset yet: begin at most at Tail.
type InFutureError struct{ Requested, Tail id.Offset }

func (e *InFutureError) Error() string {
	return fmt.Sprintf("read log: offset %d is in the future: the next one is %d", e.Requested, e.Tail)
}

// CursorState describes one reader.
type CursorState struct {
	Number   uint64 // of this node, never used again while it runs
	Owner    any
	Queued   int   // batches queued, those in its hand included
	Bytes    int64 // of them
	Capacity int
	Start    id.Offset // where it began
	Position id.Offset // after the last record that it is done with
	Tail     id.Offset // of the log, readable end
	Dropped  uint64    // records it did not get
	Waiting  bool      // for the first batch: it has nothing to do
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
