package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// follower reads a stream and checks that offsets are without gap or repetition.
func wantOffsets(t *testing.T, s interface {
	Next(context.Context) (Event, error)
}, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		e, err := s.Next(within(t))
		if err != nil || !e.HasOffset || int(e.Offset) != i || string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("event %q at %v, %v, want %d", e.Payload, e.Offset, err, i)
		}
	}
}

// dropAll has the broker close all connections, and waits until the client has seen it.
func dropAll(t *testing.T, b *testbroker.Broker, c *Client) {
	t.Helper()
	links := c.life.open()
	b.Drop(transport.CloseOverload)
	for _, l := range links {
		await(t, "end of the connection", l.conn.Context().Done())
	}
}

// wantResumes looks at the number of resumptions after a test has read what was written behind a loss: without one before it nothing of that
// comes. What was written before may all have arrived, and a subscription that is not read on resumes nothing.
func wantResumes(t *testing.T, c *Client, n int) {
	t.Helper()
	if now := c.Stats().Resumes; now != uint64(n) {
		t.Fatalf("%d resumptions, want %d", now, n)
	}
}

func appendNumbers(b *testbroker.Broker, from, to int) {
	for i := from; i < to; i++ {
		b.Append("ns/s", 0, testbroker.Region(fmt.Sprint(i)))
	}
}

// matrix K7
func TestSubscriptionWithOffsetsGoesOnAfterEachLossWithoutGapOrRepetition(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, BatchSize: 7})
	c := connect(t, b)
	s := subscribe(t, c, SubscribeOptions{From: Earliest()})
	for round := range 5 {
		appendNumbers(b, round*100, round*100+80)
		wantOffsets(t, s, round*100, round*100+50) // in the middle of a batch, and with more on the way
		dropAll(t, b, c)
		appendNumbers(b, round*100+80, round*100+100)
		wantOffsets(t, s, round*100+50, round*100+100)
		wantResumes(t, c, round+1)
	}
	if at, ok := s.Position(); !ok || at != 500 {
		t.Fatalf("position %v, %v", at, ok)
	}
}

func TestSubscriptionThatReceivedNothingGoesOnWhereItWasToStart(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	appendNumbers(b, 0, 10)
	c := connect(t, b)
	s := subscribe(t, c, SubscribeOptions{}) // latest is offset 10
	dropAll(t, b, c)
	appendNumbers(b, 10, 20) // while nobody is subscribed
	wantOffsets(t, s, 10, 20)
}

func TestInMemoryStreamEndsWithItsLossUnlessTheTailWillDo(t *testing.T) {
	noLeaks(t)
	for resume, goesOn := range map[Resume]bool{ResumeDefault: false, ResumeExact: false, ResumeNever: false, ResumeTail: true} {
		b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
		c := connect(t, b)
		s := subscribe(t, c, SubscribeOptions{Resume: resume})
		b.Append("ns/s", 0, testbroker.Region("before"))
		if e := wantPayload(t, s, "before"); e.Gap {
			t.Fatal("a gap before the first event")
		}
		dropAll(t, b, c)
		if !goesOn {
			_, err := s.Next(within(t))
			wantAs[*SubscriptionLostError](t, err)
			wantIs(t, err, ErrConnectionLost)
			continue
		}
		next := make(chan Event, 2)
		go func() {
			for range 2 {
				e, err := s.Next(within(t))
				if err != nil {
					t.Error(err)
				}
				next <- e
			}
		}()
		until(t, "resumption", func() bool { return c.Stats().Resumes > 0 }) // what is published before it is missing
		b.Append("ns/s", 0, testbroker.Region("after"))
		b.Append("ns/s", 0, testbroker.Region("later"))
		if e := await(t, "event", next); string(e.Payload) != "after" || !e.Gap {
			t.Fatalf("%q, gap %v", e.Payload, e.Gap)
		}
		if e := await(t, "event", next); string(e.Payload) != "later" || e.Gap {
			t.Fatalf("%q, gap %v", e.Payload, e.Gap)
		}
	}
}

// ending is a broker with a durable log of 20 records that ends the first subscription after a few of them, in a way of the
// test's own.
func ending(t *testing.T, end func(s *testbroker.Stream, e *testbroker.Events)) *testbroker.Broker {
	var subscribes atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.Subscribe); !ok || subscribes.Add(1) > 1 {
			return false
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID, StartOffset: wire.Some(id.Offset(0)), LiveOffset: wire.Some(id.Offset(20))})
		for i := range 3 {
			e.Batch(wire.FlagEventBatchShared|wire.FlagEventOffsets, wire.EventBatch{
				Count: 1, HasOffset: true, BaseOffset: id.Offset(i), Region: testbroker.Region(fmt.Sprint(i))})
		}
		end(s, e)
		return true
	}})
	appendNumbers(b, 0, 20)
	return b
}

func TestLagIsResumedAfterTheLastEventReceived(t *testing.T) {
	noLeaks(t)
	b := ending(t, func(_ *testbroker.Stream, e *testbroker.Events) {
		e.Send(&wire.SubscriptionLagged{SubscriptionID: e.ID, ResumeFrom: 9}) // later than what was received
		e.Finish()
	})
	wantOffsets(t, subscribe(t, connect(t, b), SubscribeOptions{From: Earliest()}), 0, 20)
}

