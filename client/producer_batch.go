package client

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/felixd/felixd/wire"
)

// ProducedBatch is a batch that a Producer took, until its outcome is known and after.
type ProducedBatch struct {
	line     *line
	pub      publication // without the payloads, which are in region
	region   wire.Region // a copy, for as long as it may be sent again
	sequence uint64
	held     int64    // of the client's byte budget
	request  *request // the last that carried it; nil before the first
	doubt    bool     // one of them may have been written

	done   chan struct{}
	result PublishResult
	err    error
	flush  uint64 // with err: which Flush tells of it
	told   atomic.Bool
}

// Done is closed when the outcome is known, and Wait returns at once.
func (b *ProducedBatch) Done() <-chan struct{} { return b.done }

// Wait returns the outcome. When ctx ends first the error matches ErrOutcomeUnknown, the batch is not affected, and Wait may be
// called again.
func (b *ProducedBatch) Wait(ctx context.Context) (PublishResult, error) {
	select {
	case <-b.done:
		return b.outcome()
	default:
	}
	select {
	case <-b.done:
		return b.outcome()
	case <-ctx.Done():
		return PublishResult{}, &OutcomeUnknownError{Op: b.pub.String(), Err: fmt.Errorf("wait for the answer: %w", ctx.Err())}
	}
}

// outcome is the result once done is closed. Whoever asks for it was told.
func (b *ProducedBatch) outcome() (PublishResult, error) {
	if b.err != nil && !b.told.Swap(true) {
		b.line.producer.toldOf(b)
	}
	return b.result, b.err
}

// numberBytes is what a number takes in a frame: the producer and the sequence.
const numberBytes = 8 + 8

// start takes a batch over.
func (p *Producer) start(ctx context.Context, pub publication) (*ProducedBatch, error) {
	op := pub.String()
	if err := pub.check(p.client.opts.MaxFrameBytes + wire.HeaderSize - pub.headBytes(p.client) - numberBytes); err != nil {
		return nil, err
	}
	if pub.ack == AckNone {
		return nil, &ArgumentError{Op: op, Argument: "ack", Problem: "is AckNone, but a producer needs answers; use AckRecord or AckBatch"}
	}
	l, err := p.lineOf(ctx, &pub)
	if err != nil {
		return nil, err
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: wait for earlier batches of the shard: %w", op, ctx.Err())
	}
	held, err := p.client.budget.take(ctx, &l.route.share, int64(pub.bytes))
	if err != nil {
		<-l.slots
		return nil, fmt.Errorf("%s: wait for room in flight: %w", op, err)
	}
	b := &ProducedBatch{line: l, held: held, region: pub.copyRegion(), done: make(chan struct{})}
	pub.payloads, pub.batch, pub.key = nil, nil, bytes.Clone(pub.key)
	b.pub = pub
	if err := l.accept(b); err != nil {
		l.giveBack(b)
		<-l.slots
		return nil, err
	}
	return b, nil
}

// copyRegion is the region in memory of its own.
func (p *publication) copyRegion() wire.Region {
	if p.batch == nil {
		return p.region()
	}
	return bytes.Clone(p.batch.region())
}

// encode makes the frame for a lane, each time the batch is sent.
func (b *ProducedBatch) encode(l *lane, id uint64, out *outbox) error {
	c := l.client
	grant := l.control.grant
	flags := b.pub.flags() | wire.FlagPublishAcked | wire.FlagPublishIdempotent
	if !grant.Features.Has(wire.FeatureIdempotentProducer) {
		return &UnsupportedError{Op: b.pub.String(), Feature: "numbered publishes"}
	}
	if !grant.Flags.Has(flags) {
		if err := out.takeJSON(b.pub.String, b.message(c, id), c.opts.MaxFrameBytes, tooManyBytes); err != nil {
			return err
		}
	} else {
		head := b.pub.head(c, id, flags)
		head.Ack, head.ProducerID, head.Sequence, head.Region = wire.AckPerBatch, b.line.producer.id, b.sequence, b.region
		ch := out.room(b.pub.headBytes(c) + numberBytes + len(b.region))
		ch.bytes = wire.AppendPublish(ch.bytes, &head)
	}
	c.stats.publishBatches.Add(1)
	c.stats.publishRecords.Add(uint64(b.pub.count))
	return nil
}

func (b *ProducedBatch) message(c *Client, id uint64) *wire.PublishIdempotent {
	m := &wire.PublishIdempotent{
		TenantID: c.opts.TenantID, Namespace: b.pub.namespace, Stream: b.pub.stream, Records: b.region, Count: uint32(b.pub.count),
		RequestID: id, ProducerID: b.line.producer.id, Sequence: b.sequence,
	}
	if b.pub.keyed {
		m.Key = wire.Some(b.pub.key)
	}
	return m
}

// verdict is what the last request came to; nil means that the batch is in the log. It is asked once its request is done.
func (b *ProducedBatch) verdict() error {
	r := b.request
	op := b.pub.String()
	switch m := r.answer.msg.(type) {
	case nil:
	case *wire.PublishRefused:
		err := refusedError(op, m)
		switch e := err.(type) {
		case *SequenceError:
			e.ProducerID, e.Sequence = b.line.producer.id, b.sequence
		case *OffsetMismatchError:
			return &ProtocolError{Op: op, What: "refused a numbered publish for its offset"}
		}
		return err
	default:
		return refusalOf(op, m)
	}
	ack := &r.answer.ack
	switch {
	case r.err != nil:
		return r.err
	case ack.Refusal != nil:
		return brokerError(op, *ack.Refusal)
	}
	b.result = PublishResult{Offset: ack.Offset, HasOffset: ack.HasOffset}
	return nil
}
