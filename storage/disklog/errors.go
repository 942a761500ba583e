package disklog

import (
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// ErrClosing refuses an open while the log is being closed. Trying again after the close is done helps.
var ErrClosing = errors.New("open log: it is being closed; try again")

// ErrStoreClosed refuses whatever is asked of a closed store.
var ErrStoreClosed = errors.New("the store is closed")

// BusyError refuses a second open of a log: two writers in one directory would destroy it.
type BusyError struct{ Shard string }

func (e *BusyError) Error() string { return "open log of " + e.Shard + ": it is open already" }

// MissingError says that a log that must exist does not, or that another one is in its place.
type MissingError = segment.MissingError

// CorruptionError says what is damaged, and where.
type CorruptionError = segment.CorruptionError

// PoisonedError says that a sync of the log failed in this process. What was written since the last success may be lost although it
// reads well, so nothing is written or acknowledged until a new process has read the disk again.
type PoisonedError struct {
	Shard string
	Err   error // what the first failed sync said
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("log of %s: a sync failed, restart to recover: %v", e.Shard, e.Err)
}

func (e *PoisonedError) Unwrap() error { return e.Err }

// StuckError says that a failed write could not be cut off again, or that a cut of the log was begun and not finished, so that its end is
// unknown. Appends fail until a restart, which settles it either way.
type StuckError struct {
	Shard string
	Err   error // what the cut said
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("log of %s: its end is unknown after a cut that failed, restart to recover: %v", e.Shard, e.Err)
}

func (e *StuckError) Unwrap() error { return e.Err }

// TrimmedError says that records were asked for that are not kept any more.
type TrimmedError struct {
	Requested id.Offset
	Oldest    id.Offset // the oldest that can be read
}

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("read log: offset %d is not kept any more, the oldest is %d", e.Requested, e.Oldest)
}

// ClosedError answers calls on a log that was closed.
type ClosedError struct{ Shard string }

func (e *ClosedError) Error() string { return "log of " + e.Shard + ": it is closed" }

// BelowCommitError refuses to discard records that are committed.
type BelowCommitError struct {
	Shard  string
	To     id.Offset // where the cut was asked for
	Commit id.Offset
}

func (e *BelowCommitError) Error() string {
	return fmt.Sprintf("cut log of %s to %d: records up to %d are committed", e.Shard, e.To, e.Commit)
}

// NotBoundaryError refuses a cut inside a batch: a batch is kept or dropped whole.
type NotBoundaryError struct {
	Shard    string
	To       id.Offset
	Boundary id.Offset // where the batch that holds it begins
}

func (e *NotBoundaryError) Error() string {
	return fmt.Sprintf("cut log of %s to %d: this is inside the batch at %d", e.Shard, e.To, e.Boundary)
}

func isTrimmed(err error) bool {
	var t *TrimmedError
	return errors.As(err, &t)
}

// SnapshotBusyError refuses to save a snapshot while another one is being saved under its name.
type SnapshotBusyError struct {
	Shard string
	Name  string // of the snapshot
}

func (e *SnapshotBusyError) Error() string {
	return fmt.Sprintf("save snapshot %s of %s: one of that name is being saved; try again when it is", e.Name, e.Shard)
}

// SnapshotStaleError refuses a snapshot that was begun before the log was cut or reset: it may tell of records that are not there any more.
type SnapshotStaleError struct {
	Shard string
	Name  string // of the snapshot
}

func (e *SnapshotStaleError) Error() string {
	return fmt.Sprintf("save snapshot %s of %s: the log was cut since it was begun; derive it anew", e.Name, e.Shard)
}

func isNotExist(err error) bool { return errors.Is(err, iofs.ErrNotExist) }
