package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// feeding is a broker whose subscribers get the numbers of a test, one batch each; live is the offset at which they are live.
// flood sends and returns when the broker has handed all to QUIC.
func feeding(t *testing.T, durable bool, live id.Offset) (b *testbroker.Broker, flood func(from, to int)) {
	opened := make(chan *testbroker.Events, 10)
	b = scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		e := s.OpenEvents()
		accepted := &wire.Subscribed{SubscriptionID: e.ID}
		if durable {
			accepted.StartOffset, accepted.LiveOffset = wire.Some(id.Offset(0)), wire.Some(live)
		}
		s.Send(accepted)
		opened <- e
	})
	var e *testbroker.Events
	return b, func(from, to int) {
		if e == nil {
			e = await(t, "subscription", opened)
		}
		for i := from; i < to; i++ {
			batch := wire.EventBatch{Count: 1, Region: testbroker.Region(fmt.Sprint(i)), HasOffset: durable, BaseOffset: id.Offset(i)}
			flags := wire.FlagEventBatchShared
			if durable {
				flags |= wire.FlagEventOffsets
			}
			e.Batch(flags, batch)
		}
	}
}

// untilDropped waits until so many events were dropped.
func untilDropped(t *testing.T, drops <-chan Drop, n int) {
	t.Helper()
	for n > 0 {
		n -= await(t, "drop", drops).Events
	}
	if n < 0 {
		t.Fatalf("%d events too many were dropped", -n)
	}
}

func hearDrops(into chan<- Drop) change {
	return func(o *Options) { o.Hooks.Dropped = func(d Drop) { into <- d } }
}

// The arriving batch is the one lost; what is queued is delivered.
func TestFullQueueDropsWhatArrivesCountsItAndMarksTheGap(t *testing.T) {
	noLeaks(t)
	drops := make(chan Drop, 100)
	b, flood := feeding(t, false, 0)
	c := connect(t, b, hearDrops(drops))
	s := subscribe(t, c, SubscribeOptions{Policy: QueueDropNew, ClientQueue: 4})
	flood(0, 10)
	untilDropped(t, drops, 6)
	for i := range 4 {
		if e := wantPayload(t, s, fmt.Sprint(i)); e.Gap {
			t.Fatalf("event %d has a gap before it", i)
		}
	}
	flood(10, 12)
	if e := wantPayload(t, s, "10"); !e.Gap {
		t.Fatal("the gap is not told")
	}
	if e := wantPayload(t, s, "11"); e.Gap {
		t.Fatal("the gap is told twice")
	}
	if s.Dropped() != 6 || c.Stats().Dropped != 6 {
		t.Fatalf("%d and %d events are counted", s.Dropped(), c.Stats().Dropped)
	}
}

func TestHistoryWaitsForTheReaderAndIsNeverDropped(t *testing.T) {
	noLeaks(t)
	drops := make(chan Drop, 100)
	b, flood := feeding(t, true, 50)
	s := subscribe(t, connect(t, b, hearDrops(drops)), SubscribeOptions{Policy: QueueDropNew, ClientQueue: 4})
	flood(0, 50)
	wantOffsets(t, s, 0, 50)
	if len(drops) != 0 {
		t.Fatal("history was dropped")
	}
}

func TestDropOnAStreamWithOffsetsIsALagWithoutResumption(t *testing.T) {
	noLeaks(t)
	drops := make(chan Drop, 100)
	b, flood := feeding(t, true, 0)
	s := subscribe(t, connect(t, b, hearDrops(drops)), SubscribeOptions{Policy: QueueDropNew, ClientQueue: 4, Resume: ResumeNever})
	flood(0, 5)
	untilDropped(t, drops, 1)
	wantOffsets(t, s, 0, 4)
	_, err := s.Next(within(t))
	if e := wantAs[*SubscriptionLaggedError](t, err); e.ResumeFrom != 4 || !e.Local {
		t.Fatalf("%+v", e)
	}
}

