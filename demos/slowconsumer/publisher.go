package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/wire"
)

// publisher sends numbered records at a fixed rate, in acknowledged batches of which many are under way at once. When the broker
// makes it wait it waits, and does not make up for it later.
type publisher struct {
	client *client.Client
	o      options
	sent   atomic.Uint64 // records handed to the client; the number of the next one
	acked  atomic.Uint64 // records whose acknowledgement came
	waited atomic.Int64  // nanoseconds in which the broker held it
	since  atomic.Int64  // when it began to wait, in Unix nanoseconds; 0: it does not
}

// held is how long the broker has held the publisher, what lasts now included.
func (p *publisher) held(now time.Time) time.Duration {
	d := time.Duration(p.waited.Load())
	if since := p.since.Load(); since != 0 {
		d += max(0, now.Sub(time.Unix(0, since)))
	}
	return d
}

// full reports whether as much is under way as there may be: another publish waits until the broker has answered one. A call that
// takes long otherwise is the machine's doing.
func (p *publisher) full() bool {
	batch := p.o.batch * (wire.PayloadOverhead + p.o.payload)
	most := p.o.batch * min(wire.PublishWindow, max(1, client.DefaultPublishInflightBytes/batch))
	return p.sent.Load()-p.acked.Load() >= uint64(most)
}

// tick is how often the publisher looks what is due.
const tick = time.Millisecond

// underWay is more batches than the client ever has without an answer: the broker's window of a stream is 256.
const underWay = 512

// publish sends until stop is closed, and returns once everything was acknowledged. A refusal is an error: the demo stays far
// below what the broker refuses.
func (p *publisher) publish(ctx context.Context, stop <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pending := make(chan *client.PendingPublish, underWay)
	acked := make(chan error, 1)
	go func() {
		err := p.awaitAll(ctx, pending)
		cancel(err) // or the sender would wait for room that nobody makes
		acked <- err
	}()
	err := p.send(ctx, stop, pending)
	close(pending)
	if ackErr := <-acked; ackErr != nil {
		return ackErr
	}
	return err
}

func (p *publisher) awaitAll(ctx context.Context, pending <-chan *client.PendingPublish) error {
	for x := range pending {
		if _, err := x.Wait(ctx); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		p.acked.Add(uint64(p.o.batch))
	}
	return nil
}

func (p *publisher) send(ctx context.Context, stop <-chan struct{}, pending chan<- *client.PendingPublish) error {
	due := newSchedule(time.Now(), p.o.rate, p.o.batch)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-stop:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for range due.batches(time.Now()) {
			called := time.Now()
			if p.full() {
				p.since.Store(called.UnixNano())
			}
			x, err := p.client.PublishBatchAsync(ctx, local.Namespace, streamName, p.records(), client.WithAck(client.AckBatch))
			if p.since.Swap(0) != 0 {
				held := time.Since(called)
				p.waited.Add(int64(held))
				due.forget(held)
			}
			if err != nil {
				return fmt.Errorf("publish: %w", err)
			}
			select {
			case pending <- x: // there is always room, see underWay
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// records makes the next batch.
func (p *publisher) records() [][]byte {
	batch := make([][]byte, p.o.batch)
	for i := range batch {
		batch[i] = make([]byte, p.o.payload)
		putNumber(batch[i], p.sent.Add(1)-1)
	}
	return batch
}

// schedule says how many batches are due.
type schedule struct {
	begin time.Time
	every time.Duration // between two batches
	done  int64         // batches since begin
}

// burstMost is how far a sender may be behind and still make up for it: longer than a busy machine stops a process, so that
// what is measured is the broker and not the machine.
const burstMost = time.Second

func newSchedule(now time.Time, rate, batch int) *schedule {
	return &schedule{begin: now, every: time.Second * time.Duration(batch) / time.Duration(rate)}
}

// forget takes time off the schedule in which the sender was held: it must not come back with a flood.
func (s *schedule) forget(held time.Duration) { s.begin = s.begin.Add(held) }

// batches is how many became due since the last call. What is older than burstMost is forgotten.
func (s *schedule) batches(now time.Time) int64 {
	total := int64(now.Sub(s.begin) / s.every)
	if late := total - s.done; late > max(1, int64(burstMost/s.every)) {
		s.done = total - 1
	}
	due := max(0, total-s.done)
	s.done = max(s.done, total)
	return due
}
