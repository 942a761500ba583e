package sessionactor

import (
	"context"
	"time"
)

// Conn is one client connection as a session sees it. package quicconn makes one from QUIC; the simulation from memory.
type Conn interface {
	// AcceptStream and AcceptReceiveStream wait for the next stream the client opens.
	AcceptStream(ctx context.Context) (Stream, error)
	AcceptReceiveStream(ctx context.Context) (ReceiveStream, error)
	// OpenSendStream opens a unidirectional stream, waiting until the client allows another. It is ErrStreamsKept when the transport has too many.
	OpenSendStream(ctx context.Context) (SendStream, error)
	// Close ends the connection with one of the close codes.
	Close(code CloseCode)
	// Context ends with the connection.
	Context() context.Context
	RemoteAddr() string
}

// ReceiveStream is the half of a stream that the client writes.
type ReceiveStream interface {
	Read(p []byte) (int, error)
	// CancelRead tells the client to stop sending and lets go of what was not read.
	CancelRead()
	SetReadDeadline(t time.Time) error
}

// SendStream is the half of a stream that the broker writes.
type SendStream interface {
	// Write waits until what was tried before it has been sent, and p but for its end, the size of a packet.
	Write(p []byte) (int, error)
	// TryWriteAll takes all of p at once or nothing of it; ErrWouldBlock says the latter, and ErrUnsent that it is for what was tried before, and
	// says nothing of the client's window. What is taken is bounded, however large the windows are. p is not kept. Only one goroutine may write.
	TryWriteAll(p []byte) error
	// Close finishes the stream after what was written; CancelWrite breaks it off.
	Close() error
	CancelWrite()
	// Context ends when the client has stopped the stream, or it was finished.
	Context() context.Context
}

// Stream is a bidirectional stream.
type Stream interface {
	ReceiveStream
	SendStream
}

// Acceptor hands out client connections.
type Acceptor interface {
	Accept(ctx context.Context) (Conn, error)
	// StopAccepting refuses new connections and leaves those that are there.
	StopAccepting() error
}

// CloseCode says to the client why its connection was closed.
type CloseCode uint8

const (
	// CloseShutdown: the broker goes away.
	CloseShutdown CloseCode = iota
	// CloseAuthTimeout: no stream authenticated in time.
	CloseAuthTimeout
	// CloseTooManyStreams: more streams than are allowed before the first one authenticated.
	CloseTooManyStreams
	// CloseOverload: the node has no room for another session.
	CloseOverload
	// CloseInternal: the broker failed in a way that cost this connection.
	CloseInternal
	// CloseRepeatedFailure: requests of a principal that uses it made shards fail more than once.
	CloseRepeatedFailure
)

// String is the code as a metric label.
func (c CloseCode) String() string {
	return [...]string{"shutdown", "authentication_timeout", "too_many_streams", "overload", "internal", "repeated_failure"}[c]
}
