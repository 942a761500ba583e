package client

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// CachePut writes a value. ttl is how long it lives, rounded up to milliseconds; 0 means for ever. When ctx ends or the
// connection is lost before the answer, the error matches ErrOutcomeUnknown.
func (c *Client) CachePut(ctx context.Context, namespace, cache, key string, value []byte, ttl time.Duration) error {
	op := cacheOp{"put %q into cache %s/%s", namespace, cache, key}
	if err := op.check(); err != nil {
		return err
	}
	put := &wire.CachePut{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, Value: value}
	var err error
	if put.TTLMillis, err = op.lifetime(ttl); err != nil {
		return err
	}
	answer, err := c.cacheRequest(ctx, &cacheCall{op: op, bytes: len(value), message: func(requestID uint64) wire.Message {
		put.RequestID = wire.Some(requestID)
		return put
	}})
	if err != nil {
		return err
	}
	if _, ok := answer.(*wire.CacheOK); !ok {
		return refusalOf(op.String(), answer)
	}
	return nil
}

// CacheGet reads a value; found is false when the key was never written, was deleted or has expired. An empty value is
// found. The value belongs to the caller.
func (c *Client) CacheGet(ctx context.Context, namespace, cache, key string) (value []byte, found bool, err error) {
	op := cacheOp{"get %q from cache %s/%s", namespace, cache, key}
	if err := op.check(); err != nil {
		return nil, false, err
	}
	get := &wire.CacheGet{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key}
	answer, err := c.cacheRead(ctx, op, 0, "", func(requestID uint64) wire.Message {
		get.RequestID = wire.Some(requestID)
		return get
	})
	return valueOf(op, answer, err)
}

// CacheDelete removes a value and returns it; found is false when there was none. When ctx ends or the connection is lost
// before the answer, the error matches ErrOutcomeUnknown.
func (c *Client) CacheDelete(ctx context.Context, namespace, cache, key string) (removed []byte, found bool, err error) {
	op := cacheOp{"delete %q from cache %s/%s", namespace, cache, key}
	if err := op.check(); err != nil {
		return nil, false, err
	}
	answer, err := c.cacheRequest(ctx, &cacheCall{op: op, needs: wire.FeatureCacheDelete, feature: "cache_delete", message: func(requestID uint64) wire.Message {
		return &wire.CacheDelete{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, RequestID: wire.Some(requestID)}
	}})
	return valueOf(op, answer, err)
}

// cacheOp is what is tried, in words.
type cacheOp struct{ format, namespace, cache, key string }

// String says what is tried.
func (o cacheOp) String() string { return fmt.Sprintf(o.format, o.key, o.namespace, o.cache) }

func (o cacheOp) check() error {
	bad := func(argument, problem string) error {
		return &ArgumentError{Op: o.String(), Argument: argument, Problem: problem}
	}
	if problem := nameProblem(o.namespace); problem != "" {
		return bad("namespace", problem)
	}
	if problem := nameProblem(o.cache); problem != "" {
		return bad("cache", problem)
	}
	if problem := cacheKeyProblem(o.key); problem != "" {
		return bad("key", problem)
	}
	return nil
}

// lifetime is a time to live as it travels, rounded up to milliseconds; unset for 0.
func (o cacheOp) lifetime(ttl time.Duration) (wire.Opt[uint64], error) {
	switch {
	case ttl < 0:
		return wire.Opt[uint64]{}, &ArgumentError{Op: o.String(), Argument: "ttl", Problem: fmt.Sprintf("is %v; use a positive one, or 0 for none", ttl)}
	case ttl == 0:
		return wire.Opt[uint64]{}, nil
	}
	return wire.Some(uint64((ttl-1)/time.Millisecond) + 1), nil
}
