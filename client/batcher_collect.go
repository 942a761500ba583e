package client

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// collector collects the records of one shard. While it has something, one goroutine sends its batches in order.
type collector struct {
	batcher *Batcher
	shard   uint32
	wake    chan struct{} // there is something for the sender
	share   budgetShare   // of the batcher's bytes

	mu        sync.Mutex
	open      *openBatch   // takes records; nil between two
	opened    time.Time    // when its first record came
	ready     []*openBatch // full ones, in order
	unsettled []*openBatch // all without an outcome
	sending   bool         // the sender runs
}

// add puts a record into the open batch, or into a new one for which it waits for room.
func (q *collector) add(ctx context.Context, pub *publication, mixes bool, payload []byte) (BatchedRecord, error) {
	if r, ok := q.join(pub, payload, nil); ok {
		return r, nil
	}
	b := q.batcher
	size := max(pub.headBytes(b.client)+pub.bytes, b.client.opts.PublishChunkBytes)
	held, err := b.budget.take(ctx, &q.share, int64(size))
	if err != nil {
		return BatchedRecord{}, fmt.Errorf("%s: wait for room in the batcher: %w", b.op(), err)
	}
	fresh := &openBatch{
		shard: q.shard, pub: *pub, mixes: mixes, head: pub.headBytes(b.client), held: held, done: make(chan struct{}),
		buf: b.client.chunks.get(size),
	}
	fresh.pub.key, fresh.pub.batch = bytes.Clone(pub.key), fresh
	fresh.buf.bytes = fresh.buf.bytes[:fresh.head]
	r, ok := q.join(pub, payload, fresh)
	if !ok {
		b.budget.give(&q.share, held)
		return BatchedRecord{}, b.closedError()
	}
	if r.batch != fresh { // another caller opened one meanwhile
		b.budget.give(&q.share, held)
		b.client.chunks.put(fresh.buf)
	}
	return r, nil
}

// join puts a record into the open batch, or into fresh when there is none that it fits. It is false without either, or
// when nobody sends any more.
func (q *collector) join(pub *publication, payload []byte, fresh *openBatch) (r BatchedRecord, ok bool) {
	b := q.batcher
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open != nil && !q.open.fits(&b.opts, pub, b.frameBytes()) {
		q.shutOpen()
	}
	if q.open == nil {
		if fresh == nil || !q.start() {
			return BatchedRecord{}, false
		}
		q.open, q.opened = fresh, b.client.now()
		q.unsettled = append(q.unsettled, fresh)
	}
	batch := q.open
	batch.append(payload)
	r = BatchedRecord{batch, batch.count - 1}
	switch {
	case batch.count >= b.opts.MaxRecords || batch.bytes() >= b.opts.MaxBytes:
		q.shutOpen()
	case r.index == 0:
		wake(q.wake)
	}
	return r, true
}

// shutOpen makes the open batch ready. The lock is held.
func (q *collector) shutOpen() {
	q.ready = append(q.ready, q.open)
	q.open = nil
	wake(q.wake)
}

// start sees to it that the sender runs. The lock is held.
func (q *collector) start() bool {
	if !q.sending {
		q.sending = q.batcher.ctx.Err() == nil && q.batcher.client.life.spawn(q.send)
	}
	return q.sending
}

// flush makes what is collected ready and returns all batches without an outcome.
func (q *collector) flush() []*openBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open != nil {
		q.shutOpen()
	}
	return slices.Clone(q.unsettled)
}

// next returns the batch to send now, if there is one and no more than the bound are under way; else for how long an open
// one may still linger, 0 when there is none. over ends the sender: there is nothing left.
func (q *collector) next(underWay int) (batch *openBatch, linger time.Duration, over bool) {
	o := &q.batcher.opts
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case underWay >= o.MaxInFlight:
		return nil, 0, false
	case len(q.ready) > 0:
		batch = q.ready[0]
		q.ready = slices.Delete(q.ready, 0, 1)
		return batch, 0, false
	case q.open == nil:
		q.sending = underWay > 0
		return nil, 0, !q.sending
	}
	if left := o.Linger - q.batcher.client.now().Sub(q.opened); underWay > 0 && left > 0 {
		return nil, left, false
	}
	batch, q.open = q.open, nil
	return batch, 0, false
}

// settle ends a batch with its outcome.
func (q *collector) settle(batch *openBatch, result PublishResult, err error) {
	batch.result, batch.err = result, err
	q.batcher.settled(q, batch)
	q.mu.Lock()
	q.unsettled = slices.DeleteFunc(q.unsettled, func(other *openBatch) bool { return other == batch })
	q.mu.Unlock()
	close(batch.done)
}
