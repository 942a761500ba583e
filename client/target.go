package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ownersMax bounds how many brokers the client talks to besides its entry. A cluster with more is still served whole: what
// belongs to the others goes through the entry, which forwards.
const ownersMax = 64

// target is one broker, or for the entry whichever of the seeds takes the client: the connections and streams to it.
type target struct {
	client *Client
	addr   string // empty for the entry
	gone   atomic.Bool

	publishLinks, eventLinks, cacheLinks *linkPool
	publishes, caches                    *laneSet
}

func newTarget(c *Client, addr string) *target {
	t := &target{client: c, addr: addr}
	o := &c.opts
	shared := newLinkPool(t, sharedLink, 1)
	t.publishLinks, t.eventLinks, t.cacheLinks = shared, shared, shared
	if o.PublishConns > 0 {
		t.publishLinks = newLinkPool(t, publishLink, o.PublishConns)
	}
	if o.EventConns > 0 {
		t.eventLinks = newLinkPool(t, eventLink, o.EventConns)
	}
	if o.CacheConns > 0 {
		t.cacheLinks = newLinkPool(t, cacheLink, o.CacheConns)
	}
	t.publishes = newLaneSet(c, t.publishLinks, o.PublishStreams, publishLane)
	t.caches = newLaneSet(c, t.cacheLinks, o.CacheStreams, cacheLane)
	return t
}

// addresses are what to dial, and the index to begin with.
func (t *target) addresses() (addrs []string, first int) {
	switch {
	case t.gone.Load():
		return nil, 0
	case t.addr != "":
		return []string{t.addr}, 0
	}
	return t.client.seeds.list()
}

// landed tells that a dial to addr succeeded.
func (t *target) landed(addr string) {
	if t.addr == "" {
		t.client.seeds.prefer(addr)
	}
}

func (t *target) live() bool {
	return t.publishLinks.live() || t.eventLinks.live() || t.cacheLinks.live()
}

// close ends all streams after their last answers.
func (t *target) close(ctx context.Context) error {
	return errors.Join(t.publishes.close(ctx), t.caches.close(ctx))
}

// owners are the brokers that others named as owners of shards, by address.
type owners struct {
	mu     sync.Mutex
	byAddr map[string]*target
}

// at returns the target of an address, nil when there are too many.
func (o *owners) at(c *Client, addr string) *target {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byAddr[addr]; t != nil {
		return t
	}
	if len(o.byAddr) >= ownersMax && !o.dropDead() {
		return nil
	}
	if o.byAddr == nil {
		o.byAddr = make(map[string]*target)
	}
	t := newTarget(c, addr)
	o.byAddr[addr] = t
	return t
}

// dropDead forgets the brokers without a connection, and reports whether there were any. Who still holds one cannot dial
// it any more.
func (o *owners) dropDead() bool {
	before := len(o.byAddr)
	for addr, t := range o.byAddr {
		if !t.live() {
			t.gone.Store(true)
			delete(o.byAddr, addr)
		}
	}
	return len(o.byAddr) < before
}

// all are the targets there are.
func (o *owners) all() []*target {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]*target, 0, len(o.byAddr))
	for _, t := range o.byAddr {
		all = append(all, t)
	}
	return all
}
