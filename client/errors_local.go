package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/felixd/felixd/wire/id"
)

// AddrFailure is why one address could not be used: a *transport.DialError, or the *BrokerError of its refusal.
type AddrFailure struct {
	Addr string
	Err  error
}

// ConnectError says that none of the addresses led to a broker that takes this client.
type ConnectError struct {
	Failures []AddrFailure // in the order they were tried
}

// Error lists every address with its reason.
func (e *ConnectError) Error() string {
	var b strings.Builder
	b.WriteString("connect: no broker " + e.did() + " (")
	for i, f := range e.Failures {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %v", f.Addr, f.Err)
	}
	b.WriteString(")")
	return b.String()
}

// did is what no broker did.
func (e *ConnectError) did() string {
	if e.refused() {
		return "takes this client"
	}
	return "answered"
}

// Unwrap gives the reasons of all addresses.
func (e *ConnectError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		errs[i] = f.Err
	}
	return errs
}

// Is matches ErrUnreachable when no broker said a word; a refusal is an answer.
func (e *ConnectError) Is(target error) bool {
	return target == ErrUnreachable && !e.refused()
}

// refused reports whether a broker said no.
func (e *ConnectError) refused() bool {
	for _, f := range e.Failures {
		var refused *BrokerError
		if errors.As(f.Err, &refused) {
			return true
		}
	}
	return false
}

// GaveUpError says that what may be repeated was repeated as often, or as long, as the options allow. What it matches is up
// to the last error.
type GaveUpError struct {
	Tries int
	Err   error // of the last try
}

// Error gives the last error and how many tries there were.
func (e *GaveUpError) Error() string {
	return fmt.Sprintf("%v (gave up after %d tries)", e.Err, e.Tries)
}

// Unwrap gives the error of the last try.
func (e *GaveUpError) Unwrap() error { return e.Err }

// LimitError says that a bound of this client is reached.
type LimitError struct {
	Op    string
	Limit string // what is bounded
	Most  int
}

// Error names the bound.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: there are %d %s already; close some or raise the bound", e.Op, e.Most, e.Limit)
}

// Is matches ErrLimitExceeded.
func (e *LimitError) Is(target error) bool { return target == ErrLimitExceeded }

// ConnectionLostError says that the stream of a request, or its whole connection, ended before the answer. By itself it
// says nothing about the effect; an *OutcomeUnknownError around it does.
type ConnectionLostError struct {
	Op   string // empty within an *OutcomeUnknownError, which has it
	Addr string // of the broker
	Err  error  // how the stream or the connection ended
}

// Error gives the operation, the broker and the cause.
func (e *ConnectionLostError) Error() string {
	return fmt.Sprintf("%sconnection to %s lost: %v", prefix(e.Op), e.Addr, e.Err)
}

// prefix is the operation in front of a text; nothing when the error around it has named it.
func prefix(op string) string {
	if op == "" {
		return ""
	}
	return op + ": "
}

// opError puts the operation in front of an error.
func opError(op string, err error) error { return fmt.Errorf("%s: %w", op, err) }

// Unwrap gives the cause.
func (e *ConnectionLostError) Unwrap() error { return e.Err }

// Is matches ErrConnectionLost.
func (e *ConnectionLostError) Is(target error) bool { return target == ErrConnectionLost }

// OutcomeUnknownError says that a request was handed to the network and its answer never came: it may have taken effect.
// The client never repeats it.
type OutcomeUnknownError struct {
	Op  string
	Err error // why there is no answer: a lost connection, or the caller's context
}

// Error gives the operation and the cause.
func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("%s: no answer, it may have taken effect: %v", e.Op, e.Err)
}

// Unwrap gives the cause.
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// Is matches ErrOutcomeUnknown.
func (e *OutcomeUnknownError) Is(target error) bool { return target == ErrOutcomeUnknown }

// UnsupportedError says that the broker did not advertise what the request needs, or answered that it does not serve it.
type UnsupportedError struct {
	Op      string
	Feature string // what is missing
}

// Error gives the operation and what is missing.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: the broker does not offer %s; use a broker that does", e.Op, e.Feature)
}

// Is matches ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// ProtocolError says that the broker sent something the protocol does not allow at that place. The stream it came on is
// given up.
type ProtocolError struct {
	Op   string
	What string
	Err  error // the decoder's error, if that is what it was
}

// Error gives the operation and what was wrong.
func (e *ProtocolError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: the broker broke the protocol: %s: %v", e.Op, e.What, e.Err)
	}
	return fmt.Sprintf("%s: the broker broke the protocol: %s", e.Op, e.What)
}

// Unwrap gives the decoder's error.
func (e *ProtocolError) Unwrap() error { return e.Err }

// ArgumentError says that a call was wrong before anything was sent: also a value, a key or a payload that is too long for a frame. It
// matches ErrInvalidRequest, as a broker that was asked would have refused it.
type ArgumentError struct {
	Op       string
	Argument string
	Problem  string // what is wrong and what would be right
}

// Error names the argument and the problem.
func (e *ArgumentError) Error() string { return fmt.Sprintf("%s: %s %s", e.Op, e.Argument, e.Problem) }

// Is matches ErrInvalidRequest.
func (e *ArgumentError) Is(target error) bool { return target == ErrInvalidRequest }

// NotLeaderError says that another broker owns the shard.
type NotLeaderError struct {
	Op         string
	NodeID     string
	Addr       string // "IP:port" of the owner; empty when it published none
	Generation id.Generation
}

// Error names the owner.
func (e *NotLeaderError) Error() string {
	if e.Addr == "" {
		return fmt.Sprintf("%s: broker %s owns the shard and published no address", e.Op, e.NodeID)
	}
	return fmt.Sprintf("%s: broker %s at %s owns the shard; connect to it", e.Op, e.NodeID, e.Addr)
}

// Is matches ErrNotLeader.
func (e *NotLeaderError) Is(target error) bool { return target == ErrNotLeader }
