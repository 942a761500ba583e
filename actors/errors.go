package actors

import (
	"errors"
	"fmt"
)

var (
	// ErrFull marks a refusal for want of room: nothing happened, try again later. The error carrying it is a *FullError.
	ErrFull = errors.New("mailbox is full")
	// ErrStopped says that the incarnation a ref points at takes nothing any more, and never will again.
	ErrStopped = errors.New("actor has stopped")
	// ErrNameTaken says that a child of that name still exists: wait for its ChildTerminated.
	ErrNameTaken = errors.New("name is taken by an actor that is not yet gone")
	// ErrBadSpec marks a Spec that can't be spawned; the text names the field and what it should be.
	ErrBadSpec = errors.New("actor spec is not valid")
)

// FullError tells which bound of a data lane refused a message. errors.Is(err, ErrFull) holds.
type FullError struct {
	Path       string // the actor that refused
	Items      int    // messages queued at the moment of refusal
	Bytes      int    // bytes queued at the moment of refusal
	LimitItems int    // bound in messages
	LimitBytes int    // bound in bytes
}

// Error names the actor, what it holds and what it may hold.
func (e *FullError) Error() string {
	return fmt.Sprintf("send to %s: %v: %d of %d messages, %d of %d bytes", e.Path, ErrFull, e.Items, e.LimitItems, e.Bytes, e.LimitBytes)
}

// Is makes errors.Is(err, ErrFull) hold.
func (e *FullError) Is(target error) bool { return target == ErrFull }
