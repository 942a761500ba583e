package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// control is an authenticated bidirectional stream.
type control struct {
	stream *quic.Stream
	frames *frameReader
	decode wire.Decoder // of what frames brings; whoever reads them has it
	link   *link
	pool   *linkPool
	grant  wire.Grant // what this stream may use
	window uint32     // unanswered publishes granted; 0: no order of answers is promised
	held   int64      // of the pool's send window
}

// finish ends both halves; what was written is still delivered. It is called once.
func (s *control) finish() {
	transport.FinishStream(s.stream)
	s.pool.sending.give(s.pool.sending.share(), s.held)
}

// send writes one message.
func (s *control) send(m wire.Message) error {
	_, err := s.stream.Write(wire.AppendJSONFrame(nil, m))
	return err
}

// receive reads one message. Errors are those of the stream, or a *ProtocolError.
func (s *control) receive(op string) (wire.Message, error) {
	header, payload, err := s.frames.next()
	if err != nil {
		return nil, err
	}
	if header.Flags != 0 {
		return nil, &ProtocolError{Op: op, What: fmt.Sprintf("a frame with flags 0x%04x where a message was due", uint16(header.Flags))}
	}
	m, err := s.decode.DecodeJSON(payload)
	if err != nil {
		return nil, &ProtocolError{Op: op, What: "a message that does not decode", Err: err}
	}
	return m, nil
}

// openControl opens a stream for requests of so many bytes and authenticates it, and makes the next try meet another
// broker when this one is going away. The error is that of acquire, the *BrokerError of the refusal, a
// *ConnectionLostError, a *ProtocolError, or that of ctx.
func (c *Client) openControl(ctx context.Context, pool *linkPool, op string, bytes int) (*control, error) {
	return c.openControlAt(ctx, pool, op, bytes, pool.turn.Add(1)-1)
}

// openControlAt is openControl on the connection of a seat.
func (c *Client) openControlAt(ctx context.Context, pool *linkPool, op string, bytes int, seat uint64) (*control, error) {
	var held int64
	if bytes > 0 { // who opens a lane must not stand in line behind those who wait for it
		var err error
		if held, err = pool.sending.take(ctx, pool.sending.share(), int64(bytes)); err != nil {
			return nil, c.ended(ctx, op)
		}
	}
	l, err := pool.acquireAt(ctx, op, seat)
	if err == nil {
		var s *control
		if s, err = c.openOn(ctx, pool, l, op); err == nil {
			s.held = held
			return s, nil
		}
	}
	pool.sending.give(pool.sending.share(), held)
	return nil, err
}

// openOn is openControl on a connection; twice when the token was refused and there is another by now.
func (c *Client) openOn(ctx context.Context, pool *linkPool, l *link, op string) (*control, error) {
	token, err := c.token(ctx, op)
	if err != nil {
		return nil, err
	}
	s, err := c.openWith(ctx, pool, l, op, token)
	if err == nil || !errors.Is(err, ErrUnauthenticated) || c.opts.TokenProvider == nil {
		return s, err
	}
	if c.opts.TokenSource != nil {
		c.opts.TokenSource.Refused(token)
	}
	again, tokenErr := c.token(ctx, op)
	if tokenErr != nil || again == token {
		return nil, err
	}
	return c.openWith(ctx, pool, l, op, again)
}

// token asks for a token, for as long as an answer may take.
func (c *Client) token(ctx context.Context, op string) (string, error) {
	token := c.opts.Token
	if c.opts.TokenProvider != nil {
		patient, cancel := context.WithTimeout(ctx, c.opts.AckTimeout)
		defer cancel()
		var err error
		if token, err = c.provide(patient); err != nil {
			return "", fmt.Errorf("%s: get token: %w", op, err)
		}
	}
	if len(token) > wire.MaxTokenBytes {
		return "", &ArgumentError{Op: op, Argument: "token",
			Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(token), wire.MaxTokenBytes)}
	}
	return token, nil
}

