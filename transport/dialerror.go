package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/quic-go/quic-go"
)

// DialKind says at which step a dial failed, and so what can be done about it.
type DialKind string

// Kinds of dial failures.
const (
	// DialUnreachable: nobody answered, or the address does not resolve.
	DialUnreachable DialKind = "unreachable"
	// DialTLS: the two sides could not agree on keys or certificates.
	DialTLS DialKind = "tls"
	// DialALPN: something answered that does not speak this protocol on this port.
	DialALPN DialKind = "alpn"
	// DialRefused: the server is there and admits no further connection now.
	DialRefused DialKind = "refused"
	// DialCanceled: the caller's context ended first.
	DialCanceled DialKind = "canceled"
	// DialInvalid: the options or the local socket were at fault; nothing was sent.
	DialInvalid DialKind = "invalid"
)

// DialError is why a connection could not be made.
type DialError struct {
	Addr string
	Kind DialKind
	Err  error
}

// Error gives the address, the kind, the cause and what to do.
func (e *DialError) Error() string {
	return fmt.Sprintf("dial %s: %s: %v: %s", e.Addr, e.Kind, e.Err, e.Advice())
}

// Unwrap gives the cause.
func (e *DialError) Unwrap() error { return e.Err }

// Retryable says whether the same dial may succeed later without anyone changing a setting.
func (e *DialError) Retryable() bool { return e.Kind == DialUnreachable || e.Kind == DialRefused }

// Advice is what to do about the kind of failure.
func (e *DialError) Advice() string {
	switch e.Kind {
	case DialUnreachable:
		return "check that the server runs, that host and port are right, and that UDP reaches it"
	case DialTLS:
		return "check the CA file, the server name against the certificate, its dates, and the client certificate"
	case DialALPN:
		return "check the port: a broker has different ones for clients and for brokers, and some servers require ALPN to be offered"
	case DialRefused:
		return "the server has reached a connection limit; close connections or retry later"
	case DialCanceled:
		return "the caller gave up; allow more time if that was a deadline"
	}
	return "correct the options"
}

func dialError(addr string, err error) error {
	return &DialError{Addr: addr, Kind: dialKind(err), Err: err}
}

func dialKind(err error) DialKind {
	if alert, ok := alertOf(err); ok {
		if alert == alertNoProtocol {
			return DialALPN
		}
		return DialTLS
	}
	if _, ok := isTransportError(err, quic.ConnectionRefused); ok {
		return DialRefused
	}
	var lookup *net.DNSError
	var negotiation *quic.VersionNegotiationError
	switch {
	case errors.Is(err, context.Canceled):
		return DialCanceled
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded), errors.As(err, &lookup), isUnreachable(err):
		return DialUnreachable
	case errors.As(err, &negotiation):
		return DialALPN
	}
	if _, _, ok := CloseCode(err); ok { // the server said goodbye while the handshake was under way
		return DialRefused
	}
	return DialInvalid
}

// isUnreachable recognises what the kernel says about a destination it cannot send to.
func isUnreachable(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
}
