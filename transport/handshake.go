package transport

import (
	"errors"

	"github.com/quic-go/quic-go"
)

// Reasons for a handshake that failed on a listener, as OnHandshakeFailed gives them.
const (
	// FailedALPN: the client offered only other application protocols, or none where one is required.
	FailedALPN = "alpn"
	// FailedTLS: anything else one of the sides objected to in TLS, such as version, certificate or cipher suite.
	FailedTLS = "tls"
	// FailedTimeout: the client stopped answering.
	FailedTimeout = "timeout"
	// FailedQueueFull: the handshake was complete, but too many others waited for Accept.
	FailedQueueFull = "accept_queue_full"
	// FailedShutdown: the listener was closed meanwhile.
	FailedShutdown = "shutdown"
	// FailedAbandoned: the client closed the connection by itself.
	FailedAbandoned = "abandoned"
	// FailedOther: a violation of QUIC itself.
	FailedOther = "other"
)

const (
	// cryptoErrors is where QUIC puts the 256 alerts of TLS among its error codes (RFC 9001 4.8).
	cryptoErrors quic.TransportErrorCode = 0x100
	// alertNoProtocol is no_application_protocol (RFC 7301 3.2).
	alertNoProtocol = 120
)

// alertOf gives the TLS alert that ended a handshake, if it was one.
func alertOf(err error) (alert uint8, ok bool) {
	var failed *quic.TransportError
	if !errors.As(err, &failed) || !failed.ErrorCode.IsCryptoError() {
		return 0, false
	}
	return uint8(failed.ErrorCode - cryptoErrors), true
}

// isTransportError says whether err carries this code of QUIC itself, and whether the peer sent it.
func isTransportError(err error, code quic.TransportErrorCode) (remote, ok bool) {
	var failed *quic.TransportError
	if !errors.As(err, &failed) || failed.ErrorCode != code {
		return false, false
	}
	return failed.Remote, true
}

// failureReason classifies the end of a connection that was never accepted.
func failureReason(err error, stopped bool) string {
	if alert, ok := alertOf(err); ok {
		if alert == alertNoProtocol {
			return FailedALPN
		}
		return FailedTLS
	}
	if remote, ok := isTransportError(err, quic.ConnectionRefused); ok && !remote {
		if stopped {
			return FailedShutdown
		}
		return FailedQueueFull
	}
	if isTimeout(err) {
		return FailedTimeout
	}
	if _, _, ok := CloseCode(err); ok {
		return FailedAbandoned
	}
	if _, ok := isTransportError(err, quic.ApplicationErrorErrorCode); ok {
		return FailedAbandoned // an application close inside a handshake travels as this code (RFC 9000 10.2.3)
	}
	return FailedOther
}

func isTimeout(err error) bool {
	var handshake *quic.HandshakeTimeoutError
	var idle *quic.IdleTimeoutError
	return errors.As(err, &handshake) || errors.As(err, &idle)
}

func (l *Listener) reportFailure(err error) {
	if l.options.OnHandshakeFailed != nil {
		l.options.OnHandshakeFailed(failureReason(err, l.stopped.Load()), err)
	}
}
