package client

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Ack says what answer a publish waits for.
type Ack uint8

const (
	// AckRecord waits until the broker has taken the record. It is the default.
	AckRecord Ack = iota
	// AckBatch waits until the broker has taken the whole batch.
	AckBatch
	// AckNone waits only until the record is on its way. It may be lost without anybody noticing.
	AckNone
)

// mode is the word for it on the wire.
func (a Ack) mode() wire.AckMode {
	switch a {
	case AckRecord:
		return wire.AckPerMessage
	case AckBatch:
		return wire.AckPerBatch
	}
	return wire.AckNone
}

// PublishOption adjusts one publish.
type PublishOption func(*publishSettings)

type publishSettings struct {
	key   []byte
	keyed bool
	ack   Ack
}

// WithKey routes the record, or all records of a batch, by a key: same key, same shard, same order. An empty key is a key.
// Without one records go to shard 0. At most 65535 bytes; not kept.
func WithKey(key []byte) PublishOption {
	return func(s *publishSettings) { s.key, s.keyed = key, true }
}

// WithAck sets what to wait for; AckRecord is the default.
func WithAck(ack Ack) PublishOption {
	return func(s *publishSettings) { s.ack = ack }
}

// PublishResult is what the broker said of a publish it took.
type PublishResult struct {
	// Offset is where the first record went; record i of a batch is at Offset + i. It means something only with HasOffset:
	// in-memory streams have none, and AckNone learns none.
	Offset    id.Offset
	HasOffset bool
}

// Publish publishes one record and waits for its answer. Refusals are a *BrokerError. When ctx ends or the connection is
// lost before the answer, the error matches ErrOutcomeUnknown: the record may have been written. Any other error means
// that it was not.
func (c *Client) Publish(ctx context.Context, namespace, stream string, payload []byte, opts ...PublishOption) (PublishResult, error) {
	p, err := c.PublishAsync(ctx, namespace, stream, payload, opts...)
	if err != nil {
		return PublishResult{}, err
	}
	return p.Wait(ctx)
}

// PublishBatch publishes several records as one batch under one key: all or none of them, at consecutive offsets. An empty
// batch is an *ArgumentError. Otherwise as Publish.
func (c *Client) PublishBatch(ctx context.Context, namespace, stream string, payloads [][]byte, opts ...PublishOption) (PublishResult, error) {
	p, err := c.PublishBatchAsync(ctx, namespace, stream, payloads, opts...)
	if err != nil {
		return PublishResult{}, err
	}
	return p.Wait(ctx)
}

// PublishAsync sends one record and returns without waiting for its answer. It waits for room when as much is under way as
// the broker's window and PublishInflightBytes allow, which bounds what a fast caller can pile up. Publishes of one key, or
// without a key, to one stream keep the order of the calls. An error means that the record was not sent.
func (c *Client) PublishAsync(ctx context.Context, namespace, stream string, payload []byte, opts ...PublishOption) (*PendingPublish, error) {
	return c.publish(ctx, "publish", namespace, stream, wire.AppendPayload(nil, payload), 1, opts)
}

// PublishBatchAsync is PublishBatch without waiting for the answer; see PublishAsync.
func (c *Client) PublishBatchAsync(ctx context.Context, namespace, stream string, payloads [][]byte, opts ...PublishOption) (*PendingPublish, error) {
	size := 0
	for _, p := range payloads {
		size += wire.PayloadOverhead + len(p)
	}
	region := make(wire.Region, 0, size)
	for _, p := range payloads {
		region = wire.AppendPayload(region, p)
	}
	return c.publish(ctx, "publish batch", namespace, stream, region, len(payloads), opts)
}

// publication is one publish on its way to a lane.
type publication struct {
	namespace, stream string
	region            wire.Region
	count             uint32
	publishSettings
}

func (c *Client) publish(ctx context.Context, verb, namespace, stream string, region wire.Region, count int, opts []PublishOption) (*PendingPublish, error) {
	op := verb + " to " + namespace + "/" + stream
	p := &publication{namespace: namespace, stream: stream, region: region, count: uint32(count)}
	for _, o := range opts {
		o(&p.publishSettings)
	}
	if err := p.check(op); err != nil {
		return nil, err
	}
	if c.isClosed() {
		return nil, closedError(op)
	}
	place, err := c.publishPlace(ctx, p)
	if err != nil {
		return nil, err
	}
	held, err := c.budget.take(ctx, int64(len(region)))
	if err != nil {
		return nil, fmt.Errorf("%s: wait for room in flight: %w", op, err)
	}
	r := newRequest(op)
	r.silent = p.ack == AckNone
	r.after = func() { c.budget.give(held) }
	if err := c.publishes.submit(ctx, place, r, func(l *lane) error { return p.encode(c, l, r) }); err != nil {
		c.budget.give(held)
		return nil, err
	}
	return &PendingPublish{client: c, request: r, unknownWidth: p.keyed, namespace: namespace, stream: stream}, nil
}

func (p *publication) check(op string) error {
	if err := checkNames(op, p.namespace, "stream", p.stream); err != nil {
		return err
	}
	switch {
	case p.count == 0:
		return &ArgumentError{Op: op, Argument: "payloads", Problem: "is empty; publish at least one record"}
	case len(p.key) > wire.MaxKeyBytes:
		return &ArgumentError{Op: op, Argument: "key", Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(p.key), wire.MaxKeyBytes)}
	case len(p.region) > wire.MaxPayload:
		return tooLarge(op, len(p.region))
	case p.ack > AckNone:
		return &ArgumentError{Op: op, Argument: "ack", Problem: "is none of AckRecord, AckBatch, AckNone"}
	}
	return nil
}

func tooLarge(op string, n int) error {
	return &ArgumentError{Op: op, Argument: "payload",
		Problem: fmt.Sprintf("makes a frame of %d bytes; at most %d are allowed, so publish smaller batches", n, wire.MaxPayload)}
}

// encode makes the frame for a lane: binary where the broker reads it, JSON elsewhere.
func (p *publication) encode(c *Client, l *lane, r *request) error {
	r.id = l.nextID.Add(1)
	flags := wire.FlagPublishBatch
	if p.ack != AckNone {
		flags |= wire.FlagPublishAcked
	}
	if p.keyed {
		flags |= wire.FlagPublishKeyed
	}
	if l.control.grant.Flags.Has(flags) {
		binary := wire.Publish{
			Flags: flags, RequestID: r.id, Ack: p.ack.mode(), Key: p.key, Tenant: []byte(c.opts.TenantID),
			Namespace: []byte(p.namespace), Stream: []byte(p.stream), Count: p.count, Region: p.region,
		}
		r.frame = wire.AppendPublish(make([]byte, 0, p.frameBytes(c)), &binary)
	} else {
		message := wire.PublishBatchMessage{
			TenantID: c.opts.TenantID, Namespace: p.namespace, Stream: p.stream, Records: p.region, Count: p.count, Ack: p.ack.mode(),
		}
		if p.ack != AckNone {
			message.RequestID = wire.Some(r.id)
		}
		if p.keyed {
			message.Key = wire.Some(p.key)
		}
		r.frame = wire.AppendJSONFrame(nil, &message)
	}
	if n := len(r.frame) - wire.HeaderSize; n > wire.MaxPayload {
		return tooLarge(r.op, n)
	}
	return nil
}

// frameBytes is the length of the binary frame, or a little more: all length fields and ids together stay under 64 bytes.
func (p *publication) frameBytes(c *Client) int {
	return wire.HeaderSize + 64 + len(p.key) + len(c.opts.TenantID) + len(p.namespace) + len(p.stream) + len(p.region)
}