func TestLagOfAReaderThatReceivedNothingIsResumedWhereTheBrokerSays(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.Subscribe); !ok || subscribes.Add(1) > 1 {
			return false
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID}) // without offsets, as old brokers do
		e.Send(&wire.SubscriptionLagged{SubscriptionID: e.ID, ResumeFrom: 5})
		e.Finish()
		return true
	}})
	appendNumbers(b, 0, 10)
	s := subscribe(t, connect(t, b), SubscribeOptions{From: Latest(), Shard: 0})
	wantOffsets(t, s, 5, 10)
	if s.Shard() != 0 {
		t.Fatalf("shard %d", s.Shard())
	}
}

func TestMoveIsFollowedToTheBrokerItNames(t *testing.T) {
	noLeaks(t)
	var other *testbroker.Broker
	b := ending(t, func(_ *testbroker.Stream, e *testbroker.Events) {
		e.Send(&wire.ShardMoved{SubscriptionID: e.ID, ResumeFrom: wire.Some(id.Offset(5)), NodeID: wire.Some("b2"), Addr: wire.Some(other.Addr()), Generation: 4})
		e.Finish()
	})
	other = testbroker.New(t, testbroker.Options{Share: b})
	s := subscribe(t, connect(t, b), SubscribeOptions{From: Earliest()})
	wantOffsets(t, s, 0, 3)
	wantOffsets(t, s, 5, 20) // the old owner said that 3 and 4 hold no event
	if other.Connections() != 1 {
		t.Fatalf("%d connections to the new owner", other.Connections())
	}
}

func TestMoveToABrokerThatCannotServeYetIsTriedAgain(t *testing.T) {
	noLeaks(t)
	var other *testbroker.Broker
	var tries atomic.Int64
	b := ending(t, func(_ *testbroker.Stream, e *testbroker.Events) {
		e.Send(&wire.ShardMoved{SubscriptionID: e.ID, NodeID: wire.Some("b2"), Addr: wire.Some(other.Addr()), Generation: 4})
		e.Finish()
	})
	other = testbroker.New(t, testbroker.Options{Share: b, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.Subscribe); ok && tries.Add(1) == 1 {
			s.Refuse(wire.Refuse(wire.CodeShardUnavailable, "opening").WithReason(wire.ReasonNotReady, 0))
			return true
		}
		return false
	}})
	wantOffsets(t, subscribe(t, connect(t, b), SubscribeOptions{From: Earliest()}), 0, 20) // the entry serves it meanwhile
}

func TestResumptionThatComesTooLateIsACursorError(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, m *wire.Subscribe) {
		if subscribes.Add(1) > 1 {
			s.Send(&wire.SubscribeCursorError{Reason: wire.CursorTooOld, Requested: m.Start.V.Offset, Available: 1000})
			return
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID, StartOffset: wire.Some(id.Offset(7))})
		opened <- e
	})
	s := subscribe(t, connect(t, b), SubscribeOptions{})
	await(t, "subscription", opened).Reset()
	_, err := s.Next(within(t))
	if e := wantAs[*CursorError](t, err); e.Requested != 7 || e.Available != 1000 {
		t.Fatalf("%+v", e)
	}
}

func TestResumptionEndsWithThePatience(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		if subscribes.Add(1) > 1 {
			s.Refuse(wire.Refuse(wire.CodeShardUnavailable, "nobody"))
			return
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID, StartOffset: wire.Some(id.Offset(0))})
		e.Batch(wire.FlagEventBatchShared|wire.FlagEventOffsets, wire.EventBatch{Count: 1, HasOffset: true, Region: testbroker.Region("x")})
		opened <- e
	})
	clock := newClock()
	c := connectWith(t, b, func(c *Client) {
		c.now, c.sleep, c.jitter = clock.now, clock.sleep, func(d time.Duration) time.Duration { return d }
	})
	s := subscribe(t, c, SubscribeOptions{})
	wantPayload(t, s, "x")
	await(t, "subscription", opened).Reset()
	began := clock.now()
	_, err := s.Next(within(t))
	wantAs[*SubscriptionLostError](t, err)
	wantAs[*GaveUpError](t, err)
	wantIs(t, err, ErrUnavailable)
	if took := clock.now().Sub(began); took < resumePatience-longestPause || took > resumePatience {
		t.Fatalf("it gave up after %v", took)
	}
	if _, again := s.Next(within(t)); again != err {
		t.Fatalf("a second call returned %v", again)
	}
}

func TestFatalRefusalEndsTheResumption(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		if subscribes.Add(1) > 1 {
			s.Refuse(wire.Refuse(wire.CodeForbidden, "no longer"))
			return
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID, StartOffset: wire.Some(id.Offset(0))})
		opened <- e
	})
	s := subscribe(t, connect(t, b), SubscribeOptions{})
	await(t, "subscription", opened).Reset()
	_, err := s.Next(within(t))
	wantAs[*SubscriptionLostError](t, err)
	wantIs(t, err, ErrForbidden, ErrConnectionLost)
	if n := subscribes.Load(); n != 2 {
		t.Fatalf("%d subscribes", n)
	}
}

