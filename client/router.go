package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

const (
	// helloPatience is how long a new event stream may take to say whose it is.
	helloPatience = 10 * time.Second
	// claimPatience is how long an event stream waits for its subscription: the two messages travel on different streams,
	// so either may be first. One that nobody claims belongs to a subscribe that was given up.
	claimPatience = 10 * time.Second
)

// router gives each event stream of a connection to the subscription its first frame names. The broker may open
// transport.ClientMaxUniStreams of them at once; that bounds the goroutines here, each of which holds one stream until
// it is claimed.
type router struct {
	conn *quic.Conn
	opts *Options

	mu     sync.Mutex
	places map[uint64]*place // by subscription id, until both sides have met
}

// place is where a subscription and its event stream meet. Either side may make it.
type place struct {
	arrived chan *eventStream // holds one
	gone    chan struct{}     // closed when the subscription has its stream or no longer wants it
	claimed bool              // a subscription waits here
}

// eventStream is an event stream after its first frame.
type eventStream struct {
	stream *quic.ReceiveStream
	frames *frameReader
	id     uint64
}

func newRouter(conn *quic.Conn, o *Options) *router {
	return &router{conn: conn, opts: o, places: make(map[uint64]*place)}
}

// run takes event streams until the connection ends, and returns when nothing of it is left.
func (r *router) run() {
	var handlers sync.WaitGroup
	defer handlers.Wait()
	for {
		stream, err := r.conn.AcceptUniStream(context.Background())
		if err != nil {
			return // the connection ended, which its other users see by themselves
		}
		handlers.Go(func() { r.welcome(stream) })
	}
}

// welcome reads the first frame of a stream and holds the stream until it is claimed. What is no event stream, or is not
// wanted, is stopped; the connection does not suffer from it.
func (r *router) welcome(stream *quic.ReceiveStream) {
	e, err := hello(stream, r.opts.MaxFrameBytes)
	if err != nil {
		stream.CancelRead(transport.StreamFinished)
		return
	}
	p := r.meet(e.id)
	if p == nil {
		stream.CancelRead(transport.StreamFinished)
		return
	}
	select {
	case p.arrived <- e:
	default: // a second stream under one id
		stream.CancelRead(transport.StreamFinished)
		return
	}
	patience := time.NewTimer(claimPatience)
	defer patience.Stop()
	select {
	case <-p.gone:
	case <-patience.C:
	case <-r.conn.Context().Done():
	}
	r.forget(e.id, p)
	select {
	case <-p.arrived: // never claimed
		stream.CancelRead(transport.StreamFinished)
	default:
	}
}

// read takes the next frame. When ctx ends it stops with os.ErrDeadlineExceeded and keeps what has arrived.
func (e *eventStream) read(ctx context.Context) (wire.Header, []byte, error) {
	if ctx.Done() == nil {
		return e.frames.next()
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- e.stream.SetReadDeadline(time.Unix(1, 0)) })
	header, payload, err := e.frames.next()
	if !stop() { // the deadline must not hit the next call
		if failed := errors.Join(<-stopped, e.stream.SetReadDeadline(time.Time{})); err == nil {
			err = failed
		}
	}
	return header, payload, err
}

func hello(stream *quic.ReceiveStream, most int) (*eventStream, error) {
	if err := stream.SetReadDeadline(time.Now().Add(helloPatience)); err != nil {
		return nil, err
	}
	e := &eventStream{stream: stream, frames: newEventReader(stream, most)}
	header, payload, err := e.frames.next()
	if err != nil {
		return nil, err
	}
	if header.Flags != 0 {
		return nil, fmt.Errorf("an event stream began with flags 0x%04x", uint16(header.Flags))
	}
	m, err := wire.DecodeJSON(payload)
	if err != nil {
		return nil, err
	}
	first, ok := m.(*wire.EventStreamHello)
	if !ok {
		return nil, fmt.Errorf("an event stream began with %q", m.MessageType())
	}
	e.id = first.SubscriptionID
	return e, stream.SetReadDeadline(time.Time{})
}

// claim waits for the event stream of a subscription.
func (r *router) claim(ctx context.Context, op string, id uint64) (*eventStream, error) {
	p := r.meet(id)
	if p == nil {
		return nil, &LimitError{Op: op, Limit: "event streams and subscriptions that wait for each other", Most: r.opts.EventRouterMaxPending}
	}
	if !r.take(p) {
		return nil, &ProtocolError{Op: op, What: fmt.Sprintf("two subscriptions got the id %d", id)}
	}
	defer close(p.gone) // a place given up stays, so that its stream is stopped when it arrives
	select {
	case e := <-p.arrived:
		r.forget(id, p)
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.conn.Context().Done():
		return nil, context.Cause(r.conn.Context())
	}
}

// meet returns the place of an id, nil when there are too many.
func (r *router) meet(id uint64) *place {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.places[id]
	if p == nil && len(r.places) >= r.opts.EventRouterMaxPending {
		return nil
	}
	if p == nil {
		p = &place{arrived: make(chan *eventStream, 1), gone: make(chan struct{})}
		r.places[id] = p
	}
	return p
}

// take makes a place the caller's own; false when it has an owner.
func (r *router) take(p *place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.claimed {
		return false
	}
	p.claimed = true
	return true
}

func (r *router) forget(id uint64, p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.places[id] == p {
		delete(r.places, id)
	}
}
