package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Subscriber is the receiving side of a trial.
type Subscriber interface {
	// Receive reads until ctx ends, which is no error, and tells got of every batch that has arrived whole.
	Receive(ctx context.Context, got *Received) error
	// Close ends the subscription and its connection.
	Close(ctx context.Context) error
}

// Received is what one subscriber has got. Its methods belong to the subscriber, its counters to everyone.
type Received struct {
	t         *trial
	shape     Shape
	sent      func() uint64 // how many records were published
	wake      func()        // somebody may wait for progress
	latencies *Latencies

	next     atomic.Uint64 // number of the record that is due: all before it have arrived or are lost
	records  atomic.Uint64 // that have arrived
	lost     atomic.Uint64 // that were passed over
	repeated atomic.Uint64 // that came twice or too late

	expected, count, skipped, again uint64 // of the subscriber, since the last batch
}

func newReceived(t *trial, s Shape, sent func() uint64, wake func()) *Received {
	return &Received{t: t, shape: s, sent: sent, wake: wake, latencies: NewLatencies()}
}

// errForeign says that somebody else publishes to the stream.
var errForeign = errors.New("a record arrived that was not published here: measure on a stream that nobody else uses")

// Record tells of one record by its payload. The error ends the subscriber.
func (r *Received) Record(payload []byte) error {
	number, numbered := numberOf(payload)
	if !numbered {
		number = r.expected
	}
	if number < r.expected {
		r.again++
		return nil
	}
	if number-r.expected >= uint64(r.shape.Batch) && number >= r.sent() { // asked only when something is amiss
		return errForeign
	}
	r.skipped += number - r.expected
	r.expected = number + 1
	r.count++
	batch := uint64(r.shape.Batch)
	if number%batch == 0 {
		if stamp, ok := stampOf(payload); ok && r.t.counts(stamp) {
			r.latencies.Record(r.t.now() - stamp)
		}
	}
	if r.expected%batch == 0 {
		r.publish()
	}
	return nil
}

// Batches tells of n whole batches without looking into them.
func (r *Received) Batches(n uint64) {
	r.expected += n * uint64(r.shape.Batch)
	r.count += n * uint64(r.shape.Batch)
	r.publish()
}

// Stamped tells of one whole batch and its stamp.
func (r *Received) Stamped(stamp time.Duration) {
	if r.t.counts(stamp) {
		r.latencies.Record(r.t.now() - stamp)
	}
	r.Batches(1)
}

// publish lets the others see.
func (r *Received) publish() {
	r.records.Add(r.count)
	r.lost.Add(r.skipped)
	r.repeated.Add(r.again)
	r.count, r.skipped, r.again = 0, 0, 0
	r.next.Store(r.expected)
	r.wake()
}
