package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
)

// link is one connection to a broker, with what the client keeps for it.
type link struct {
	conn   *quic.Conn
	addr   string
	events *router
	busy   atomic.Int64 // lanes with requests under way and open subscriptions: closing it now would cost them
}

// linkPool hands out connections in turn and dials them when needed; transport.Pool decides when. A connection is looked up
// here after it was acquired there.
type linkPool struct {
	client *Client
	pool   *transport.Pool

	mu    sync.Mutex
	links []*link // of live connections: as many as the pool has, and for a moment those that just ended
}

func newLinkPool(c *Client, size int) *linkPool {
	p := &linkPool{client: c}
	p.pool = transport.NewPool(size, p.dial)
	return p
}

// acquire returns a live connection. The error is a *ConnectError, ErrClosed, or that of ctx.
func (p *linkPool) acquire(ctx context.Context, op string) (*link, error) {
	conn, err := p.pool.Acquire(ctx)
	switch {
	case err == nil:
	case errors.Is(err, transport.ErrPoolClosed), p.client.isClosed():
		return nil, closedError(op)
	default:
		var failed *ConnectError
		if errors.As(err, &failed) && ctx.Err() == nil {
			return nil, failed
		}
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		if l.conn == conn {
			return l, nil
		}
	}
	// It died between the two looks.
	return nil, &ConnectionLostError{Op: op, Addr: conn.RemoteAddr().String(), Err: context.Cause(conn.Context())}
}

// dial tries the addresses once around, beginning with the one that worked last.
func (p *linkPool) dial(ctx context.Context) (*quic.Conn, error) {
	c := p.client
	var failed ConnectError
	for i := range c.opts.Addrs {
		addr := c.addr(i)
		conn, err := transport.DialConn(ctx, transport.DialOptions{Addr: addr, TLS: c.tls, QUIC: c.quic})
		if err == nil {
			c.seed.Add(uint32(i))
			p.adopt(conn, addr)
			return conn, nil
		}
		failed.Failures = append(failed.Failures, AddrFailure{Addr: addr, Err: err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, &failed
}

// adopt makes the link of a new connection and takes its event streams until it ends.
func (p *linkPool) adopt(conn *quic.Conn, addr string) {
	l := &link{conn: conn, addr: addr, events: newRouter(conn)}
	p.mu.Lock()
	p.links = append(p.links, l)
	p.mu.Unlock()
	p.client.readers.Go(func() {
		l.events.run()
		p.mu.Lock()
		p.links = slices.DeleteFunc(p.links, func(other *link) bool { return other == l })
		p.mu.Unlock()
	})
}

// drop closes the idle connections, so that the next request dials another address. A busy one stays until its work is
// done.
func (p *linkPool) drop() {
	p.mu.Lock()
	var idle []*quic.Conn
	for _, l := range p.links {
		if l.busy.Load() == 0 {
			idle = append(idle, l.conn)
		}
	}
	p.mu.Unlock()
	for _, conn := range idle {
		transport.Close(conn, transport.CloseShutdown)
	}
}

// close ends all connections. It may be called twice.
func (p *linkPool) close() { p.pool.Close() }
