package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/felixd/felixd/wire"
)

const (
	// producerInFlight is how many batches of a producer a shard knows again; more must not be under way at once.
	producerInFlight = 64
	// producerLinesMax bounds for how many shards a producer remembers the next number: some hundred bytes each.
	producerLinesMax = 1 << 16
)

// Producer publishes batches that it numbers, so that one whose answer was lost can be sent again and is still written once.
// It numbers the batches of each shard on its own, keeps a copy of each until its outcome is known, and sends again after lost
// connections, moves and refusals that are called temporary, in order, for as long as ProducerOptions.Patience says. Safe for
// concurrent use; batches that one goroutine publishes for one shard keep their order.
//
// When a batch fails for good, those behind it on its shard fail too, with a *ProducerError. If the first one was not written
// for certain, the producer goes on with what is published next; otherwise it has stopped for that shard.
//
// The promise reaches as far as the broker's memory: it knows the last 64 batches of a producer for as long as it keeps their
// records. It does not survive the program: another process has another producer.
type Producer struct {
	client *Client
	id     uint64
	opts   ProducerOptions
	ctx    context.Context // ends when what is under way is given up
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	lines  map[lineName]*line
	all    []*line // the same, in the order they came up
	failed int     // records of which nobody was told yet
	first  error   // of those
	flush  uint64  // how often that began anew
}

type lineName struct {
	streamName
	shard uint32
}

// ProducerOptions shape a Producer. A zero means the default.
type ProducerOptions struct {
	// MaxInFlight is how many batches of a shard may be under way, 1 to 64; 64 is the default: those without an outcome, and those that
	// landed behind one of them. At the bound publishing waits.
	MaxInFlight int
	// Patience is for how long a batch is sent again, from its first failure; Options.RetryDeadline or 30 s is the default.
	Patience time.Duration
}

// NewProducer asks the broker for a producer id. Close the producer before the client, or let Client.Close do that.
func (c *Client) NewProducer(ctx context.Context, o ProducerOptions) (*Producer, error) {
	const op = "make a producer"
	switch {
	case o.MaxInFlight < 0 || o.MaxInFlight > producerInFlight:
		return nil, &ArgumentError{Op: op, Argument: "MaxInFlight", Problem: fmt.Sprintf("is %d; use 1 to %d, or 0 for the default", o.MaxInFlight, producerInFlight)}
	case o.Patience < 0:
		return nil, &ArgumentError{Op: op, Argument: "Patience", Problem: "is negative; use a positive one, or 0 for the default"}
	}
	o.MaxInFlight = orDefault(o.MaxInFlight, producerInFlight)
	o.Patience = orDefault(o.Patience, orDefault(c.opts.RetryDeadline, resumePatience))
	m := &wire.ProducerInit{RequestID: c.requestID.Add(1)}
	answer, err := c.ask(ctx, op, wire.FeatureIdempotentProducer, "producer_init", m)
	if err != nil {
		return nil, err
	}
	init, ok := answer.(*wire.ProducerInitOK)
	if !ok {
		return nil, refusalOf(op, answer)
	}
	if err := echoes(op, m.RequestID, init.RequestID); err != nil {
		return nil, err
	}
	p := &Producer{client: c, id: init.ProducerID, opts: o, lines: make(map[lineName]*line)}
	p.ctx, p.cancel = context.WithCancel(c.closing)
	if c.isClosed() || !c.producers.add(p) {
		p.cancel()
		return nil, closedError(op)
	}
	return p, nil
}

// ID is the number the broker gave to this producer.
func (p *Producer) ID() uint64 { return p.id }

// Publish publishes one record and waits for its outcome. When ctx ends first the error matches ErrOutcomeUnknown, and the
// producer goes on with the record all the same.
func (p *Producer) Publish(ctx context.Context, namespace, stream string, payload []byte, opts ...PublishOption) (PublishResult, error) {
	return p.PublishBatch(ctx, namespace, stream, [][]byte{payload}, opts...)
}

// PublishBatch publishes several records as one batch under one key: all or none, once, at consecutive offsets.
func (p *Producer) PublishBatch(ctx context.Context, namespace, stream string, payloads [][]byte, opts ...PublishOption) (PublishResult, error) {
	b, err := p.PublishBatchAsync(ctx, namespace, stream, payloads, opts...)
	if err != nil {
		return PublishResult{}, err
	}
	return b.Wait(ctx)
}

// PublishAsync takes one record over and returns without waiting for its outcome. It waits for room when MaxInFlight batches
// of the shard, or Options.PublishInflightBytes, are under way. An error means that the record was not taken.
func (p *Producer) PublishAsync(ctx context.Context, namespace, stream string, payload []byte, opts ...PublishOption) (*ProducedBatch, error) {
	return p.PublishBatchAsync(ctx, namespace, stream, [][]byte{payload}, opts...)
}

// PublishBatchAsync is PublishBatch without waiting for the outcome; see PublishAsync.
func (p *Producer) PublishBatchAsync(ctx context.Context, namespace, stream string, payloads [][]byte, opts ...PublishOption) (*ProducedBatch, error) {
	return p.start(ctx, newPublication("publish once", namespace, stream, payloads, opts))
}

// Flush waits for the outcome of everything published before. It returns a *FlushError when records failed of which nobody was
// told yet, and the error of ctx when that ended first.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	all := slices.Clone(p.all)
	p.mu.Unlock()
	for _, l := range all {
		for _, b := range l.waiting() {
			select {
			case <-b.done:
			case <-ctx.Done():
				return fmt.Errorf("%s: wait for outcomes: %w", p.op(), ctx.Err())
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == 0 {
		return nil
	}
	err := &FlushError{Op: p.op(), Failed: p.failed, Err: p.first}
	p.failed, p.first = 0, nil
	p.flush++
	return err
}

// Close takes no more records, flushes, and ends the producer. What has no outcome when ctx ends is given up; it matches
// ErrOutcomeUnknown if it may have been written. Closing again does nothing.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	before := p.closed
	p.closed = true
	p.mu.Unlock()
	if before {
		return nil
	}
	err := p.Flush(ctx)
	p.cancel()
	p.client.producers.remove(p)
	return err
}

func (p *Producer) op() string { return fmt.Sprintf("producer %x", p.id) }

func (p *Producer) closedError(op string) error {
	if p.client.isClosed() {
		return closedError(op)
	}
	return fmt.Errorf("%s: the producer is %w", op, ErrClosed)
}

// settled counts what became of a batch.
func (p *Producer) settled(b *ProducedBatch) {
	if b.err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == 0 {
		p.first = b.err
	}
	p.failed += b.pub.count
	b.flush = p.flush
}

// toldOf takes a batch out of what the next Flush tells.
func (p *Producer) toldOf(b *ProducedBatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.flush == p.flush {
		p.failed -= b.pub.count
	}
}
