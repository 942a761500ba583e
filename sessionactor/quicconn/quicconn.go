// Package quicconn shows QUIC connections to the session actors as they want to see them. It is the only place where
// sessions and quic-go meet, so that a node without listeners needs no QUIC.
package quicconn

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/transport"
)

// Acceptor accepts from a listener.
type Acceptor struct{ Listener *transport.Listener }

var _ sessionactor.Acceptor = Acceptor{}

// Accept implements sessionactor.Acceptor.
func (a Acceptor) Accept(ctx context.Context) (sessionactor.Conn, error) {
	c, err := a.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return conn{c}, nil
}

// StopAccepting implements sessionactor.Acceptor.
func (a Acceptor) StopAccepting() error { return a.Listener.StopAccepting() }

type conn struct{ c *quic.Conn }

func (c conn) AcceptStream(ctx context.Context) (sessionactor.Stream, error) {
	s, err := c.c.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	return stream{s}, nil
}

func (c conn) AcceptReceiveStream(ctx context.Context) (sessionactor.ReceiveStream, error) {
	s, err := c.c.AcceptUniStream(ctx)
	if err != nil {
		return nil, err
	}
	return receiveStream{s}, nil
}

func (c conn) OpenSendStream(ctx context.Context) (sessionactor.SendStream, error) {
	s, err := c.c.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	return sendStream{s}, nil
}

func (c conn) Close(code sessionactor.CloseCode) { transport.Close(c.c, closeCodes[code]) }

func (c conn) Context() context.Context { return c.c.Context() }

func (c conn) RemoteAddr() string { return c.c.RemoteAddr().String() }

var closeCodes = [...]quic.ApplicationErrorCode{
	sessionactor.CloseShutdown:       transport.CloseShutdown,
	sessionactor.CloseAuthTimeout:    transport.CloseAuthTimeout,
	sessionactor.CloseTooManyStreams: transport.CloseTooManyStreams,
	sessionactor.CloseOverload:       transport.CloseOverload,
	sessionactor.CloseInternal:       transport.CloseInternal,
	// Failing is the broker's fault, whoever brings it about, and that is what the client is told.
	sessionactor.CloseRepeatedFailure: transport.CloseInternal,
}

type stream struct{ *quic.Stream }

func (s stream) CancelRead()                { s.Stream.CancelRead(0) }
func (s stream) CancelWrite()               { s.Stream.CancelWrite(0) }
func (s stream) TryWriteAll(p []byte) error { return blocked(s.Stream.TryWriteAll(p)) }

type receiveStream struct{ *quic.ReceiveStream }

func (s receiveStream) CancelRead() { s.ReceiveStream.CancelRead(0) }

type sendStream struct{ *quic.SendStream }

func (s sendStream) CancelWrite()               { s.SendStream.CancelWrite(0) }
func (s sendStream) TryWriteAll(p []byte) error { return blocked(s.SendStream.TryWriteAll(p)) }

func blocked(err error) error {
	if errors.Is(err, quic.ErrWouldBlock) {
		return sessionactor.ErrWouldBlock
	}
	return err
}
