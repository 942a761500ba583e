package client

import (
	"context"
	"errors"
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
	switch {
	case ttl < 0:
		return &ArgumentError{Op: op.String(), Argument: "ttl", Problem: fmt.Sprintf("is %v; use a positive one, or 0 for none", ttl)}
	case ttl > 0:
		put.TTLMillis = wire.Some(uint64((ttl-1)/time.Millisecond) + 1)
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
	get := func() error {
		value, found, err = c.cacheValue(ctx, &cacheCall{op: op, read: true, message: func(requestID uint64) wire.Message {
			return &wire.CacheGet{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, RequestID: wire.Some(requestID)}
		}})
		return err
	}
	if err = get(); errors.Is(err, ErrConnectionLost) && ctx.Err() == nil { // a read may be asked again, once
		err = get()
	}
	return value, found, err
}

// CacheDelete removes a value and returns it; found is false when there was none. When ctx ends or the connection is lost
// before the answer, the error matches ErrOutcomeUnknown.
func (c *Client) CacheDelete(ctx context.Context, namespace, cache, key string) (removed []byte, found bool, err error) {
	op := cacheOp{"delete %q from cache %s/%s", namespace, cache, key}
	if err := op.check(); err != nil {
		return nil, false, err
	}
	return c.cacheValue(ctx, &cacheCall{op: op, needs: wire.FeatureCacheDelete, message: func(requestID uint64) wire.Message {
		return &wire.CacheDelete{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, RequestID: wire.Some(requestID)}
	}})
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
