package client

import (
	"errors"
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// What an error of a work queue is about, for errors.Is.
var (
	// ErrStaleClaim: the delivery that a settlement names does not stand any more: see *StaleClaimError.
	ErrStaleClaim = errors.New("stale claim")
	// ErrDeadLetter: a handler of Consume gives up on a record for good. Return it, or an error around it: see DeadLetter.
	ErrDeadLetter = errors.New("dead letter")
)

// StaleClaimError says that a record was not settled, because its delivery does not stand any more: its visibility lapsed and it
// may have been handed to somebody else, or the group was moved, or the broker forgot what it had handed out. Nothing happened.
// The record is not lost: unless somebody finishes it, it is handed out again.
type StaleClaimError struct {
	Shard    uint32
	Offset   id.Offset
	Attempts uint32 // the delivery that was named; 0 for none
	Err      error  // the broker's refusal
}

// Error gives the refusal and what to do.
func (e *StaleClaimError) Error() string {
	return fmt.Sprintf("%v: the claim is gone, leave the record to whoever gets it next", e.Err)
}

// Unwrap gives the broker's refusal.
func (e *StaleClaimError) Unwrap() error { return e.Err }

// Is matches ErrStaleClaim.
func (e *StaleClaimError) Is(target error) bool { return target == ErrStaleClaim }

// PanicError is what a handler of Consume panicked with. The record was given back.
type PanicError struct {
	Value any    // what it panicked with; nil when it ended its goroutine instead
	Stack []byte // of the handler, as runtime/debug has it
}

// Error gives the value, without the stack.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "the handler ended its goroutine"
	}
	return fmt.Sprintf("the handler panicked: %v", e.Value)
}

// Unwrap gives the value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