func TestDropOnAStreamWithOffsetsIsMadeUpForByResumption(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, BatchSize: 1})
	drops := make(chan Drop, 1000)
	c := connect(t, b, hearDrops(drops))
	s := subscribe(t, c, SubscribeOptions{Policy: QueueDropNew, ClientQueue: 4})
	appendNumbers(b, 0, 100)
	await(t, "drop", drops)
	wantOffsets(t, s, 0, 100)
	if c.Stats().Resumes == 0 || s.Dropped() == 0 {
		t.Fatalf("%d resumptions, %d dropped", c.Stats().Resumes, s.Dropped())
	}
}

func TestQueueIsBoundedInBytesToo(t *testing.T) {
	noLeaks(t)
	drops := make(chan Drop, 100)
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		opened <- e
	})
	s := subscribe(t, connect(t, b, hearDrops(drops)), SubscribeOptions{Policy: QueueDropNew, ClientQueue: 1000})
	e := await(t, "subscription", opened)
	large := strings.Repeat("x", 3<<20)
	for range 3 { // 9 MiB into 8 MiB
		e.Batch(wire.FlagEventBatchShared, wire.EventBatch{Count: 1, Region: testbroker.Region(large)})
	}
	untilDropped(t, drops, 1)
	for range 2 {
		wantPayload(t, s, large)
	}
	whole := strings.Repeat("y", 10<<20) // over the bound: alone it is taken
	e.Batch(wire.FlagEventBatchShared, wire.EventBatch{Count: 1, Region: testbroker.Region(whole)})
	wantPayload(t, s, whole)
}

func TestStalledReaderWithADroppingQueueHoldsNobodyElseUp(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, BatchSize: 1})
	c := connect(t, b, func(o *Options) { // a connection that a few unread events would fill
		o.EventStreamRecvWindow, o.EventConnRecvWindow = 64<<10, 64<<10
		o.CacheStreamRecvWindow, o.CacheConnRecvWindow = 64<<10, 64<<10
	})
	s := subscribe(t, c, SubscribeOptions{Policy: QueueDropNew, ClientQueue: 2})
	filler := make([]byte, 16<<10)
	for range 40 {
		if _, err := c.Publish(within(t), "ns", "s", filler); err != nil { // its answer shares the connection
			t.Fatal(err)
		}
	}
	for s.Dropped() < 38 && t.Context().Err() == nil {
		if _, err := c.Publish(within(t), "ns", "s", filler); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCanceledNextOfAQueueLosesNothingAndItsEndComesLast(t *testing.T) {
	noLeaks(t)
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		opened <- e
	})
	s := subscribe(t, connect(t, b), SubscribeOptions{Policy: QueueDropNew})
	e := await(t, "subscription", opened)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range 100 {
		e.Batch(wire.FlagEventBatchShared, wire.EventBatch{Count: 1, Region: testbroker.Region(fmt.Sprint(i))})
		_, err := s.Next(canceled)
		wantIs(t, err, context.Canceled)
		if i%2 == 1 {
			wantPayload(t, s, fmt.Sprint(i-1))
			wantPayload(t, s, fmt.Sprint(i))
		}
	}
	e.Finish()
	if _, err := s.Next(within(t)); err != io.EOF {
		t.Fatal(err)
	}
}

func TestCloseEndsAFullQueue(t *testing.T) {
	noLeaks(t)
	var closed atomic.Bool
	b, flood := feeding(t, true, 1000)
	s := subscribe(t, connect(t, b), SubscribeOptions{Policy: QueueDropNew, ClientQueue: 2})
	flood(0, 20) // history: the filler waits for room
	closed.Store(true)
	s.Close()
	_, err := s.Next(within(t))
	if !errors.Is(err, ErrClosed) || !closed.Load() {
		t.Fatal(err)
	}
}

func TestUnusableSubscribeOptionsAreNamed(t *testing.T) {
	c := connect(t, testbroker.New(t, testbroker.Options{}))
	for argument, o := range map[string]SubscribeOptions{"Policy": {Policy: 9}, "ClientQueue": {ClientQueue: -1}, "Resume": {Resume: 9}} {
		_, err := c.Subscribe(within(t), "ns", "s", o)
		if e := wantAs[*ArgumentError](t, err); e.Argument != argument {
			t.Errorf("%s: %v", argument, err)
		}
	}
}
