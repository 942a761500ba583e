package streams

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage"
)

// lossless are limits with which nothing is ever lost to a slow reader; its publishers wait instead.
func lossless() *node.Limits {
	l := node.DefaultLimits()
	l.Overflow, l.Delivery.Capacity, l.IngressWait = storage.Block, 16, true
	return &l
}

// With the policy block a reader that stands still stops the publisher, and nobody else: what was published reaches the others at once. When
// it goes on, so does the publisher, and nobody has lost anything.
//
// mission 219
//
// matrix K3
func TestUnderThePolicyBlockAStalledSubscriberStopsThePublisherAndNothingIsLost(t *testing.T) {
	t.Parallel()
	const batch, batches = 4, 400
	ctx := patient(t)
	b := start(t, testkit.Setup{Limits: lossless()})
	f := newFlow(t, b.Client(t), orders, batch, 256, 8)
	good := f.reads(subscribe(t, b.Client(t), orders, client.SubscribeOptions{}))
	lazy := f.neglect(b.Client(t, narrow), client.SubscribeOptions{})
	type stop struct {
		got, sent uint64
		all       []uint64
		err       error
	}
	stopped := make(chan stop, 1)
	go func() {
		var s stop
		s.got, s.sent = f.standstill(good)
		s.all, s.err = upTo(ctx, lazy.sub, batch*batches)
		stopped <- s
	}()
	f.send(ctx, batch*batches)
	s := <-stopped
	t.Logf("the publisher stood still after %d records of %d", s.sent, batch*batches)
	if s.sent >= batch*batches {
		t.Error("the publisher never waited for the stalled reader")
	}
	if s.got != s.sent {
		t.Errorf("the good reader had %d of %d records when the publisher stood still", s.got, s.sent)
	}
	if s.err != nil {
		t.Fatalf("the stalled reader: %v", s.err)
	}
	complete(t, "the stalled reader", s.all, s.all)
	if lost := b.Metric(dropped); len(s.all) != batch*batches || lost != 0 {
		t.Errorf("the stalled reader got %d records of %d, and %v were counted as lost", len(s.all), batch*batches, lost)
	}
}

// With all settings on lossless, records that nobody acknowledges are not lost either: they wait on their way in while a reader stands still, until
// the client itself has to wait, and all readers get all of them.
func TestWithAllSettingsLosslessUnacknowledgedRecordsAreNotLost(t *testing.T) {
	t.Parallel()
	const size = 4 << 10
	ctx := patient(t)
	limits := lossless()
	b := start(t, testkit.Setup{Limits: limits})
	n := testkit.Size("unacknowledged_mib") << 20 / size
	good := subscribe(t, b.Client(t), orders, client.SubscribeOptions{})
	lazy := subscribe(t, b.Client(t, narrow), orders, client.SubscribeOptions{})
	publisher := b.Client(t)
	var sent atomic.Uint64
	published := make(chan error, 1)
	go func() {
		for i := range uint64(n) {
			if _, err := publisher.PublishAsync(ctx, namespace, orders, record(i, size), client.WithAck(client.AckNone)); err != nil {
				published <- err
				return
			}
			sent.Add(1)
		}
		published <- publisher.Close(ctx)
	}()
	type taken struct {
		all []uint64
		err error
	}
	reads := func(s *client.Subscription) <-chan taken {
		out := make(chan taken, 1)
		go func() {
			all, err := upTo(ctx, s, n)
			out <- taken{all, err}
		}()
		return out
	}
	goodly := reads(good)
	stood := stands(func() uint64 { return sent.Load() })
	lazily := reads(lazy)
	if err := <-published; err != nil {
		t.Fatalf("publish: %v", err)
	}
	t.Logf("the publisher stood still after %d records of %d", stood, n)
	if stood >= uint64(n) {
		t.Error("the publisher never had to wait")
	}
	for _, r := range []struct {
		name string
		came <-chan taken
	}{{"the good reader", goodly}, {"the stalled reader", lazily}} {
		got := <-r.came
		if got.err != nil || len(got.all) != n {
			t.Errorf("%s got %d records of %d: %v", r.name, len(got.all), n, got.err)
		}
		complete(t, r.name, got.all, got.all)
	}
}

// A stalled reader that goes away lets the publisher go on that it has stopped.
func TestUnderThePolicyBlockAStalledSubscriberThatLeavesReleasesThePublisher(t *testing.T) {
	t.Parallel()
	const batch, batches = 4, 400
	ctx := patient(t)
	b := start(t, testkit.Setup{Limits: lossless()})
	f := newFlow(t, b.Client(t), orders, batch, 256, 8)
	good := f.reads(subscribe(t, b.Client(t), orders, client.SubscribeOptions{}))
	lazy := f.neglect(b.Client(t, narrow), client.SubscribeOptions{})
	left := make(chan uint64, 1)
	go func() {
		_, sent := f.standstill(good)
		lazy.sub.Close()
		left <- sent
	}()
	f.send(ctx, batch*batches)
	if sent := <-left; sent >= batch*batches {
		t.Error("the publisher never waited for the stalled reader")
	}
	if lost := b.Metric(dropped); lost != 0 {
		t.Errorf("%v records were counted as lost", lost)
	}
}

// standstill waits until a flow has sent nothing for a while and the reader has got all of it, and returns how many records it had sent and the
// reader got by then. A reader that does not get all of it is not waited for for ever.
func (f *flow) standstill(r *reader) (got, sent uint64) {
	for began := time.Now(); ; {
		sent, got = stands(f.sentSoFar), r.got.Load()
		if got == sent || time.Since(began) > patience {
			return got, sent
		}
	}
}

// stands waits until a number has grown and then stayed the same for a while, and returns it.
func stands(number func() uint64) (n uint64) {
	const quiet = 15 // looks
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for same := 0; same < quiet; {
		<-tick.C
		now := number()
		if now == n && now > 0 {
			same++
		} else {
			same = 0
		}
		n = now
	}
	return n
}

// upTo reads so many records.
func upTo(ctx context.Context, s *client.Subscription, n int) (all []uint64, err error) {
	for len(all) < n {
		e, err := s.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
		all = append(all, numberOf(e.Payload))
	}
	return all, nil
}
