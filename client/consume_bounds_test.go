package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func TestWhatIsInHandIsBoundedInRecords(t *testing.T) {
	noLeaks(t)
	const shards = 5
	for _, most := range []int{2, 12} { // fewer than shards, and more
		b := queue(t, shards, 20)
		release := make(chan struct{})
		var seen tally
		k := consume(t, connect(t, b), func(_ context.Context, m Message) error { <-release; seen.add(m); return nil }, ConsumeOptions{Concurrency: 2, MaxInHand: most})
		bound := max(most, shards)
		until(t, "full hands", func() bool { return int(k.Stats().Received) == bound })
		held := 0
		for shard := range uint32(shards) {
			held += len(b.Group("ns/s", shard, "g").Held)
		}
		if s := k.Stats(); s.InHand != bound || held != bound {
			t.Errorf("%d in hand, %d claimed, the bound is %d", s.InHand, held, bound)
		}
		close(release)
		until(t, "the end of the queue", func() bool { return drained(b, shards) })
		stop(t, k)
		seen.wantEach(t, 100, 1)
	}
}

func TestWhatIsInHandIsBoundedInBytes(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 0)
	for range 10 {
		b.Append("ns/s", 0, testbroker.Region(strings.Repeat("x", 1000)))
	}
	release := make(chan struct{})
	k := consume(t, connect(t, b), func(context.Context, Message) error { <-release; return nil }, ConsumeOptions{Concurrency: 8, MaxInHand: 8, MaxInHandBytes: 2000})
	until(t, "full hands", func() bool { return k.Stats().Received == 4 }) // one poll, past the bound
	if s := k.Stats(); s.InHandBytes > 4*(1000+recordBytes) || s.InHand != 4 {
		t.Fatalf("%+v", s)
	}
	close(release)
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
}

func TestBrokerThatDoesNotWaitIsNotAskedAllTheTime(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 0, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			m, ok := f.Message().(*wire.GroupPoll)
			if ok {
				s.Send(&wire.GroupRecords{RequestID: m.RequestID})
			}
			return ok
		}
	})
	paused := make(chan time.Duration)
	c := connectWith(t, b, func(c *Client) {
		c.now = newClock().now // no time passes until the answers
		c.jitter = func(d time.Duration) time.Duration { return d }
		c.sleep = func(ctx context.Context, d time.Duration) error {
			select {
			case paused <- d:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	k := consume(t, c, func(context.Context, Message) error { return nil }, ConsumeOptions{})
	for i, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		if d := await(t, "pause", paused); d != want {
			t.Errorf("pause %d is %v, want %v", i, d, want)
		}
	}
	stop(t, k)
}

func TestOneWriteOfSettlementsIsBoundedInRecordsAndBytes(t *testing.T) {
	k := newConsumer(&Client{closing: context.Background(), now: time.Now}, "op", nil, ConsumeOptions{}, context.Background())
	s := &consumedShard{consumer: k, wake: make(chan struct{}, 1)}
	for i := range 3 * settleBatchRecords {
		d := &delivery{shard: s, m: Message{Offset: id.Offset(i)}, state: settling}
		s.send(&settlement{d: d, kind: ackIt})
		s.send(&settlement{d: d, kind: extendIt}) // of no use any more
	}
	batch := s.fill(nil)
	if len(batch) != settleBatchRecords || s.queue.len() == 0 {
		t.Fatalf("%d in one write, %d left", len(batch), s.queue.len())
	}
	for i, one := range s.fill(batch[3:]) { // what had no answer comes first
		if one.kind != ackIt || one.d.m.Offset != id.Offset(i+3) {
			t.Fatalf("place %d has %d of offset %s", i, one.kind, one.d.m.Offset)
		}
	}
}

func TestConsumersThatCannotWorkAreRefused(t *testing.T) {
	b := queue(t, 1, 0)
	c := connect(t, b)
	handler := func(context.Context, Message) error { return nil }
	for i, o := range []ConsumeOptions{{Concurrency: -1}, {MaxInHand: -1}, {MaxInHandBytes: -1}, {Visibility: -1}, {PollWait: -1}, {StopTimeout: -1},
		{Concurrency: inHandMax + 1}, {MaxInHand: inHandMax + 1}, {Visibility: time.Millisecond}, {Visibility: ConsumeVisibilityMax + 1},
		{PollWait: groupTimeMax + 1}, {Member: strings.Repeat("m", 129)}} {
		if _, err := c.Consume(within(t), "ns", "s", "g", handler, o); !isArgument(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
	_, noHandler := c.Consume(within(t), "ns", "s", "g", nil, ConsumeOptions{})
	_, noGroup := c.Consume(within(t), "ns", "s", "", handler, ConsumeOptions{})
	_, noStream := c.Consume(within(t), "ns", "nosuch", "g", handler, ConsumeOptions{})
	if !isArgument(noHandler) || !isArgument(noGroup) || !errors.Is(noStream, ErrNotFound) {
		t.Errorf("%v, %v, %v", noHandler, noGroup, noStream)
	}
}

func TestConsumerLeavesStreamsForOthers(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": consumeShardsMax + 1}, Durable: true})
	_, err := connect(t, b).Consume(within(t), "ns", "s", "g", func(context.Context, Message) error { return nil }, ConsumeOptions{})
	wantAs[*LimitError](t, err)
}
