package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// PublishResult is what the broker said of a publish it took.
type PublishResult struct {
	// Offset is where the first record went; record i of a batch is at Offset + i. It means something only with HasOffset:
	// in-memory streams have none, and AckNone learns none.
	Offset    id.Offset
	HasOffset bool
}

// Publish publishes one record and waits for its answer. Refusals are a *BrokerError. When ctx ends or the connection is
// lost before the answer, the error matches ErrOutcomeUnknown: the record may have been written. Any other error means
// that it was not. A record is sent once; only when the remembered owner of its shard said that it did nothing, it is sent
// once more, through the broker the client is connected to.
func (c *Client) Publish(ctx context.Context, namespace, stream string, payload []byte, opts ...PublishOption) (PublishResult, error) {
	return c.publishAndWait(ctx, newPublication("publish", namespace, stream, [][]byte{payload}, opts))
}

// PublishBatch publishes several records as one batch under one key: all or none of them, at consecutive offsets. An empty
// batch is an *ArgumentError. Otherwise as Publish.
func (c *Client) PublishBatch(ctx context.Context, namespace, stream string, payloads [][]byte, opts ...PublishOption) (PublishResult, error) {
	return c.publishAndWait(ctx, newPublication("publish batch", namespace, stream, payloads, opts))
}

// PublishAsync sends one record and returns without waiting for its answer. It waits for room when as much is under way as
// the broker's window and PublishInflightBytes allow, which bounds what a fast caller can pile up. Publishes of one key, or
// without a key, to one stream keep the order of the calls. An error means that the record was not sent. Unlike Publish it
// keeps no copy of the record, so it never sends one again.
func (c *Client) PublishAsync(ctx context.Context, namespace, stream string, payload []byte, opts ...PublishOption) (*PendingPublish, error) {
	return c.start(ctx, newPublication("publish", namespace, stream, [][]byte{payload}, opts))
}

// PublishBatchAsync is PublishBatch without waiting for the answer; see PublishAsync.
func (c *Client) PublishBatchAsync(ctx context.Context, namespace, stream string, payloads [][]byte, opts ...PublishOption) (*PendingPublish, error) {
	return c.start(ctx, newPublication("publish batch", namespace, stream, payloads, opts))
}

// publication is one publish on its way to a lane. What it borrows from the caller it lets go of once it is encoded.
type publication struct {
	verb              string
	namespace, stream string
	payloads          [][]byte
	batch             *openBatch // instead of payloads: records that were collected into a frame
	count             int
	bytes             int // of the region that the payloads make
	publishSettings
}

func newPublication(verb, namespace, stream string, payloads [][]byte, opts []PublishOption) publication {
	p := publication{verb: verb, namespace: namespace, stream: stream, payloads: payloads, count: len(payloads)}
	for _, b := range payloads {
		p.bytes += wire.PayloadOverhead + len(b)
	}
	for _, o := range opts {
		o(&p.publishSettings)
	}
	return p
}

// String says what is tried.
func (p *publication) String() string { return p.verb + " to " + p.namespace + "/" + p.stream }

func (p *publication) check(most int) error {
	bad := func(argument, problem string) error {
		return &ArgumentError{Op: p.String(), Argument: argument, Problem: problem}
	}
	if problem := nameProblem(p.namespace); problem != "" {
		return bad("namespace", problem)
	}
	if problem := nameProblem(p.stream); problem != "" {
		return bad("stream", problem)
	}
	switch {
	case p.count == 0:
		return bad("payloads", "is empty; publish at least one record")
	case len(p.key) > wire.MaxKeyBytes:
		return bad("key", fmt.Sprintf("has %d bytes; at most %d are allowed", len(p.key), wire.MaxKeyBytes))
	case p.bytes > most:
		return tooManyBytes.error(p.String(), p.bytes, most)
	case p.ack > AckNone:
		return bad("ack", "is none of AckRecord, AckBatch, AckNone")
	}
	return nil
}

// tooLong is what makes a frame longer than a broker takes, and what would be right.
type tooLong struct{ what, advice string }

var (
	tooManyBytes = tooLong{"payload", "publish smaller batches"}
	longRequest  = tooLong{"request", "make what it carries shorter"} // a value, a key
)

func (t tooLong) error(op string, n, most int) error {
	return &ArgumentError{Op: op, Argument: t.what,
		Problem: fmt.Sprintf("makes a frame of %d bytes; at most %d are allowed, so %s", n, most, t.advice)}
}

// start hands a publish to the lane of its shard. A remembered owner that cannot be reached is forgotten: nothing was sent.
func (c *Client) start(ctx context.Context, pub publication) (*PendingPublish, error) {
	if err := pub.check(c.opts.MaxFrameBytes); err != nil {
		return nil, err
	}
	if c.isClosed() {
		return nil, closedError(pub.String())
	}
	entry := c.streams.entry(pub.namespace, pub.stream)
	shard, err := c.shardOf(ctx, entry, &pub)
	if err != nil {
		return nil, err
	}
	p := &PendingPublish{client: c, pub: pub, entry: entry, route: entry.route(shard)}
	p.request = request{what: &p.pub, encoder: &p.pub, owner: p, silent: pub.ack == AckNone, done: make(chan struct{})}
	for {
		err := p.submit(ctx, c.publishPlace(entry, shard))
		if err == nil {
			return p, nil
		}
		if p.via == nil || p.via == c.entry || !isConnectFailure(err) && !errors.Is(err, ErrConnectionLost) {
			return nil, err
		}
		p.route.forget(p.via)
	}
}

// shardOf returns the shard of a publish as far as the client knows.
func (c *Client) shardOf(ctx context.Context, e *streamEntry, p *publication) (uint32, error) {
	if p.batch != nil {
		return p.batch.shard, nil
	}
	if !p.keyed {
		return 0, nil
	}
	shards, _, err := c.width(ctx, e, p.namespace, p.stream)
	if err != nil {
		return 0, err
	}
	return shards.Routing.Shard(p.key, true, shards.Count), nil
}

// publishPlace chooses the lane of a publish: one per shard, so that order holds within a shard, and neighbouring shards
// have lanes of their own; or each in turn.
func (c *Client) publishPlace(e *streamEntry, shard uint32) int {
	places := uint64(c.opts.PublishStreams)
	if c.opts.PublishSharding == RoundRobin {
		return int(c.turn.Add(1) % places)
	}
	return int((e.hash + uint64(shard)) % places)
}