func (c *Client) openWith(ctx context.Context, pool *linkPool, l *link, op, token string) (*control, error) {
	patient, cancel := context.WithTimeout(ctx, c.opts.AckTimeout)
	defer cancel()
	stream, err := l.conn.OpenStreamSync(patient) // waits for credit
	if err != nil {
		l.ended.Store(patient.Err() == nil)
		return nil, c.broken(ctx, op, l, err)
	}
	s := &control{stream: stream, frames: newFrameReader(stream, c.opts.MaxFrameBytes), link: l, pool: pool}
	err = c.exchange(ctx, s, op, func() error { return c.authenticate(s, op, token) })
	if err == nil {
		c.discover(s)
		return s, nil
	}
	transport.AbortStream(stream, transport.StreamFinished)
	if errors.Is(err, ErrDraining) {
		pool.passOver(l)
	}
	return nil, err
}

// authenticate sends auth and reads what the broker offers.
func (c *Client) authenticate(s *control, op, token string) error {
	auth := &wire.Auth{
		TenantID: c.opts.TenantID, Token: token,
		ClientFlags: wire.Some(c.offer.Flags), ClientFeatures: wire.Some(c.offer.Features),
	}
	if err := s.send(auth); err != nil {
		return err
	}
	answer, err := s.receive(op)
	if err != nil {
		return err
	}
	switch m := answer.(type) {
	case *wire.AuthOK:
		s.grant = wire.Negotiate(c.offer, m.Offer())
		if s.grant.Features.Has(wire.FeaturePublishPipeline) {
			s.window = m.PublishWindow.V
		}
	case *wire.OK: // a broker without negotiation: it offered nothing
		s.grant = wire.Negotiate(c.offer, wire.Offer{})
	default:
		return refusalOf(op, answer)
	}
	return nil
}

// exchange runs steps that block on the stream, and ends the stream when ctx ends first. It turns failures of the stream
// into errors of this package and leaves others as they are. A broker that does not answer fails it after AckTimeout.
func (c *Client) exchange(ctx context.Context, s *control, op string, steps func() error) error {
	return c.exchangeWithin(ctx, s, op, 0, steps)
}

// exchangeWithin is exchange with a broker that may take so much longer on purpose, and is silent meanwhile as one is whose
// subscriptions bring nothing.
func (c *Client) exchangeWithin(ctx context.Context, s *control, op string, wait time.Duration, steps func() error) error {
	if wait > 0 {
		s.link.pulse.listen()
		defer s.link.pulse.unlisten()
	} else {
		s.link.pulse.begin()
		defer s.link.pulse.end()
	}
	patient, cancel := context.WithTimeout(ctx, c.opts.AckTimeout+wait)
	defer cancel()
	stop := context.AfterFunc(patient, func() { transport.AbortStream(s.stream, transport.StreamFinished) })
	err := steps()
	aborted := !stop()
	switch {
	case aborted && ctx.Err() == nil:
		err = fmt.Errorf("%w (%v)", errAckOverdue, c.opts.AckTimeout)
	case aborted && err == nil:
		err = ctx.Err() // the stream is gone, whatever was read from it
	}
	if err == nil {
		return nil
	}
	return c.broken(ctx, op, s.link, err)
}

// broken turns a failure of a stream or connection into an error of this package. Errors that the broker sent, and those
// of the protocol, pass as they are.
func (c *Client) broken(ctx context.Context, op string, l *link, err error) error {
	var refused *BrokerError
	var protocol *ProtocolError
	var frame *wire.FrameError
	switch {
	case ctx.Err() != nil:
		return c.ended(ctx, op)
	case isAnswer(err), errors.As(err, &refused), errors.As(err, &protocol):
		return err
	case errors.As(err, &frame):
		return &ProtocolError{Op: op, What: "bytes that are no frame", Err: err}
	case c.isClosed():
		return closedError(op)
	}
	return &ConnectionLostError{Op: op, Addr: l.addr, Err: err}
}

// isAnswer reports whether err is a well-formed answer of the broker other than a coded refusal.
func isAnswer(err error) bool {
	var leader *NotLeaderError
	var cursor *CursorError
	var unsupported *UnsupportedError
	return errors.As(err, &leader) || errors.As(err, &cursor) || errors.As(err, &unsupported)
}
