package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/gather"
	"github.com/felixd/felixd/transport"
)

// linkKind is what a connection carries.
type linkKind uint8

const (
	sharedLink linkKind = iota // all kinds of traffic that have no connections of their own
	publishLink
	eventLink
	cacheLink
	linkKinds = iota
)

// String is the name of the kind in ConnectionInfo.
func (k linkKind) String() string {
	return [linkKinds]string{"shared", "publish", "event", "cache"}[k]
}

// link is one connection to a broker, with what the client keeps for it.
type link struct {
	conn      *quic.Conn
	kind      linkKind
	addr      string
	since     time.Time
	events    *router
	busy      atomic.Int64     // lanes with requests under way and open subscriptions: closing it now would cost them
	asked     atomic.Bool      // the broker was asked about other brokers
	ended     atomic.Bool      // no more streams are opened on it: its broker goes away, or it is about to end
	gathering gather.Of[*lane] // requests of several callers leave together
	pulse     pulse            // notices that the broker is not there any more, while requests wait
}

// owed says that a lane has requests under way, settled that it has none any more.
func (l *link) owed() {
	l.busy.Add(1)
	l.pulse.begin()
}

func (l *link) settled() {
	l.pulse.end()
	l.busy.Add(-1)
}

func (l *link) alive() bool { return !l.ended.Load() && l.conn.Context().Err() == nil }

// linkPool hands out connections to one target in turn. One QUIC connection is served by one loop, so several give
// parallelism. Each is dialed when its turn comes first, and again when its turn comes and it is dead.
type linkPool struct {
	target *target
	kind   linkKind
	slots  []cell[*link]
	turn   atomic.Uint64
	// sending bounds the bytes of unanswered requests on these connections, other than publishes: the mission's send
	// window. QUIC itself copies no more than a packet's worth ahead of what it may send.
	sending *byteBudget
}

func newLinkPool(t *target, kind linkKind, size int) *linkPool {
	c := t.client
	p := &linkPool{target: t, kind: kind, slots: make([]cell[*link], size)}
	p.sending = newByteBudget(c.opts.sendWindow(kind) * int64(size))
	for i := range p.slots {
		s := &p.slots[i]
		s.life, s.ctx, s.build, s.alive = &c.life, c.closing, p.dial, (*link).alive
	}
	return p
}

// acquire returns a live connection. The error is a *ConnectError, ErrClosed, or that of ctx.
func (p *linkPool) acquire(ctx context.Context, op string) (*link, error) {
	return p.acquireAt(ctx, op, p.turn.Add(1)-1)
}

// acquireAt is acquire of the same connection for the same seat, as long as it lives.
func (p *linkPool) acquireAt(ctx context.Context, op string, seat uint64) (*link, error) {
	slot := &p.slots[seat%uint64(len(p.slots))]
	l, err := slot.get(ctx)
	switch {
	case err == nil:
		return l, nil
	case p.target.client.isClosed():
		return nil, closedError(op)
	case ctx.Err() != nil:
		return nil, opError(op, ctx.Err())
	}
	return nil, err
}

// dial tries the addresses once around, beginning with the one that worked last.
func (p *linkPool) dial(ctx context.Context) (*link, error) {
	c := p.target.client
	var failed ConnectError
	addrs, first := p.target.addresses()
	for i := range addrs {
		addr := addrs[(first+i)%len(addrs)]
		conn, err := c.dial(ctx, p.kind, addr)
		if err == nil {
			p.target.landed(addr)
			return p.adopt(conn, addr)
		}
		failed.Failures = append(failed.Failures, AddrFailure{Addr: addr, Err: err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, &failed
}

// dial is one dial, bounded by Options.DialTimeout from the look-up of the name to the end of the handshake.
func (c *Client) dial(ctx context.Context, kind linkKind, addr string) (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.DialTimeout)
	defer cancel()
	return transport.DialConn(ctx, transport.DialOptions{Addr: addr, TLS: c.tls, QUIC: c.quic[kind]})
}

// adopt makes the link of a new connection and takes its event streams until it ends.
func (p *linkPool) adopt(conn *quic.Conn, addr string) (*link, error) {
	c := p.target.client
	l := &link{conn: conn, kind: p.kind, addr: addr, since: c.now(), events: newRouter(conn, &c.opts)}
	l.pulse.link, l.pulse.pool = l, p
	c.stats.connects.Add(1)
	c.opts.Hooks.connected(l.info())
	over := func() {
		<-conn.Context().Done() // it has the cause
		c.stats.disconnects.Add(1)
		c.opts.Hooks.disconnected(l.info(), context.Cause(conn.Context()))
	}
	if !c.life.adopt(l, func() { l.events.run(); over() }) {
		transport.Close(conn, transport.CloseShutdown)
		over()
		return nil, ErrClosed
	}
	return l, nil
}

// passOver opens no further streams on a connection whose broker goes away or takes nobody, and makes the next dial of the
// entry begin at the next address. What is under way on it may still end well.
func (p *linkPool) passOver(l *link) {
	l.ended.Store(true)
	if p.target.addr == "" {
		p.target.client.seeds.passOver(l.addr)
	}
	if l.busy.Load() == 0 {
		transport.Close(l.conn, transport.CloseShutdown)
	}
}

// live reports whether the pool has a connection.
func (p *linkPool) live() bool {
	for i := range p.slots {
		if l, ok := p.slots[i].current(); ok && l.alive() {
			return true
		}
	}
	return false
}

// isConnectFailure reports whether err says that nothing was sent because there was nobody to send it to.
func isConnectFailure(err error) bool {
	var failed *ConnectError
	return errors.As(err, &failed)
}
