package client

import (
	"errors"
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// What an error of a numbered or conditional write, or of a start offset, is about, for errors.Is. None of these writes was
// appended, unless the error matches ErrOutcomeUnknown too: then an earlier try of the same batch may have been.
var (
	// ErrOffsetMismatch: the expected offset was not the next one: somebody else wrote first.
	ErrOffsetMismatch = errors.New("offset mismatch")
	// ErrSequenceGap: a batch before this one is missing at the broker, although it was acknowledged.
	ErrSequenceGap = errors.New("sequence gap")
	// ErrUnknownProducer: the broker no longer knows the producer. Make a new one.
	ErrUnknownProducer = errors.New("unknown producer")
	// ErrSequenceExpired: the batch is older than what the broker remembers, so nobody can tell whether it was written.
	ErrSequenceExpired = errors.New("sequence expired")
	// ErrSequenceReused: the number was used for other records: two producers share an id.
	ErrSequenceReused = errors.New("sequence reused")
	// ErrProducerStopped: a producer takes no more records for a shard, see *ProducerError.
	ErrProducerStopped = errors.New("producer stopped")
	// ErrTooOld: the records at that offset are no longer kept.
	ErrTooOld = errors.New("offset too old")
	// ErrInFuture: the log does not reach that offset yet.
	ErrInFuture = errors.New("offset in the future")
)

// OffsetMismatchError says that a conditional write lost: another record is at the offset it was bound to, or will be.
type OffsetMismatchError struct {
	Op       string
	Expected id.Offset // what the caller named
	Tail     id.Offset // the next offset of the shard, as the broker decided
}

// Error gives both offsets.
func (e *OffsetMismatchError) Error() string {
	return fmt.Sprintf("%s: expected offset %s, but the next one is %s: read what was written meanwhile, then decide again", e.Op, e.Expected, e.Tail)
}

// Is matches ErrOffsetMismatch.
func (e *OffsetMismatchError) Is(target error) bool { return target == ErrOffsetMismatch }

// SequenceError says that the broker refused the number of a batch. It matches one of ErrSequenceGap, ErrUnknownProducer,
// ErrSequenceExpired and ErrSequenceReused.
type SequenceError struct {
	Op         string
	Reason     wire.RefusedKind
	ProducerID uint64
	Sequence   uint64 // of the batch on its shard
	Expected   uint64 // with ErrSequenceGap: what the broker waits for
	Message    string // the broker's words
}

var sequenceMarks = [...]struct {
	reason wire.RefusedKind
	mark   error
	advice string
}{
	{wire.RefusedSequenceGap, ErrSequenceGap, "an acknowledged batch is missing there; check what was written before you go on"},
	{wire.RefusedUnknownProducer, ErrUnknownProducer, "make a new producer"},
	{wire.RefusedSequenceExpired, ErrSequenceExpired, "whether it was written cannot be told; look for it in the stream"},
	{wire.RefusedSequenceReused, ErrSequenceReused, "nothing was written; give each program a producer of its own"},
}

// Error gives the reason and what to do.
func (e *SequenceError) Error() string {
	text := fmt.Sprintf("%s: batch %d of producer %x: %s", e.Op, e.Sequence, e.ProducerID, e.Reason)
	if e.Reason == wire.RefusedSequenceGap {
		text += fmt.Sprintf(" (%d was due)", e.Expected)
	}
	for _, row := range sequenceMarks {
		if row.reason == e.Reason {
			text += ": " + row.advice
		}
	}
	return text
}

// Is matches the mark of the reason.
func (e *SequenceError) Is(target error) bool {
	for _, row := range sequenceMarks {
		if row.reason == e.Reason {
			return row.mark == target
		}
	}
	return false
}

// ProducerError says that a batch was not written because an earlier batch of its shard failed. It does not match what Err
// matches: that is the other batch's outcome.
type ProducerError struct {
	Op string
	// Stopped: the producer takes no more for this shard, since it is not known whether the other batch was written, or the
	// broker refused its number. Otherwise the same call may be made again.
	Stopped bool
	Err     error // of the earlier batch
}

// Error gives the cause and what to do.
func (e *ProducerError) Error() string {
	advice := "publish it again"
	if e.Stopped {
		advice = "look at what was written, then go on with a new producer"
	}
	return fmt.Sprintf("%s: not written, because an earlier batch of its shard failed (%v): %s", e.Op, e.Err, advice)
}

// Is matches ErrProducerStopped when it has stopped.
func (e *ProducerError) Is(target error) bool { return e.Stopped && target == ErrProducerStopped }

// Is matches ErrTooOld or ErrInFuture.
func (e *CursorError) Is(target error) bool {
	if e.Reason == wire.CursorInFuture {
		return target == ErrInFuture
	}
	return target == ErrTooOld
}

// refusedError turns a refusal of a numbered or conditional write into an error. What the request was bound to, the caller
// fills in.
func refusedError(op string, m *wire.PublishRefused) error {
	switch reason := m.Reason; reason.Kind {
	case wire.RefusedNotLeader:
		return &NotLeaderError{Op: op, NodeID: reason.NodeID, Addr: reason.Addr.V}
	case wire.RefusedOffsetMismatch:
		return &OffsetMismatchError{Op: op, Tail: reason.Tail}
	default:
		return &SequenceError{Op: op, Reason: reason.Kind, Expected: reason.Expected, Message: m.Message}
	}
}
