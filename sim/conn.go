package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/sessionactor"
)

// brokerConn is the broker's side as a session sees it.
type brokerConn struct{ *side }

var _ sessionactor.Conn = brokerConn{}

func (c brokerConn) AcceptStream(ctx context.Context) (sessionactor.Stream, error) {
	c.link.session, _, _ = strings.Cut(c.link.net.world.Running(), "#")
	s, ok := c.streams.pop(ctx, c.ctx)
	if !ok {
		return nil, fmt.Errorf("accept stream: %w", errLost)
	}
	c.link.net.world.Note("takes the stream %s", s.in.name)
	return s, nil
}

func (c brokerConn) AcceptReceiveStream(ctx context.Context) (sessionactor.ReceiveStream, error) {
	p, ok := c.oneWay.pop(ctx, c.ctx)
	if !ok {
		return nil, fmt.Errorf("accept stream: %w", errLost)
	}
	c.link.net.world.Note("takes the stream %s", p.name)
	return p, nil
}

// OpenSendStream waits until the client allows one more.
func (c brokerConn) OpenSendStream(ctx context.Context) (sessionactor.SendStream, error) {
	l := c.link
	for l.places <= 0 && c.ctx.Err() == nil {
		gate := l.net.world.NewGate()
		l.wanted = append(l.wanted, gate)
		l.net.wanted++
		ok := gate.Wait(ctx, c.ctx)
		l.net.wanted--
		l.wanted = slices.DeleteFunc(l.wanted, func(g *simrt.Gate) bool { return g == gate })
		if !ok {
			l.net.marks.hit(markNoPlace)
			return nil, fmt.Errorf("open stream: %w", errLost)
		}
	}
	if c.ctx.Err() != nil {
		return nil, fmt.Errorf("open stream: %w", errLost)
	}
	l.places--
	p := c.openOneWay(l.name + " events")
	p.done = func() {
		l.places++
		if len(l.wanted) > 0 {
			l.wanted[0].Ring()
		}
	}
	return p, nil
}

// Close implements sessionactor.Conn.
func (c brokerConn) Close(code sessionactor.CloseCode) {
	if c.ctx.Err() != nil {
		return
	}
	c.link.closed, c.link.code = true, code
	c.link.net.world.Note("the broker closes the connection (%d)", code)
	c.lose("closed by the broker")
}

func (c brokerConn) Context() context.Context { return c.ctx }
func (c brokerConn) RemoteAddr() string       { return c.link.name }

// The rest of sessionactor.Stream.

func (s stream) Read(b []byte) (int, error) { return s.in.Read(b) }

func (s stream) Write(b []byte) (int, error) { return s.out.Write(b) }

func (s stream) TryWriteAll(b []byte) error { return s.out.TryWriteAll(b) }

func (s stream) Close() error { return s.out.Close() }

func (s stream) CancelRead() { s.in.CancelRead() }

func (s stream) CancelWrite() { s.out.CancelWrite() }

func (s stream) Context() context.Context { return s.out.Context() }

// SetReadDeadline implements sessionactor.ReceiveStream.
func (s stream) SetReadDeadline(t time.Time) error { return s.in.SetReadDeadline(t) }

// acceptor hands the connections that reached a node to its listener.
type acceptor struct {
	world   *simrt.World
	waiting queue[*link]
	closed  bool
}

var _ sessionactor.Acceptor = (*acceptor)(nil)

func newAcceptor(w *simrt.World) *acceptor {
	return &acceptor{world: w, waiting: queue[*link]{gate: w.NewGate()}}
}

// arrived takes a connection, or refuses it when the node takes none any more.
func (a *acceptor) arrived(l *link) {
	if a.closed {
		brokerConn{l.broker}.Close(sessionactor.CloseShutdown)
		return
	}
	a.waiting.push(l)
}

// Accept implements sessionactor.Acceptor.
func (a *acceptor) Accept(ctx context.Context) (sessionactor.Conn, error) {
	l, ok := a.waiting.pop(ctx)
	if !ok {
		return nil, fmt.Errorf("accept: %w", context.Canceled)
	}
	return brokerConn{l.broker}, nil
}

// StopAccepting implements sessionactor.Acceptor.
func (a *acceptor) StopAccepting() error {
	a.closed = true
	for _, l := range a.waiting.list {
		brokerConn{l.broker}.Close(sessionactor.CloseShutdown)
	}
	a.waiting.list = nil
	return nil
}
