package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// closePatience is how long Close waits for answers when its context has no deadline of its own.
const closePatience = 5 * time.Second

// Client talks to one broker out of a list. It is safe for concurrent use. Close it when it is no longer needed.
type Client struct {
	opts  Options
	offer wire.Offer
	tls   *tls.Config
	quic  *quic.Config

	publishLinks, eventLinks, cacheLinks *linkPool
	publishes, caches                    *laneSet
	budget                               *byteBudget
	widths                               widthCache
	seed                                 atomic.Uint32 // index of the address to try first
	requestID                            atomic.Uint64 // of one-shot requests
	hashSeed                             maphash.Seed

	closing context.Context // done when Close begins: no new work
	close   context.CancelFunc
	once    sync.Once
	closed  error // result of Close, for later calls
	readers sync.WaitGroup

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
		CAPEM: o.CAPEM, ServerName: o.ServerName, OfferALPN: o.OfferALPN,
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &Client{
		opts: o, offer: o.offer(), tls: tlsConfig,
		quic:     transport.ClientQUIC(transport.ClientOptions{Windows: o.Windows, HandshakeTimeout: o.HandshakeTimeout}),
		budget:   newByteBudget(o.PublishInflightBytes),
		hashSeed: maphash.MakeSeed(),
		jitter:   func(ceiling time.Duration) time.Duration { return rand.N(ceiling + 1) },
		sleep:    sleep,
	}
	c.closing, c.close = context.WithCancel(context.Background())
	shared := newLinkPool(c, 1)
	c.publishLinks, c.eventLinks, c.cacheLinks = shared, shared, shared
	if o.PublishConns > 0 {
		c.publishLinks = newLinkPool(c, o.PublishConns)
	}
	if o.EventConns > 0 {
		c.eventLinks = newLinkPool(c, o.EventConns)
	}
	if o.CacheConns > 0 {
		c.cacheLinks = newLinkPool(c, o.CacheConns)
	}
	c.publishes = newLaneSet(c, c.publishLinks, o.PublishStreams, publishLane)
	c.caches = newLaneSet(c, c.cacheLinks, o.CacheStreams, cacheLane)
	return c, nil
}

// greet authenticates one stream, so that a wrong address, certificate or token shows at once. A broker that refuses is
// passed over for the next address.
func (c *Client) greet(ctx context.Context) error {
	var failed ConnectError
	for range c.opts.Addrs {
		control, err := c.open(ctx, c.publishLinks, "connect")
		if err == nil {
			control.finish()
			return nil
		}
		var unreachable *ConnectError
		switch {
		case ctx.Err() != nil:
			return c.ended(ctx, "connect")
		case errors.As(err, &unreachable): // it went through all addresses already
			failed.Failures = append(failed.Failures, unreachable.Failures...)
			return &failed
		}
		failed.Failures = append(failed.Failures, AddrFailure{Addr: c.addr(0), Err: err})
		c.passOver(c.publishLinks)
	}
	return &failed
}

// passOver makes the next dial begin at the next address, and the next request dial if that costs nobody anything.
func (c *Client) passOver(pool *linkPool) {
	c.seed.Add(1)
	pool.drop()
}

// addr is the address that is tried after so many others.
func (c *Client) addr(after int) string {
	n := uint32(len(c.opts.Addrs))
	return c.opts.Addrs[(c.seed.Load()+uint32(after))%n]
}

// Close refuses new work, waits until publishes and cache requests under way are answered and unacknowledged publishes
// were taken by the broker, and closes the connections. Subscriptions end with ErrClosed. It waits as long as ctx allows, at
// most five seconds when ctx has no deadline; the error says what was given up. Further calls return the same.
func (c *Client) Close(ctx context.Context) error {
	c.once.Do(func() {
		c.close()
		if _, bounded := ctx.Deadline(); !bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, closePatience)
			defer cancel()
		}
		c.closed = errors.Join(c.publishes.close(ctx), c.caches.close(ctx))
		for _, p := range []*linkPool{c.publishLinks, c.eventLinks, c.cacheLinks} {
			p.close()
		}
		c.readers.Wait()
	})
	return c.closed
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
