package keyed

import (
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// FullError refuses a new or larger entry: the node's memory for keys is taken. Nothing that a log holds is given up for another key, so
// room is made by deletes, by entries that expire, or by a larger budget.
type FullError struct{ Needed, Used, Limit int64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("keyed: the entry needs %d bytes of the node's memory for keys, and %d of %d are in use; delete keys or raise the budget", e.Needed, e.Used, e.Limit)
}

// KeyTooLongError refuses a key above KeyMax.
type KeyTooLongError struct{ Bytes int }

func (e *KeyTooLongError) Error() string {
	return fmt.Sprintf("keyed: a key of %d bytes, at most %d are possible; use a shorter one", e.Bytes, KeyMax)
}

// ValueTooLongError refuses a value above ValueMax.
type ValueTooLongError struct{ Bytes int }

func (e *ValueTooLongError) Error() string {
	return fmt.Sprintf("keyed: a value of %d bytes, at most %d are possible", e.Bytes, ValueMax)
}

// GapError says that a batch does not continue what was folded: records are missing in between, or the log is another one. Fold from the
// log's beginning.
type GapError struct{ Want, Got id.Offset }

func (e *GapError) Error() string {
	return fmt.Sprintf("keyed: the fold stands at offset %s and the batch begins at %s", e.Want, e.Got)
}

// RecordError says which record of a log could not be folded. The state is not that of the log any more: it must not be served.
type RecordError struct {
	At  id.Offset
	Err error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("keyed: fold the record at offset %s: %v", e.At, e.Err)
}

// Unwrap is why.
func (e *RecordError) Unwrap() error { return e.Err }

// BodyError says that the body of a batch is not what its header says, or not what is looked for.
type BodyError struct{ What string }

func (e *BodyError) Error() string { return "keyed: a batch whose body " + e.What }

// SnapshotError says why a snapshot can't be used. It is derived state: ignore it, count it, and fold the log.
type SnapshotError struct {
	What string
	Err  error // of what was read, or of the log; nil if the snapshot itself is wrong
}

func (e *SnapshotError) Error() string {
	if e.Err != nil {
		return "keyed: unusable snapshot: " + e.What + ": " + e.Err.Error()
	}
	return "keyed: unusable snapshot: " + e.What
}

// Unwrap is what went wrong below, nil if nothing did.
func (e *SnapshotError) Unwrap() error { return e.Err }
