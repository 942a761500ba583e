package client

import (
	"context"
	"errors"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// PublishIf publishes records as one batch if the first of them gets the expected offset, that is, if nothing was appended to
// the shard since the caller looked. Otherwise nothing is written and the error is an *OffsetMismatchError, which names the
// offset that would have been right. When no answer came, the error matches ErrOutcomeUnknown; it is never sent again then.
// Durable streams only.
func (c *Client) PublishIf(ctx context.Context, namespace, stream string, expected id.Offset, payloads [][]byte, opts ...PublishOption) (PublishResult, error) {
	pub := newPublication("publish if at offset "+expected.String(), namespace, stream, payloads, opts)
	op := pub.String()
	if err := pub.check(c.opts.MaxFrameBytes); err != nil {
		return PublishResult{}, err
	}
	if pub.ack == AckNone {
		return PublishResult{}, &ArgumentError{Op: op, Argument: "ack", Problem: "is AckNone, but a condition needs its answer; use AckRecord or AckBatch"}
	}
	m := &wire.PublishIf{
		TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream, Records: pub.region(), Count: uint32(pub.count),
		ExpectedOffset: expected, RequestID: c.requestID.Add(1),
	}
	if pub.keyed {
		m.Key = wire.Some(pub.key)
	}
	answer, err := c.write(ctx, namespace, stream, pub.key, pub.keyed, &oneShot{
		op: op, needs: wire.FeaturePublishConditional, feature: "publish_if", message: m, writes: true,
	})
	if err != nil {
		return PublishResult{}, err
	}
	switch a := answer.(type) {
	case *wire.PublishOK:
		if !a.Offset.Set {
			return PublishResult{}, &ProtocolError{Op: op, What: "did not say where it put a conditional publish"}
		}
		return PublishResult{Offset: a.Offset.V, HasOffset: true}, echoes(op, m.RequestID, a.RequestID)
	case *wire.PublishRefused:
		return PublishResult{}, conditionError(op, a, expected)
	}
	return PublishResult{}, refusalOf(op, answer)
}

// write sends a request to whoever owns the shard of a key.
func (c *Client) write(ctx context.Context, namespace, stream string, key []byte, keyed bool, q *oneShot) (wire.Message, error) {
	if c.isClosed() {
		return nil, closedError(q.op)
	}
	entry := c.streams.entry(namespace, stream)
	r := entry.route(0)
	if keyed {
		shards, known, err := c.width(ctx, entry, namespace, stream)
		if err != nil {
			return nil, err
		}
		if r = entry.route(shards.Routing.Shard(key, true, shards.Count)); !known {
			r = &route{} // whose owner may be another shard's
		}
	}
	answer, err := c.askOwner(ctx, r, q)
	if keyed && errors.Is(err, ErrNotFound) { // what is known of its shards is of a stream that is gone
		entry.forgetWidth()
	}
	return answer, err
}

// conditionError is refusedError with what the write was bound to.
func conditionError(op string, m *wire.PublishRefused, expected id.Offset) error {
	err := refusedError(op, m)
	if mismatch, ok := err.(*OffsetMismatchError); ok {
		mismatch.Expected = expected
	}
	return err
}
