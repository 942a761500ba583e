package client

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/felixd/felixd/wire"
)

// Batcher collects records of one stream into batches, one batch at a time for each shard, and publishes them in the order
// they were added, shard by shard. Under load batches fill while earlier ones are unanswered; without load a record leaves
// at once. Each batch is sent once, like Publish; a batch that failed does not stop the ones behind it. Safe for concurrent
// use: records that one goroutine adds for one key keep their order.
//
// Records of several keys travel in one batch when their keys belong to one shard, by the number of shards the broker told.
// Whoever deletes a stream and creates it anew with another number of shards has to make new batchers too.
type Batcher struct {
	client            *Client
	namespace, stream string
	opts              BatcherOptions
	entry             *streamEntry
	budget            *byteBudget
	ctx               context.Context // ends when what is collected is given up
	cancel            context.CancelFunc

	mu         sync.Mutex
	closed     bool
	collectors map[uint32]*collector
	all        []*collector // the same, in the order they came up
	failed     int          // records since the last Flush
	first      error        // of those
}

// FlushError says how many records were not acknowledged since the last Flush.
type FlushError struct {
	Op     string
	Failed int
	Err    error // of the first of them
}

// Error gives the number and the first error.
func (e *FlushError) Error() string {
	return fmt.Sprintf("%s: %d records failed: %v", e.Op, e.Failed, e.Err)
}

// Unwrap gives the error of the first record that failed.
func (e *FlushError) Unwrap() error { return e.Err }

// NewBatcher makes a batcher for a stream. Close it before the client, or let Client.Close do that.
func (c *Client) NewBatcher(namespace, stream string, o BatcherOptions) (*Batcher, error) {
	op := "batch for " + namespace + "/" + stream
	if err := checkNames(op, namespace, "stream", stream); err != nil {
		return nil, err
	}
	o, err := o.complete(op)
	if err != nil {
		return nil, err
	}
	if o.Producer != nil && o.Producer.client != c {
		return nil, &ArgumentError{Op: op, Argument: "Producer", Problem: "is of another client; make one with this client"}
	}
	b := &Batcher{
		client: c, namespace: namespace, stream: stream, opts: o, entry: c.streams.entry(namespace, stream),
		budget: newByteBudget(o.BufferBytes), collectors: make(map[uint32]*collector),
	}
	b.ctx, b.cancel = context.WithCancel(c.closing)
	if c.isClosed() || !c.batchers.add(b) {
		b.cancel()
		return nil, closedError(op)
	}
	return b, nil
}

// Add adds a record without a key. It waits for room when the batcher is full. An error means that the record was not
// taken; what becomes of one that was, the BatchedRecord tells. The payload is not kept.
func (b *Batcher) Add(ctx context.Context, payload []byte) (BatchedRecord, error) {
	return b.add(ctx, nil, false, payload)
}

// AddKeyed adds a record with a key, which is not kept either; see WithKey.
func (b *Batcher) AddKeyed(ctx context.Context, key, payload []byte) (BatchedRecord, error) {
	return b.add(ctx, key, true, payload)
}

func (b *Batcher) add(ctx context.Context, key []byte, keyed bool, payload []byte) (BatchedRecord, error) {
	pub := b.publication(key, keyed)
	pub.count, pub.bytes = 1, wire.PayloadOverhead+len(payload)
	if err := pub.check(b.frameBytes() - pub.headBytes(b.client)); err != nil {
		return BatchedRecord{}, err
	}
	shard, mixes, err := b.shardOf(ctx, &pub)
	if err != nil {
		return BatchedRecord{}, err
	}
	q, err := b.collector(shard)
	if err != nil {
		return BatchedRecord{}, err
	}
	return q.add(ctx, &pub, mixes, payload)
}

func (b *Batcher) publication(key []byte, keyed bool) publication {
	return publication{
		verb: "publish batch", namespace: b.namespace, stream: b.stream,
		publishSettings: publishSettings{key: key, keyed: keyed, ack: b.opts.Ack},
	}
}

// shardOf returns the shard of a record, and whether its batch may hold other keys of that shard. Where the shards are not
// known, the broker routes by the key of the batch.
func (b *Batcher) shardOf(ctx context.Context, pub *publication) (shard uint32, mixes bool, err error) {
	if b.opts.Producer != nil && pub.keyed { // which does without a shard it cannot tell
		shard, err := b.opts.Producer.shardOf(ctx, b.entry, pub)
		return shard, true, err
	}
	if !pub.keyed {
		_, known, _ := b.entry.width()
		return 0, known, nil
	}
	shards, known, err := b.client.width(ctx, b.entry, b.namespace, b.stream)
	if err != nil {
		return 0, false, err
	}
	return shards.Routing.Shard(pub.key, true, shards.Count), known, nil
}

func (b *Batcher) collector(shard uint32) (*collector, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, b.closedError()
	}
	q := b.collectors[shard]
	if q == nil {
		q = &collector{batcher: b, shard: shard, wake: make(chan struct{}, 1)}
		b.collectors[shard] = q
		b.all = append(b.all, q)
	}
	return q, nil
}

// frameBytes is how long the payload of a frame may be before a number is added to it.
func (b *Batcher) frameBytes() int {
	if b.opts.Producer != nil {
		return b.client.opts.MaxFrameBytes - numberBytes
	}
	return b.client.opts.MaxFrameBytes
}

func (b *Batcher) op() string { return "batch for " + b.namespace + "/" + b.stream }

func (b *Batcher) closedError() error { return fmt.Errorf("%s: the batcher is %w", b.op(), ErrClosed) }

// Flush sends what is collected and waits for every record added before. It returns a *FlushError when records failed since
// the last Flush, whoever else was told of them, and the error of ctx when that ended first.
func (b *Batcher) Flush(ctx context.Context) error {
	b.mu.Lock()
	all := slices.Clone(b.all)
	b.mu.Unlock()
	var waiting []*openBatch
	for _, q := range all {
		waiting = append(waiting, q.flush()...)
	}
	for _, batch := range waiting {
		select {
		case <-batch.done:
		case <-ctx.Done():
			return fmt.Errorf("%s: wait for acknowledgements: %w", b.op(), ctx.Err())
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == 0 {
		return nil
	}
	err := &FlushError{Op: b.op(), Failed: b.failed, Err: b.first}
	b.failed, b.first = 0, nil
	return err
}

// Close takes no more records, flushes, and ends the batcher. What was not sent when ctx ends is given up and its records
// end with ErrClosed. Closing again does nothing.
func (b *Batcher) Close(ctx context.Context) error {
	b.mu.Lock()
	before := b.closed
	b.closed = true
	b.mu.Unlock()
	if before {
		return nil
	}
	err := b.Flush(ctx)
	b.cancel()
	b.client.batchers.remove(b)
	return err
}

// settled counts what became of a batch.
func (b *Batcher) settled(q *collector, batch *openBatch) {
	b.budget.give(&q.share, batch.held)
	if batch.err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == 0 {
		b.first = batch.err
	}
	b.failed += batch.count
}
