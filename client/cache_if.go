package client

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// CacheEntry is a cache value with its version.
type CacheEntry struct {
	Value []byte // belongs to the receiver
	Found bool   // there is a value; an empty one is a value
	// Version names the write that made the value, with Found: each put of a key gets a higher one. It is what IfVersion and
	// CacheDeleteIf take. In a log-backed cache it is the offset of the put, the same as CacheChange.Offset.
	Version uint64
}

// Condition is what a conditional put asks of its key.
type Condition struct{ condition wire.CacheCondition }

// IfAbsent holds when the key has no value: it was never written, was deleted or has expired.
func IfAbsent() Condition { return Condition{} }

// IfVersion holds when the key has the value of this version.
func IfVersion(version uint64) Condition {
	return Condition{wire.CacheCondition{Version: wire.Some(version)}}
}

// String says what is asked.
func (c Condition) String() string {
	if v := c.condition.Version; v.Set {
		return fmt.Sprintf("if it has version %d", v.V)
	}
	return "if it is absent"
}

// ConditionResult is what became of a conditional write. A condition that does not hold is a result, not an error.
type ConditionResult struct {
	Applied bool // it was done
	// Version is what an applied put wrote, or else what the key has now, with HasVersion. Without it the key has no value:
	// an applied delete removed it, or there was none.
	Version    uint64
	HasVersion bool
}

// CacheGetVersion is CacheGet with the version of the value, for a conditional write that follows.
func (c *Client) CacheGetVersion(ctx context.Context, namespace, cache, key string) (CacheEntry, error) {
	op := cacheOp{"get %q with its version from cache %s/%s", namespace, cache, key}
	if err := op.check(); err != nil {
		return CacheEntry{}, err
	}
	answer, err := c.cacheRead(ctx, op, wire.FeatureCacheConditional, featureConditional, func(requestID uint64) wire.Message {
		return &wire.CacheGet{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, RequestID: wire.Some(requestID)}
	})
	if err != nil {
		return CacheEntry{}, err
	}
	m, ok := answer.(*wire.CacheValue)
	switch {
	case !ok:
		return CacheEntry{}, refusalOf(op.String(), answer)
	case m.Value.Set && !m.Version.Set:
		return CacheEntry{}, &ProtocolError{Op: op.String(), What: "sent a value without its version"}
	}
	return CacheEntry{Value: m.Value.V, Found: m.Value.Set, Version: m.Version.V}, nil
}

// CachePutIf is CachePut if the condition holds when the broker writes. Otherwise nothing is written, and the result says
// which version the key has. When ctx ends or the connection is lost before the answer, the error matches ErrOutcomeUnknown;
// it is never sent again then. CacheGetVersion tells what became of it, as far as nobody else has written since.
func (c *Client) CachePutIf(ctx context.Context, namespace, cache, key string, value []byte, cond Condition, ttl time.Duration) (ConditionResult, error) {
	op := cacheOp{"put %q into cache %s/%s " + cond.String(), namespace, cache, key}
	if err := op.check(); err != nil {
		return ConditionResult{}, err
	}
	put := &wire.CachePutIf{
		TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, Value: value, Condition: cond.condition,
	}
	var err error
	if put.TTLMillis, err = op.lifetime(ttl); err != nil {
		return ConditionResult{}, err
	}
	return c.cacheCondition(ctx, &cacheCall{op: op, bytes: len(value), message: func(requestID uint64) wire.Message {
		put.RequestID = requestID
		return put
	}})
}

// CacheDeleteIf removes a value if it has this version when the broker deletes. Otherwise nothing is removed, and the result
// says which version the key has. When ctx ends or the connection is lost before the answer, the error matches
// ErrOutcomeUnknown; it is never sent again then.
func (c *Client) CacheDeleteIf(ctx context.Context, namespace, cache, key string, version uint64) (ConditionResult, error) {
	op := cacheOp{"delete %q from cache %s/%s " + IfVersion(version).String(), namespace, cache, key}
	if err := op.check(); err != nil {
		return ConditionResult{}, err
	}
	return c.cacheCondition(ctx, &cacheCall{op: op, message: func(requestID uint64) wire.Message {
		return &wire.CacheDeleteIf{
			TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, Version: version, RequestID: requestID,
		}
	}})
}

// featureConditional is what is missing where conditional writes are not offered.
const featureConditional = "conditional cache writes"

// cacheCondition is a conditional write.
func (c *Client) cacheCondition(ctx context.Context, k *cacheCall) (ConditionResult, error) {
	k.needs, k.feature = wire.FeatureCacheConditional, featureConditional
	answer, err := c.cacheRequest(ctx, k)
	if err != nil {
		return ConditionResult{}, err
	}
	m, ok := answer.(*wire.CacheConditionResult)
	if !ok {
		return ConditionResult{}, unlessUnknown(k.op.String(), answer)
	}
	return ConditionResult{Applied: m.Applied, Version: m.Version.V, HasVersion: m.Version.Set}, nil
}
