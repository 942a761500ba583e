package client

import (
	"context"

	"github.com/felixd/felixd/wire"
)

// CounterAdd adds to a counter, which may be less than nothing, and returns the sum after it. A counter that was never written
// begins at 0; a sum that does not fit into 64 bits is refused. Counters live beside the values of a cache, under keys of their
// own: neither CacheGet nor a watch sees them, and they have no lifetime.
//
// When ctx ends or the connection is lost before the answer, the error matches ErrOutcomeUnknown. It is never sent again then:
// the delta may have been added, and would be added twice.
func (c *Client) CounterAdd(ctx context.Context, namespace, cache, key string, delta int64) (sum int64, err error) {
	op := cacheOp{"add to counter %q of cache %s/%s", namespace, cache, key}
	if err := op.check(); err != nil {
		return 0, err
	}
	call := &cacheCall{op: op, needs: wire.FeatureCounters, feature: featureCounters, message: func(requestID uint64) wire.Message {
		return &wire.CounterAdd{
			TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, Delta: delta, RequestID: requestID,
		}
	}}
	answer, err := c.cacheRequest(ctx, call)
	if err != nil {
		return 0, err
	}
	m, ok := answer.(*wire.CounterValue)
	switch {
	case !ok:
		return 0, unlessUnknown(op.String(), answer)
	case !m.Value.Set:
		return 0, &OutcomeUnknownError{Op: op.String(), Err: &ProtocolError{What: "did not say what a counter came to", Op: "read the answer"}}
	}
	return m.Value.V, nil
}

// CounterGet reads a counter; found is false when it was never written.
func (c *Client) CounterGet(ctx context.Context, namespace, cache, key string) (sum int64, found bool, err error) {
	op := cacheOp{"get counter %q of cache %s/%s", namespace, cache, key}
	if err := op.check(); err != nil {
		return 0, false, err
	}
	answer, err := c.cacheRead(ctx, op, wire.FeatureCounters, featureCounters, func(requestID uint64) wire.Message {
		return &wire.CounterGet{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, Key: key, RequestID: requestID}
	})
	if err != nil {
		return 0, false, err
	}
	m, ok := answer.(*wire.CounterValue)
	if !ok {
		return 0, false, refusalOf(op.String(), answer)
	}
	return m.Value.V, m.Value.Set, nil
}

// featureCounters is what is missing where counters are not offered.
const featureCounters = "counters"
