package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Subscription delivers the events of one shard, in order. It has no queue and no goroutine of its own: Next takes frames
// off the stream as they are needed, and what is not read waits in the receive window of the stream (Options.Windows),
// which bounds it in bytes; past that the broker has to wait. Its methods may be called from several goroutines.
type Subscription struct {
	client   *Client
	link     *link
	op       string
	shard    uint32
	accepted wire.Subscribed
	events   *eventStream
	closed   atomic.Bool
	released atomic.Bool

	turn  chan struct{} // the right to read; the fields below belong to its holder
	batch batch
	end   error // why there are no more events
}

func newSubscription(c *Client, l *link, op string, shard uint32, accepted *wire.Subscribed, events *eventStream) *Subscription {
	l.busy.Add(1)
	s := &Subscription{client: c, link: l, op: op, shard: shard, accepted: *accepted, events: events, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// Shard is the shard this subscription reads.
func (s *Subscription) Shard() uint32 { return s.shard }

// StartOffset is the offset of the first event that will be delivered; ok is false on in-memory streams.
func (s *Subscription) StartOffset() (offset id.Offset, ok bool) {
	return s.accepted.StartOffset.V, s.accepted.StartOffset.Set
}

// LiveOffset parts history from what was published after the subscription began; ok is false on in-memory streams.
func (s *Subscription) LiveOffset() (offset id.Offset, ok bool) {
	return s.accepted.LiveOffset.V, s.accepted.LiveOffset.Set
}

// Next waits for the next event. Its error is that of ctx, after which Next may be called again and no event is lost; or
// the end of the subscription, which it then returns for ever: io.EOF when the broker ended it, *SubscriptionLostError,
// *SubscriptionLaggedError, *ShardMovedError, *BrokerError, *ProtocolError, or ErrClosed.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return Event{}, s.interrupted(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	for ctx.Err() == nil {
		if s.closed.Load() {
			s.finish(fmt.Errorf("%s: the subscription is %w", s.op, ErrClosed))
		}
		if s.end != nil {
			return Event{}, s.end
		}
		if e, ok := s.pop(); ok {
			return e, nil
		}
		header, payload, err := s.read(ctx)
		switch {
		case err == nil:
			err = s.take(header, payload)
		case errors.Is(err, os.ErrDeadlineExceeded): // an idle connection that timed out is another error
			continue // ctx ended: what has arrived of the frame stays
		default:
			err = s.lost(err)
		}
		if err != nil {
			s.finish(err)
		}
	}
	return Event{}, s.interrupted(ctx)
}

// Events iterates over the events until the subscription or ctx ends. The last pair carries the error; the end the broker
// chose has none. Breaking out loses nothing; another iteration goes on after it.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := s.Next(ctx)
			if err == io.EOF {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the subscription; Next returns ErrClosed, also one that waits. Closing again does nothing.
func (s *Subscription) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.events.stream.CancelRead(transport.StreamFinished)
	s.release()
}

func (s *Subscription) interrupted(ctx context.Context) error {
	return fmt.Errorf("%s: wait for an event: %w", s.op, ctx.Err())
}

// finish keeps the first end and stops the stream.
func (s *Subscription) finish(err error) {
	if s.end == nil {
		s.end = err
		s.events.stream.CancelRead(transport.StreamFinished)
		s.release()
	}
}

func (s *Subscription) release() {
	if !s.released.Swap(true) {
		s.link.busy.Add(-1)
	}
}

// read takes the next frame off the stream. When ctx ends it stops with a timeout and keeps what has arrived.
func (s *Subscription) read(ctx context.Context) (wire.Header, []byte, error) {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- s.events.stream.SetReadDeadline(time.Unix(1, 0)) })
	header, payload, err := s.events.frames.next()
	if !stop() { // the deadline must not hit the next call
		if failed := errors.Join(<-stopped, s.events.stream.SetReadDeadline(time.Time{})); err == nil {
			err = failed
		}
	}
	return header, payload, err
}

// lost says how the stream ended.
func (s *Subscription) lost(err error) error {
	var frame *wire.FrameError
	switch {
	case s.closed.Load():
		return fmt.Errorf("%s: the subscription is %w", s.op, ErrClosed)
	case s.client.isClosed():
		return closedError(s.op)
	case err == io.EOF:
		return io.EOF
	case errors.As(err, &frame):
		return &ProtocolError{Op: s.op, What: "bytes that are no frame", Err: err}
	}
	return &SubscriptionLostError{Op: s.op, Err: err}
}
