// Package quicconn shows QUIC connections to the session actors as they want to see them. It is the only place where
// sessions and quic-go meet, so that a node without listeners needs no QUIC.
package quicconn

import (
	"context"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/transport"
)

// Acceptor accepts from a listener. Safe for concurrent use.
type Acceptor struct {
	listener   *transport.Listener
	perConn    int64
	streams    streamCount // of all connections
	collecting collection
}

var _ sessionactor.Acceptor = (*Acceptor)(nil)

// NewAcceptor returns one that accepts from a listener, which stays the caller's to close. d says how many subscriptions there may be: the transport
// keeps endedStreams times as many event streams.
func NewAcceptor(l *transport.Listener, d sessionactor.Delivery) *Acceptor {
	return &Acceptor{
		listener: l, perConn: endedStreams * int64(d.PerConnection), collecting: collection{pause: collectPause},
		streams: streamCount{used: new(atomic.Int64), most: endedStreams * int64(d.PerNode)},
	}
}

// Accept implements sessionactor.Acceptor.
func (a *Acceptor) Accept(ctx context.Context) (sessionactor.Conn, error) {
	c, err := a.listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return a.newConn(c), nil
}

// StopAccepting implements sessionactor.Acceptor.
func (a *Acceptor) StopAccepting() error { return a.listener.StopAccepting() }

type conn struct {
	c               *quic.Conn
	answers, events *atomic.Int64 // see unsent.shared; they refer to nothing of the connection, see remains
	streams, all    streamCount   // event streams that the transport has, of this connection and of all
	freed           chan struct{} // one of streams is not there any more
	collecting      *collection
}

func (a *Acceptor) newConn(c *quic.Conn) *conn {
	return &conn{
		c: c, answers: new(atomic.Int64), events: new(atomic.Int64),
		streams: streamCount{used: new(atomic.Int64), most: a.perConn}, all: a.streams, freed: make(chan struct{}, 1), collecting: &a.collecting,
	}
}

func (c *conn) AcceptStream(ctx context.Context) (sessionactor.Stream, error) {
	s, err := c.c.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	return &stream{s, unsent{shared: c.answers}}, nil
}

func (c *conn) AcceptReceiveStream(ctx context.Context) (sessionactor.ReceiveStream, error) {
	s, err := c.c.AcceptUniStream(ctx)
	if err != nil {
		return nil, err
	}
	return receiveStream{s}, nil
}

func (c *conn) OpenSendStream(ctx context.Context) (sessionactor.SendStream, error) {
	if !c.opening(ctx) {
		return nil, sessionactor.ErrStreamsKept
	}
	s, err := c.c.OpenUniStreamSync(ctx)
	if err != nil {
		c.kept().gone()
		return nil, err
	}
	c.opened(s)
	return &sendStream{s, unsent{shared: c.events}}, nil
}

func (c *conn) Close(code sessionactor.CloseCode) { transport.Close(c.c, closeCodes[code]) }

func (c *conn) Context() context.Context { return c.c.Context() }

func (c *conn) RemoteAddr() string { return c.c.RemoteAddr().String() }

var closeCodes = [...]quic.ApplicationErrorCode{
	sessionactor.CloseShutdown:       transport.CloseShutdown,
	sessionactor.CloseAuthTimeout:    transport.CloseAuthTimeout,
	sessionactor.CloseTooManyStreams: transport.CloseTooManyStreams,
	sessionactor.CloseOverload:       transport.CloseOverload,
	sessionactor.CloseInternal:       transport.CloseInternal,
	// Failing is the broker's fault, whoever brings it about, and that is what the client is told.
	sessionactor.CloseRepeatedFailure: transport.CloseInternal,
}

type stream struct {
	*quic.Stream
	unsent unsent
}

func (s *stream) CancelRead() { s.Stream.CancelRead(0) }

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Stream.Write(p)
	s.unsent.wrote(n, err)
	return n, err
}

func (s *stream) TryWriteAll(p []byte) error {
	if !s.unsent.take(len(p)) {
		return sessionactor.ErrUnsent
	}
	return s.unsent.tried(len(p), s.Stream.TryWriteAll(p))
}

func (s *stream) Close() error {
	err := s.Stream.Close()
	finished(s.Stream.Context(), &s.unsent, s.Stream)
	return err
}

func (s *stream) CancelWrite() {
	s.Stream.CancelWrite(0)
	s.unsent.gone()
}

type receiveStream struct{ *quic.ReceiveStream }

func (s receiveStream) CancelRead() { s.ReceiveStream.CancelRead(0) }

type sendStream struct {
	*quic.SendStream
	unsent unsent
}

func (s *sendStream) Write(p []byte) (int, error) {
	n, err := s.SendStream.Write(p)
	s.unsent.wrote(n, err)
	return n, err
}

func (s *sendStream) TryWriteAll(p []byte) error {
	if !s.unsent.take(len(p)) {
		return sessionactor.ErrUnsent
	}
	return s.unsent.tried(len(p), s.SendStream.TryWriteAll(p))
}

func (s *sendStream) Close() error {
	err := s.SendStream.Close()
	finished(s.SendStream.Context(), &s.unsent, s.SendStream)
	return err
}

func (s *sendStream) CancelWrite() {
	s.SendStream.CancelWrite(0)
	s.unsent.gone()
}
