package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// Client talks to one broker out of a list, and to owners of shards that it named. It is safe for concurrent use. Close it
// when it is no longer needed.
type Client struct {
	opts   Options
	tenant []byte
	offer  wire.Offer
	tls    *tls.Config
	quic   [linkKinds]*quic.Config

	seeds     seeds
	entry     *target
	owners    owners
	streams   streams
	watched   streams // caches, of which only routes are known
	budget    *byteBudget
	chunks    chunkPool
	turn      atomic.Uint64 // of RoundRobin
	requestID atomic.Uint64 // of one-shot requests
	stats     counters
	batchers  flushers
	producers flushers
	consumers flushers

	life    life
	closing context.Context // done when Close begins: no new work
	close   context.CancelFunc
	once    sync.Once
	done    chan struct{} // closed when the client is
	closed  error         // result of Close; to be read when done is closed
	calls   calls

	now    func() time.Time
	jitter func(ceiling time.Duration) time.Duration        // a random part of a pause
	sleep  func(ctx context.Context, d time.Duration) error // waits
}

// Connect dials the addresses in order until one takes the client, and proves the token there. It returns a
// *ConnectError when none does, an *ArgumentError or *transport.CertError for unusable options, or the error of ctx.
func Connect(ctx context.Context, o Options) (*Client, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	if err := c.greet(ctx); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

func newClient(o Options) (*Client, error) {
	tlsConfig, err := transport.ClientTLS(transport.ClientTLSOptions{
		CAPEM: o.CAPEM, ServerName: o.ServerName, OfferALPN: o.OfferALPN, CertSource: o.Certificate,
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &Client{
		done: make(chan struct{}),
		opts: o, tenant: []byte(o.TenantID), offer: o.offer(), tls: tlsConfig,
		seeds:   seeds{configured: slices.Clone(o.Addrs)},
		streams: streams{seed: maphash.MakeSeed()},
		watched: streams{seed: maphash.MakeSeed()},
		budget:  newByteBudget(o.PublishInflightBytes),
		chunks:  chunkPool{bytes: o.PublishChunkBytes},
		now:     time.Now,
		jitter:  func(ceiling time.Duration) time.Duration { return rand.N(ceiling + 1) },
		sleep:   sleep,
	}
	for kind := range c.quic {
		w, err := o.windows(linkKind(kind))
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		c.quic[kind] = transport.ClientQUIC(transport.ClientOptions{Windows: w, HandshakeTimeout: o.DialTimeout})
	}
	c.opts.Hooks = o.Hooks.noted(&c.calls)
	c.closing, c.close = context.WithCancel(context.Background())
	c.entry = newTarget(c, "")
	return c, nil
}

// greet authenticates one stream, so that a wrong address, certificate or token shows at once. A broker that refuses is
// passed over for the next address.
func (c *Client) greet(ctx context.Context) error {
	var failed ConnectError
	pool := c.entry.publishLinks
	for range c.opts.Addrs {
		l, err := pool.acquire(ctx, "connect")
		var unreachable *ConnectError
		if errors.As(err, &unreachable) { // it went through all addresses already
			failed.Failures = append(failed.Failures, unreachable.Failures...)
			return &failed
		}
		if err != nil {
			return err
		}
		control, err := c.openOn(ctx, pool, l, "connect")
		if err == nil {
			control.finish()
			return nil
		}
		if ctx.Err() != nil {
			return c.ended(ctx, "connect")
		}
		failed.Failures = append(failed.Failures, AddrFailure{Addr: l.addr, Err: err})
		pool.passOver(l)
	}
	return &failed
}

// isClosed reports whether Close has begun.
func (c *Client) isClosed() bool { return c.closing.Err() != nil }

// bound returns a context that also ends when Close begins. Call its cancel function in the end.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.closing, cancel)
	return bounded, func() { stop(); cancel() }
}

// ended is the error of a call whose bound context ended.
func (c *Client) ended(ctx context.Context, op string) error {
	if c.isClosed() {
		return closedError(op)
	}
	return fmt.Errorf("%s: %w", op, ctx.Err())
}

// closedError is what a call gets after Close.
func closedError(op string) error { return fmt.Errorf("%sthe client is %w", prefix(op), ErrClosed) }
