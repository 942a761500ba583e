package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/felixd/felixd/wire"
)

// What an error of this package is about, for errors.Is. One error may match several.
var (
	// ErrClosed: the client or the subscription was closed by this side.
	ErrClosed = errors.New("closed")
	// ErrNotFound: the stream, cache, namespace or tenant does not exist, or is not known to the broker yet.
	ErrNotFound = errors.New("not found")
	// ErrUnauthenticated: the token was refused or revoked.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden: the token does not allow the request.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalidRequest: the request itself is at fault. The broker says so, or this client before it sends it: then it is an
	// *ArgumentError too.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnavailable: nobody can serve the shard right now.
	ErrUnavailable = errors.New("shard unavailable")
	// ErrNotLeader: another broker owns the shard.
	ErrNotLeader = errors.New("not leader")
	// ErrOverloaded: the broker sheds load; pause, then repeat.
	ErrOverloaded = errors.New("overloaded")
	// ErrLimitExceeded: a configured limit is reached.
	ErrLimitExceeded = errors.New("limit exceeded")
	// ErrDraining: the broker is shutting down.
	ErrDraining = errors.New("draining")
	// ErrOutcomeUnknown: the request may or may not have taken effect. Repeat only what may happen twice.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrUnreachable: no broker answered at all.
	ErrUnreachable = errors.New("unreachable")
	// ErrConnectionLost: the connection or the stream ended before the answer.
	ErrConnectionLost = errors.New("connection lost")
	// ErrUnsupported: the broker does not offer the request.
	ErrUnsupported = errors.New("unsupported")
)

// BrokerError is a request the broker refused.
type BrokerError struct {
	Op         string        // what was tried
	Code       wire.Code     // wire.CodeUnknown when the broker sent none, or one this version does not know
	Retry      wire.Retry    // what may be done; 0 when the broker sent neither code nor class
	Message    string        // the broker's words
	Reason     string        // finer cause, one of the wire.Reason constants; may be empty
	RetryAfter time.Duration // pause the broker asks for before repeating; 0 when it asks for none
}

// Error gives the operation, the code, the broker's words and what may be done.
func (e *BrokerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", e.Op)
	if e.Code != wire.CodeUnknown {
		b.WriteString(e.Code.String())
		if e.Reason != "" {
			fmt.Fprintf(&b, " (%s)", e.Reason)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if advice := e.advice(); advice != "" {
		fmt.Fprintf(&b, " [%s]", advice)
	}
	return b.String()
}

// advice puts the class into words.
func (e *BrokerError) advice() string {
	switch e.Retry {
	case wire.RetryRetry:
		if e.Code == wire.CodeStaleClaim {
			return "nothing happened" // the same settlement helps only once the record has been handed out, see repeatable
		}
		return "nothing happened, it may be repeated"
	case wire.RetryAfter:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("nothing happened, it may be repeated after %v", e.RetryAfter)
		}
		return "nothing happened, it may be repeated after a pause"
	case wire.RetryRedirect:
		return "nothing happened, ask the owner of the shard"
	case wire.RetryOutcomeUnknown:
		return "it may have taken effect"
	}
	return ""
}

// codeMarks says which mark a code matches.
var codeMarks = [...]struct {
	code wire.Code
	mark error
}{
	{wire.CodeUnauthenticated, ErrUnauthenticated},
	{wire.CodeRevoked, ErrUnauthenticated},
	{wire.CodeForbidden, ErrForbidden},
	{wire.CodeNotFound, ErrNotFound},
	{wire.CodeStreamDeleted, ErrNotFound},
	{wire.CodeInvalidRequest, ErrInvalidRequest},
	{wire.CodeShardUnavailable, ErrUnavailable},
	{wire.CodeNotLeader, ErrNotLeader},
	{wire.CodeOverloaded, ErrOverloaded},
	{wire.CodeLimitExceeded, ErrLimitExceeded},
	{wire.CodeDraining, ErrDraining},
	{wire.CodeStaleClaim, ErrStaleClaim},
}

// Is matches the mark of the code, and ErrOutcomeUnknown by the class, whatever the code.
func (e *BrokerError) Is(target error) bool {
	if target == ErrOutcomeUnknown {
		return e.Retry == wire.RetryOutcomeUnknown
	}
	for _, row := range codeMarks {
		if row.code == e.Code && row.mark == target {
			return true
		}
	}
	return false
}

// Retryable reports whether the same call may succeed later without anybody changing a setting, and cannot do harm by being
// made twice: nothing happened. The client itself repeats where that is safe; after its patience ran out this tells whether
// more patience may help. Where the broker asked for a pause, it is BrokerError.RetryAfter.
func Retryable(err error) bool {
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		return false
	}
	return errors.Is(err, ErrNotLeader) || repeatable(err)
}

// brokerError turns a refusal of the wire into an error of this package.
func brokerError(op string, r wire.Refusal) *BrokerError {
	return &BrokerError{
		Op: op, Code: r.Code, Retry: r.Retry, Message: r.Message, Reason: r.Reason,
		RetryAfter: milliseconds(r.RetryAfterMS),
	}
}

// milliseconds converts a peer's number without overflow: a day is already longer than anybody waits.
func milliseconds(ms uint64) time.Duration {
	const day = 24 * 60 * 60 * 1000
	return time.Duration(min(ms, day)) * time.Millisecond
}
