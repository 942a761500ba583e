package streams

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// flow publishes numbered records to one shard as fast as its good readers take them, and no faster: it is never more than
// ahead batches in front of the slowest of them. So nothing of theirs is ever lost for want of room, and how fast it runs is how
// fast they are served.
type flow struct {
	t      testing.TB
	c      *client.Client
	stream string
	batch  int // records of one publish
	size   int // bytes of one record
	ahead  int // batches
	sent   uint64
	unsure []*client.PendingPublish // sent and not answered

	mu    sync.Mutex
	moved sync.Cond
	all   []*reader
}

// reader takes everything from one subscription and requires that nothing is missing or comes twice.
type reader struct {
	flow  *flow
	sub   *client.Subscription
	got   atomic.Uint64
	wrong error // under flow.mu
	over  chan struct{}
}

// unansweredMax is how many publishes of a flow wait for their answers.
const unansweredMax = 32

func newFlow(t testing.TB, c *client.Client, stream string, batch, size, ahead int) *flow {
	f := &flow{t: t, c: c, stream: stream, batch: batch, size: size, ahead: ahead}
	f.moved.L = &f.mu
	return f
}

// reads adds a good reader. Its subscription must be open before anything is sent that it is to get.
func (f *flow) reads(s *client.Subscription) *reader {
	r := &reader{flow: f, sub: s, over: make(chan struct{})}
	r.got.Store(f.sent)
	f.mu.Lock()
	f.all = append(f.all, r)
	f.mu.Unlock()
	go r.run()
	f.t.Cleanup(func() { s.Close(); <-r.over })
	return r
}

func (r *reader) run() {
	defer close(r.over)
	for e, err := range r.sub.Events(context.Background()) {
		got := r.got.Load()
		if err == nil && numberOf(e.Payload) != got {
			err = &gapError{want: got, got: numberOf(e.Payload)}
		}
		if err != nil {
			r.stop(err)
			return
		}
		if r.got.Add(1)%uint64(r.flow.batch) == 0 {
			r.flow.mu.Lock()
			r.flow.moved.Broadcast()
			r.flow.mu.Unlock()
		}
	}
}

// stop tells the publisher that a reader has ended, which is a failure unless the test has closed it.
func (r *reader) stop(err error) {
	r.flow.mu.Lock()
	defer r.flow.mu.Unlock()
	if !errors.Is(err, client.ErrClosed) {
		r.wrong = err
	}
	r.flow.moved.Broadcast()
}

// gapError is a record that came instead of another.
type gapError struct{ want, got uint64 }

func (e *gapError) Error() string {
	return "record " + decimal(e.got) + " came where " + decimal(e.want) + " was due"
}

// slowest is how many records the slowest good reader has. mu is held.
func (f *flow) slowest() uint64 {
	least := f.sent
	for _, r := range f.all {
		if r.wrong != nil {
			f.t.Fatalf("a good reader: %v", r.wrong)
		}
		least = min(least, r.got.Load())
	}
	return least
}

// waitFor waits until every good reader has so many records.
func (f *flow) waitFor(records uint64) {
	f.t.Helper()
	began := time.Now()
	late := time.AfterFunc(patience, func() { // wakes the wait, which then fails
		f.mu.Lock()
		defer f.mu.Unlock()
		f.moved.Broadcast()
	})
	defer late.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.slowest() < records {
		if time.Since(began) >= patience {
			f.t.Fatalf("the slowest good reader has %d records of %d", f.slowest(), records)
		}
		f.moved.Wait()
	}
}

// step sends one batch when all good readers have come near enough.
func (f *flow) step(ctx context.Context) {
	f.t.Helper()
	if window := uint64(f.ahead * f.batch); f.sent >= window {
		f.waitFor(f.sent - window)
	}
	payloads := make([][]byte, f.batch)
	for i := range payloads {
		payloads[i] = record(f.sent+uint64(i), f.size)
	}
	if len(f.unsure) == unansweredMax {
		f.answered(ctx, 1)
	}
	p := must(f.c.PublishBatchAsync(ctx, namespace, f.stream, payloads, client.WithAck(client.AckBatch)))(f.t)
	f.mu.Lock()
	f.sent += uint64(f.batch)
	f.mu.Unlock()
	f.unsure = append(f.unsure, p)
}

// answered waits for the answers of the oldest n publishes.
func (f *flow) answered(ctx context.Context, n int) {
	f.t.Helper()
	for _, p := range f.unsure[:n] {
		if _, err := p.Wait(ctx); err != nil {
			f.t.Fatalf("a publish beside slow readers: %v", err)
		}
	}
	f.unsure = slices.Delete(f.unsure, 0, n)
}

// send sends at least so many records and returns how long it took until every good reader had all of them.
func (f *flow) send(ctx context.Context, records int) time.Duration {
	f.t.Helper()
	began := time.Now()
	for end := f.sent + uint64(records); f.sent < end; {
		f.step(ctx)
	}
	f.answered(ctx, len(f.unsure))
	f.waitFor(f.sent)
	return time.Since(began)
}

// sentSoFar is how many records were sent, for those who do not send.
func (f *flow) sentSoFar() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// rate sends for some time and returns how many records each good reader got in a second.
func (f *flow) rate(ctx context.Context, lasting time.Duration) float64 {
	f.t.Helper()
	before, began := f.sent, time.Now()
	for time.Since(began) < lasting {
		f.step(ctx)
	}
	f.answered(ctx, len(f.unsure))
	f.waitFor(f.sent)
	return float64(f.sent-before) / time.Since(began).Seconds()
}
