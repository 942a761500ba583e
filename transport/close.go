package transport

import (
	"errors"

	"github.com/quic-go/quic-go"
)

// Application close codes of a connection. 0 and 1 are part of the client protocol; the others are ours, and a client that
// does not know them shows the number and the reason text.
const (
	// CloseShutdown says that the side that closes is going away and nothing is wrong.
	CloseShutdown quic.ApplicationErrorCode = 0
	// CloseAuthTimeout says that no stream of the connection authenticated in time.
	CloseAuthTimeout quic.ApplicationErrorCode = 1
	// CloseTooManyStreams says that more streams were opened before authentication than the broker will look at.
	CloseTooManyStreams quic.ApplicationErrorCode = 2
	// CloseProtocol says that the peer broke the framing of the protocol in a way that leaves the connection unusable.
	CloseProtocol quic.ApplicationErrorCode = 3
	// CloseCipherSuite says that the negotiated cipher suite is not allowed by policy.
	CloseCipherSuite quic.ApplicationErrorCode = 4
	// CloseRevoked says that the principal the connection belongs to lost its access.
	CloseRevoked quic.ApplicationErrorCode = 5
	// CloseOverload says that the node closes connections to save itself; retry later.
	CloseOverload quic.ApplicationErrorCode = 6
	// CloseInternal says that this side failed in a way that cost the connection; the other did nothing wrong. Connect again.
	CloseInternal quic.ApplicationErrorCode = 7
)

// closeReason is the text that travels with a code. "authentication timeout" is fixed by the client protocol.
func closeReason(code quic.ApplicationErrorCode) string {
	switch code {
	case CloseShutdown:
		return "shutting down"
	case CloseAuthTimeout:
		return "authentication timeout"
	case CloseTooManyStreams:
		return "too many streams before authentication"
	case CloseProtocol:
		return "protocol violation"
	case CloseCipherSuite:
		return "cipher suite not allowed"
	case CloseRevoked:
		return "access revoked"
	case CloseOverload:
		return "overloaded, retry later"
	case CloseInternal:
		return "internal error, connect again"
	}
	return ""
}

// Close closes conn with a code and the reason text that belongs to it. It waits until the close frame was handed to the
// socket, which takes no round trip. Closing a connection that is already closed does nothing.
func Close(conn *quic.Conn, code quic.ApplicationErrorCode) {
	// CloseWithError has no failure to report: it returns nil in every case.
	_ = conn.CloseWithError(code, closeReason(code))
}

// CloseWith closes conn like Close and returns cause as it is: it lets a caller close and fail in one line. The peer is told
// the code's fixed text, not the cause, which may name internals.
func CloseWith(conn *quic.Conn, code quic.ApplicationErrorCode, cause error) error {
	Close(conn, code)
	return cause
}

// CloseCode tells how a connection ended when its end carried an application code, and whether the peer sent it. ok is false
// for timeouts, transport errors and connections that are still open.
func CloseCode(err error) (code quic.ApplicationErrorCode, remote, ok bool) {
	var app *quic.ApplicationError
	if !errors.As(err, &app) {
		return 0, false, false
	}
	return app.ErrorCode, app.Remote, true
}

// StreamFinished is the code of a stopped read half whose owner has all it wanted. Peers treat any stop alike.
const StreamFinished quic.StreamErrorCode = 0

// FinishStream ends both halves of a bidirectional stream: what was written is still delivered and followed by the end of
// the stream, and nothing more is read. Only when both halves are closed does QUIC give the peer credit for another stream,
// so every path that leaves a stream must end here. It must not run at the same time as a Write. Calling it again does
// nothing.
func FinishStream(stream *quic.Stream) {
	stream.CancelRead(StreamFinished)
	// The only failure is that the write half was canceled before, and then it is closed already.
	_ = stream.Close()
}

// AbortStream ends both halves at once and drops what was written but not yet delivered. It may run at the same time as a
// Write, which then returns an error.
func AbortStream(stream *quic.Stream, code quic.StreamErrorCode) {
	stream.CancelRead(code)
	stream.CancelWrite(code)
}