func TestEventStreamsThatBringNothingAreGivenUp(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		subscribes.Add(1)
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID, StartOffset: wire.Some(id.Offset(0))})
		e.Send(wire.ErrorOf(wire.Refuse(wire.CodeDraining, "going away"), s.Grant))
	})
	clock := newClock()
	c := connectWith(t, b, func(c *Client) {
		c.now, c.sleep, c.jitter = clock.now, clock.sleep, func(d time.Duration) time.Duration { return d }
	})
	_, err := subscribe(t, c, SubscribeOptions{}).Next(within(t))
	wantIs(t, err, ErrDraining)
	if n := subscribes.Load(); n != DefaultAttempts {
		t.Fatalf("%d subscribes", n)
	}
	want := []time.Duration{200, 400, 800, 1600}
	for i, p := range clock.slept() {
		if p != want[i]*time.Millisecond {
			t.Fatalf("pauses %v", clock.slept())
		}
	}
}

func TestResumptionGoesOnAcrossImpatientCalls(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		_, ok := f.Message().(*wire.Subscribe)
		return ok && subscribes.Add(1) == 2 && func() bool { // slow: longer than any of the calls below is patient
			time.AfterFunc(50*time.Millisecond, func() { s.Refuse(wire.Refuse(wire.CodeShardUnavailable, "slowly")) })
			return true
		}()
	}})
	appendNumbers(b, 0, 2)
	s := subscribe(t, connect(t, b), SubscribeOptions{From: Earliest()})
	wantOffsets(t, s, 0, 1)
	b.Drop(transport.CloseOverload)
	deadline := within(t)
	for want := 1; want < 3; {
		ctx, cancel := context.WithTimeout(deadline, time.Millisecond)
		e, err := s.Next(ctx)
		cancel()
		switch {
		case err == nil && int(e.Offset) == want:
			want++
			appendNumbers(b, 2, 3)
		case err == nil, !errors.Is(err, context.DeadlineExceeded), deadline.Err() != nil:
			t.Fatalf("%+v, %v, want offset %d", e, err, want)
		}
	}
	if n := subscribes.Load(); n != 3 {
		t.Fatalf("%d subscribes: impatient calls began resumptions of their own", n)
	}
}

func TestCloseWhileAResumptionIsUnderWayLeavesNothingBehind(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	again := make(chan struct{}, 1)
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		if subscribes.Add(1) > 1 {
			again <- struct{}{}
			<-s.Conn.Context().Done() // never answered
			return
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID, StartOffset: wire.Some(id.Offset(0))})
		opened <- e
	})
	s := subscribe(t, connect(t, b), SubscribeOptions{})
	await(t, "subscription", opened).Reset()
	ended := make(chan error, 1)
	go func() { _, err := s.Next(within(t)); ended <- err }()
	await(t, "second subscribe", again)
	s.Close()
	wantIs(t, await(t, "end of Next", ended), ErrClosed)
	_, err := s.Next(within(t))
	wantIs(t, err, ErrClosed)
}

func TestClientThatClosesEndsAResumption(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	c := connect(t, b, func(o *Options) { o.DialTimeout = time.Minute })
	s := subscribe(t, c, SubscribeOptions{})
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := s.Next(within(t)); ended <- err }()
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	wantIs(t, await(t, "end of Next", ended), ErrClosed)
}

func TestOffsetThatComesTwiceIsAProtocolError(t *testing.T) {
	b := ending(t, func(_ *testbroker.Stream, e *testbroker.Events) {
		e.Batch(wire.FlagEventBatchShared|wire.FlagEventOffsets, wire.EventBatch{Count: 1, HasOffset: true, BaseOffset: 2, Region: testbroker.Region("2")})
	})
	s := subscribe(t, connect(t, b), SubscribeOptions{From: Earliest()})
	wantOffsets(t, s, 0, 3)
	_, err := s.Next(within(t))
	wantAs[*ProtocolError](t, err)
}

func TestEndTheBrokerChoseIsNoLossOfASingleShard(t *testing.T) {
	b := ending(t, func(_ *testbroker.Stream, e *testbroker.Events) { e.Finish() })
	s := subscribe(t, connect(t, b), SubscribeOptions{From: Earliest()})
	wantOffsets(t, s, 0, 3)
	if _, err := s.Next(within(t)); err != io.EOF {
		t.Fatal(err)
	}
}

func TestQueueCapacityThatWasGrantedIsTold(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Features: testbroker.DefaultFeatures | wire.FeatureSubscribeQueue})
	c := connect(t, b, func(o *Options) { o.BrokerSubQueueCapacity = 7 })
	for asked, want := range map[uint32]uint32{0: 7, 9: 9, 1 << 20: wire.SubscriberQueueCapacityMax} {
		s := subscribe(t, c, SubscribeOptions{QueueCapacity: asked})
		if got, ok := s.QueueCapacity(); !ok || got != want {
			t.Errorf("asked for %d: granted %d, %v", asked, got, ok)
		}
	}
}
