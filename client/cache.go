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
	op := fmt.Sprintf("put %q into cache %s/%s", key, namespace, cache)
	if err := checkCacheArguments(op, namespace, cache, key); err != nil {
		return err
	}
	put := &wire.CachePut{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, Value: value}
	switch {
	case ttl < 0:
		return &ArgumentError{Op: op, Argument: "ttl", Problem: fmt.Sprintf("is %v; use a positive one, or 0 for none", ttl)}
	case ttl > 0:
		put.TTLMillis = wire.Some(uint64((ttl-1)/time.Millisecond) + 1)
	}
	r := newRequest(op)
	answer, err := c.cacheRequest(ctx, r, 0, func(requestID uint64) wire.Message {
		put.RequestID = wire.Some(requestID)
		return put
	})
	if err != nil {
		return err
	}
	if _, ok := answer.(*wire.CacheOK); !ok {
		return refusalOf(op, answer)
	}
	return nil
}

// CacheGet reads a value; found is false when the key was never written, was deleted or has expired. An empty value is
// found. The value belongs to the caller.
func (c *Client) CacheGet(ctx context.Context, namespace, cache, key string) (value []byte, found bool, err error) {
	op := fmt.Sprintf("get %q from cache %s/%s", key, namespace, cache)
	if err := checkCacheArguments(op, namespace, cache, key); err != nil {
		return nil, false, err
	}
	get := func() error {
		r := newRequest(op)
		r.safe = true
		value, found, err = c.cacheValue(ctx, r, 0, func(requestID uint64) wire.Message {
			return &wire.CacheGet{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, RequestID: wire.Some(requestID)}
		})
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
	op := fmt.Sprintf("delete %q from cache %s/%s", key, namespace, cache)
	if err := checkCacheArguments(op, namespace, cache, key); err != nil {
		return nil, false, err
	}
	return c.cacheValue(ctx, newRequest(op), wire.FeatureCacheDelete, func(requestID uint64) wire.Message {
		return &wire.CacheDelete{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, RequestID: wire.Some(requestID)}
	})
}

func checkCacheArguments(op, namespace, cache, key string) error {
	if err := checkNames(op, namespace, "cache", cache); err != nil {
		return err
	}
	return checkCacheKey(op, key)
}

// cacheMessage makes the message of a request once its id is known.
type cacheMessage func(requestID uint64) wire.Message

// cacheValue is a request that is answered by a value or the lack of one.
func (c *Client) cacheValue(ctx context.Context, r *request, needs wire.Features, message cacheMessage) ([]byte, bool, error) {
	answer, err := c.cacheRequest(ctx, r, needs, message)
	if err != nil {
		return nil, false, err
	}
	m, ok := answer.(*wire.CacheValue)
	if !ok {
		return nil, false, refusalOf(r.op, answer)
	}
	return m.Value.V, m.Value.Set, nil
}

// cacheRequest sends one request on the least busy lane and waits for its answer.
func (c *Client) cacheRequest(ctx context.Context, r *request, needs wire.Features, message cacheMessage) (wire.Message, error) {
	if c.isClosed() {
		return nil, closedError(r.op)
	}
	place, release := c.caches.leastBusy()
	r.after = release
	err := c.caches.submit(ctx, place, r, func(l *lane) error {
		if !l.control.grant.Features.Has(needs) {
			return &UnsupportedError{Op: r.op, Feature: "cache_delete"}
		}
		r.id = l.nextID.Add(1)
		r.frame = wire.AppendJSONFrame(nil, message(r.id))
		if n := len(r.frame) - wire.HeaderSize; n > wire.MaxPayload {
			return tooLarge(r.op, n)
		}
		return nil
	})
	if err != nil {
		release()
		return nil, err
	}
	select {
	case <-r.done:
		return r.answer.msg, r.err
	case <-ctx.Done():
		if r.safe {
			return nil, fmt.Errorf("%s: wait for the answer: %w", r.op, ctx.Err())
		}
		return nil, r.unanswered(fmt.Errorf("wait for the answer: %w", ctx.Err()))
	}
}
