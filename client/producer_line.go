package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// line is the batches of a producer for one shard. While there are any without an outcome, one goroutine sends them.
type line struct {
	producer *Producer
	entry    *streamEntry
	route    *route
	shard    uint32
	slots    chan struct{} // one for each number from the oldest batch without an outcome on
	wake     chan struct{} // there is another batch

	mu      sync.Mutex
	next    uint64           // number of the next batch
	reached uint64           // one past the highest number that is in the log
	batches []*ProducedBatch // without an outcome, in order
	running bool
	stopped error // of the batch that ended it

	// The rest belongs to the goroutine.
	owner *target // whom a refusal named; nil: where everything of the shard goes
	via   *target // where the last batch went
}

// lineOf finds the line of a batch. Without knowing the shards there is none: the broker counts by shard.
func (p *Producer) lineOf(ctx context.Context, pub *publication) (*line, error) {
	entry := p.client.streams.entry(pub.namespace, pub.stream)
	shard, err := p.shardOf(ctx, entry, pub)
	if err != nil {
		return nil, err
	}
	name := lineName{streamName{pub.namespace, pub.stream}, shard}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[name]
	switch {
	case p.closed:
		return nil, p.closedError(pub.String())
	case l != nil:
		return l, nil
	case len(p.lines) >= producerLinesMax:
		return nil, &LimitError{Op: pub.String(), Limit: "shards with batches of one producer", Most: producerLinesMax}
	}
	l = &line{
		producer: p, entry: entry, route: entry.route(shard), shard: shard,
		slots: make(chan struct{}, p.opts.MaxInFlight), wake: make(chan struct{}, 1),
	}
	p.lines[name] = l
	p.all = append(p.all, l)
	return l, nil
}

func (p *Producer) shardOf(ctx context.Context, entry *streamEntry, pub *publication) (uint32, error) {
	if pub.batch != nil {
		return pub.batch.shard, nil
	}
	if !pub.keyed {
		return 0, nil
	}
	shards, known, err := p.client.width(ctx, entry, pub.namespace, pub.stream)
	if err == nil && !known { // ask again, for the reason
		shards, err = p.client.StreamShards(ctx, pub.namespace, pub.stream)
	}
	if err != nil {
		return 0, err
	}
	return shards.Routing.Shard(pub.key, true, shards.Count), nil
}

// accept gives a batch its number and sees to it that it is sent.
func (l *line) accept(b *ProducedBatch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped != nil:
		return &ProducerError{Op: b.pub.String(), Stopped: true, Err: l.stopped}
	case l.producer.ctx.Err() != nil:
		return l.producer.closedError(b.pub.String())
	case !l.running && !l.producer.client.life.spawn(l.run):
		return l.producer.closedError(b.pub.String())
	}
	l.running = true
	b.sequence = l.next
	l.next++
	l.batches = append(l.batches, b)
	wake(l.wake)
	return nil
}

// at returns the i-th batch without an outcome; nil when there are not so many.
func (l *line) at(i int) *ProducedBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i < len(l.batches) {
		return l.batches[i]
	}
	return nil
}

func (l *line) waiting() []*ProducedBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.batches)
}

// rest ends the goroutine when there is nothing left.
func (l *line) rest() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = len(l.batches) > 0
	return !l.running
}

// landed ends the i-th batch with success. What is behind one without an outcome keeps its slot as long as that one: a broker knows so many
// numbers again, counted from its last, and would not know the oldest when more than those had come behind it.
func (l *line) landed(i int) {
	l.mu.Lock()
	b, before := l.batches[i], l.batches[0].sequence
	l.batches = slices.Delete(l.batches, i, i+1)
	l.reached = max(l.reached, b.sequence+1)
	oldest := l.next
	if len(l.batches) > 0 {
		oldest = l.batches[0].sequence
	}
	l.mu.Unlock()
	l.end(b, nil)
	l.release(oldest - before)
}

// fail ends all batches, the first of them with err. Numbers begin again at the first one's when it is certain that none of
// them was written; otherwise the line takes no more.
func (l *line) fail(err error) {
	var refused *SequenceError
	l.mu.Lock()
	doomed := l.batches
	l.batches = nil
	stop := errors.As(err, &refused) || l.reached > doomed[0].sequence
	for _, b := range doomed {
		stop = stop || b.doubt
	}
	held := l.next - doomed[0].sequence
	l.next = doomed[0].sequence
	if stop {
		l.stopped = err
	}
	l.mu.Unlock()
	if errors.Is(err, ErrNotFound) { // what is known of its shards is of a stream that is gone
		l.entry.forgetWidth()
	}
	for i, b := range doomed {
		op := b.pub.String()
		switch {
		case i == 0 && (!b.doubt || errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrSequenceReused)):
			l.end(b, err)
		case b.doubt:
			l.end(b, &OutcomeUnknownError{Op: op, Err: fmt.Errorf("an earlier try was not answered, and the last one failed: %w", err)})
		default:
			l.end(b, &ProducerError{Op: op, Stopped: stop, Err: err})
		}
	}
	l.release(held)
}

// end tells the outcome of a batch that is in the line no more.
func (l *line) end(b *ProducedBatch, err error) {
	b.err, b.region, b.request = err, nil, nil
	l.producer.settled(b)
	l.giveBack(b)
	close(b.done)
}

// giveBack gives back what a batch holds of the bytes in flight.
func (l *line) giveBack(b *ProducedBatch) { l.producer.client.budget.give(&l.route.share, b.held) }

// release frees so many slots.
func (l *line) release(slots uint64) {
	for range slots {
		<-l.slots
	}
}
