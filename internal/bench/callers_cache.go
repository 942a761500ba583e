package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/felixd/felixd/client"
)

// CacheOp is what a caller asks of a cache.
type CacheOp string

// Operations: Hit reads what is there, Miss what is not.
const (
	Put  CacheOp = "put"
	Hit  CacheOp = "hit"
	Miss CacheOp = "miss"
)

// CachePlan is a set of callers towards a cache, all in one client.
type CachePlan struct {
	Options          client.Options // connections and streams are set from below
	Namespace, Cache string
	Op               CacheOp
	Payload          int // bytes of a value
	Keys             int // that are used in turn
	Callers          int // and streams: a caller has one to itself as long as others are busy
	Conns            int
}

// OpenCache connects, and for Hit and Put writes all keys once.
func OpenCache(ctx context.Context, p CachePlan) (*Callers, error) {
	o := p.Options
	o.CacheConns, o.CacheStreams = p.Conns, p.Callers
	c, err := client.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	names, value := cacheKeys(p.Op, p.Keys), newRecords(Shape{Payload: p.Payload, Batch: 1}).payloads[0]
	if p.Op != Miss {
		err := fill(ctx, p.Callers, p.Keys, func(ctx context.Context, _, key int) error {
			return c.CachePut(ctx, p.Namespace, p.Cache, names[key], value, 0)
		})
		if err != nil {
			return nil, errors.Join(err, c.Close(ctx))
		}
	}
	callers := &Callers{Close: c.Close}
	for i := range p.Callers {
		callers.All = append(callers.All, &cacheCaller{client: c, plan: &p, keys: names, value: value, at: i * p.Keys / p.Callers})
	}
	return callers, nil
}

// cacheKeys are the keys that callers use.
func cacheKeys(op CacheOp, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%s-%d", op, i)
	}
	return names
}

// fill has callers write all keys together and returns the first error.
func fill(ctx context.Context, callers, keys int, put func(ctx context.Context, caller, key int) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for caller := range min(callers, keys) {
		all.Go(func() {
			for key := caller; key < keys && ctx.Err() == nil; key += callers {
				if err := put(ctx, caller, key); err != nil {
					fail(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// cacheCaller asks for the keys in turn; callers begin at different ones.
type cacheCaller struct {
	client *client.Client
	plan   *CachePlan
	keys   []string
	value  []byte
	at     int
}

// Call implements Caller.
func (c *cacheCaller) Call(ctx context.Context, n uint64) error {
	key := c.keys[(uint64(c.at)+n)%uint64(len(c.keys))]
	if c.plan.Op == Put {
		return orRefusal(c.client.CachePut(ctx, c.plan.Namespace, c.plan.Cache, key, c.value, 0))
	}
	value, found, err := c.client.CacheGet(ctx, c.plan.Namespace, c.plan.Cache, key)
	switch {
	case err != nil:
		return orRefusal(err)
	case found != (c.plan.Op == Hit):
		return fmt.Errorf("get %q for a %s: found is %v: the cache is too small, or somebody else uses it", key, c.plan.Op, found)
	case found && len(value) != c.plan.Payload:
		return fmt.Errorf("get %q: %d bytes, want %d: somebody else uses the cache", key, len(value), c.plan.Payload)
	}
	return nil
}
