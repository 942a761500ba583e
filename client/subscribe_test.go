package client

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// scripted makes a broker whose subscriptions are in the hands of the test.
func scripted(t *testing.T, accept func(s *testbroker.Stream, m *wire.Subscribe)) *testbroker.Broker {
	return testbroker.New(t, testbroker.Options{
		Streams: map[string]uint32{"ns/s": 2}, Caches: map[string]uint32{"ns/c": 1},
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			m, ok := f.Message().(*wire.Subscribe)
			if ok {
				accept(s, m)
			}
			return ok
		},
	})
}

func subscribe(t *testing.T, c *Client, o SubscribeOptions) *Subscription {
	t.Helper()
	s, err := c.Subscribe(within(t), "ns", "s", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func wantPayload(t *testing.T, s interface {
	Next(context.Context) (Event, error)
}, want string) Event {
	t.Helper()
	e, err := s.Next(within(t))
	if err != nil || string(e.Payload) != want {
		t.Fatalf("event %q, %v, want %q", e.Payload, err, want)
	}
	return e
}

func TestHelloMayComeBeforeOrAfterTheAcceptance(t *testing.T) {
	for _, helloFirst := range []bool{true, false} {
		b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
			e := s.OpenEventsSilently()
			accepted, hello := &wire.Subscribed{SubscriptionID: e.ID}, &wire.EventStreamHello{SubscriptionID: e.ID}
			if helloFirst {
				e.Send(hello)
				s.Send(accepted)
			} else {
				s.Send(accepted)
				e.Send(hello)
			}
			e.Batch(wire.FlagEventBatchShared, wire.EventBatch{Count: 1, Region: testbroker.Region("x")})
		})
		wantPayload(t, subscribe(t, connect(t, b), SubscribeOptions{}), "x")
	}
}

func TestStrayEventStreamsDoNotDisturbSubscriptions(t *testing.T) {
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		s.OpenEventsSilently().Raw([]byte("no frame at all"))
		s.OpenEventsSilently().Send(&wire.OK{})
		s.OpenEventsSilently().Batch(wire.FlagEventBatchShared, wire.EventBatch{})
		s.OpenEvents() // of nobody
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		e.Batch(wire.FlagEventBatchShared, wire.EventBatch{Count: 1, Region: testbroker.Region("x")})
	})
	wantPayload(t, subscribe(t, connect(t, b), SubscribeOptions{}), "x")
}

func TestAllEventLayoutsAreRead(t *testing.T) {
	full := wire.EventBatch{
		HasOffset: true, BaseOffset: 100, SkippedBefore: 3, Publisher: []byte("alice"), Timestamps: true, TimestampMicros: 1_760_000_000_000_000,
		Count: 2, Region: testbroker.Region("a", "bc"),
	}
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		e := s.OpenEvents()
		full.SubscriptionID = e.ID
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		e.Batch(wire.FlagEventBatchShared, full)
		e.Batch(wire.FlagEventBatch, full)
		e.Batch(wire.FlagEventBatchShared|wire.FlagEventOffsets|wire.FlagEventSkipped|wire.FlagEventPublisher|wire.FlagEventTimestamps, full)
		e.Send(&wire.EventMessage{TenantID: "t1", Namespace: "ns", Stream: "s", Record: testbroker.Region("json"), Offset: wire.Some(full.BaseOffset.Add(2))})
		e.Send(&wire.EventBatchMessage{TenantID: "t1", Namespace: "ns", Stream: "s", Records: testbroker.Region("j1", "j2"), Count: 2})
		e.Finish()
	})
	s := subscribe(t, connect(t, b, func(o *Options) { o.Publishers, o.Timestamps = true, true }), SubscribeOptions{})
	for range 2 {
		if e := wantPayload(t, s, "a"); e.HasOffset || e.SkippedBefore != 0 || e.Publisher != "" || !e.Time.IsZero() {
			t.Fatalf("plain event %+v", e)
		}
		wantPayload(t, s, "bc")
	}
	at := time.UnixMicro(1_760_000_000_000_000)
	if e := wantPayload(t, s, "a"); e.Offset != 100 || e.SkippedBefore != 3 || e.Publisher != "alice" || !e.Time.Equal(at) {
		t.Fatalf("full event %+v", e)
	}
	if e := wantPayload(t, s, "bc"); e.Offset != 101 || e.SkippedBefore != 0 || e.Publisher != "alice" || !e.Time.Equal(at) {
		t.Fatalf("second full event %+v", e)
	}
	if e := wantPayload(t, s, "json"); !e.HasOffset || e.Offset != 102 {
		t.Fatalf("JSON event %+v", e)
	}
	wantPayload(t, s, "j1")
	if e := wantPayload(t, s, "j2"); e.HasOffset {
		t.Fatalf("JSON batch event %+v", e)
	}
	for range 2 {
		if _, err := s.Next(within(t)); err != io.EOF {
			t.Fatalf("after the end: %v", err)
		}
	}
}

func TestEachEndOfASubscriptionHasItsOwnError(t *testing.T) {
	ends := []struct {
		name  string
		end   func(s *testbroker.Stream, e *testbroker.Events)
		check func(t *testing.T, err error)
	}{
		{"lagged", func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Send(&wire.SubscriptionLagged{SubscriptionID: e.ID, ResumeFrom: 9})
			e.Finish()
		}, func(t *testing.T, err error) {
			if l := wantAs[*SubscriptionLaggedError](t, err); l.ResumeFrom != 9 {
				t.Fatal(err)
			}
		}},
		{"moved", func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Send(&wire.ShardMoved{SubscriptionID: e.ID, NodeID: wire.Some("b2"), Addr: wire.Some("10.0.0.2:5000"), Generation: 4})
			e.Finish()
		}, func(t *testing.T, err error) {
			if m := wantAs[*ShardMovedError](t, err); m.Addr != "10.0.0.2:5000" || m.ResumeFrom.Set || m.Generation != 4 {
				t.Fatal(err)
			}
		}},
		{"refused", func(s *testbroker.Stream, e *testbroker.Events) {
			e.Send(wire.ErrorOf(wire.Refuse(wire.CodeStreamDeleted, "gone"), s.Grant))
		}, func(t *testing.T, err error) { wantIs(t, err, ErrNotFound) }},
		{"reset", func(_ *testbroker.Stream, e *testbroker.Events) { e.Reset() },
			func(t *testing.T, err error) { wantAs[*SubscriptionLostError](t, err) }},
		{"cut short", func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Raw(wire.AppendHeader(nil, wire.Header{Flags: wire.FlagEventBatchShared, Length: 100}))
			e.Finish()
		}, func(t *testing.T, err error) { wantIs(t, wantAs[*SubscriptionLostError](t, err), io.ErrUnexpectedEOF) }},
		{"connection", func(s *testbroker.Stream, _ *testbroker.Events) { transport.Close(s.Conn, transport.CloseShutdown) },
			func(t *testing.T, err error) { wantIs(t, wantAs[*SubscriptionLostError](t, err), ErrConnectionLost) }},
		{"garbage", func(_ *testbroker.Stream, e *testbroker.Events) { e.Raw([]byte("garbage that is no frame")) },
			func(t *testing.T, err error) { wantAs[*ProtocolError](t, err) }},
		{"bad batch", func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Raw(append(wire.AppendHeader(nil, wire.Header{Flags: wire.FlagEventBatchShared, Length: 4}), 0xFF, 0xFF, 0xFF, 0xFF))
		}, func(t *testing.T, err error) { wantIs(t, wantAs[*ProtocolError](t, err), wire.ErrMalformed) }},
		{"another's id", func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Batch(wire.FlagEventBatch, wire.EventBatch{SubscriptionID: e.ID + 1, Count: 1, Region: testbroker.Region("x")})
		}, func(t *testing.T, err error) { wantAs[*ProtocolError](t, err) }},
	}
	for _, end := range ends {
		t.Run(end.name, func(t *testing.T) {
			opened := make(chan func(), 1)
			b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
				e := s.OpenEvents()
				s.Send(&wire.Subscribed{SubscriptionID: e.ID})
				opened <- func() { end.end(s, e) }
			})
			s := subscribe(t, connect(t, b), SubscribeOptions{Resume: ResumeNever})
			await(t, "subscription", opened)()
			_, err := s.Next(within(t))
			end.check(t, err)
			if _, again := s.Next(within(t)); again != err {
				t.Fatalf("a second call returned %v", again)
			}
		})
	}
}

func TestCanceledNextLosesNoEventEvenWithinAFrame(t *testing.T) {
	parts := make(chan func(b []byte), 1)
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		parts <- func(b []byte) { e.Raw(b) }
	})
	s := subscribe(t, connect(t, b), SubscribeOptions{})
	write := await(t, "subscription", parts)
	var frames []byte
	for i := range 20 {
		frames = wire.AppendEventBatch(frames, wire.FlagEventBatchShared, &wire.EventBatch{Count: 1, Region: testbroker.Region(fmt.Sprint(i))})
	}
	next := 0
	for _, octet := range frames { // each byte apart, with a canceled call in between
		write([]byte{octet})
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Microsecond)
		e, err := s.Next(ctx)
		cancel()
		if err == nil {
			if string(e.Payload) != fmt.Sprint(next) {
				t.Fatalf("event %q came where %d was due", e.Payload, next)
			}
			next++
			continue
		}
		wantIs(t, err, context.DeadlineExceeded)
	}
	for ; next < 20; next++ {
		wantPayload(t, s, fmt.Sprint(next))
	}
}

func TestSlowReaderLosesNothingAndHoldsNobodyElseUp(t *testing.T) {
	const records, size = 400, 8 << 10
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, BatchSize: 1})
	c := connect(t, b, func(o *Options) {
		o.EventStreamRecvWindow, o.EventConnRecvWindow = 64<<10, 256<<10
		o.CacheStreamRecvWindow, o.CacheConnRecvWindow = 64<<10, 256<<10
	})
	ctx := within(t)
	s := subscribe(t, c, SubscribeOptions{})
	filler := strings.Repeat("x", size)
	for i := range records { // 3 MiB, while the window of the subscription holds 64 KiB: publishes still get through
		if _, err := c.Publish(ctx, "ns", "s", fmt.Appendf(nil, "%d %s", i, filler)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range records {
		e, err := s.Next(ctx)
		if err != nil || !strings.HasPrefix(string(e.Payload), fmt.Sprintf("%d ", i)) {
			t.Fatalf("event %d: %.10q, %v", i, e.Payload, err)
		}
	}
}

func TestSubscribeStartsWhereItIsTold(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	c := connect(t, b)
	ctx := within(t)
	for i := range 3 {
		if _, err := c.Publish(ctx, "ns", "s", fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	wantPayload(t, subscribe(t, c, SubscribeOptions{From: Earliest()}), "0")
	s := subscribe(t, c, SubscribeOptions{From: At(2)})
	if start, ok := s.StartOffset(); !ok || start != 2 {
		t.Fatalf("start offset %v, %v", start, ok)
	}
	if live, ok := s.LiveOffset(); !ok || live != 3 {
		t.Fatalf("live offset %v, %v", live, ok)
	}
	if e := wantPayload(t, s, "2"); !e.HasOffset || e.Offset != 2 {
		t.Fatalf("%+v", e)
	}
	_, err := c.Subscribe(ctx, "ns", "s", SubscribeOptions{From: At(99)})
	if e := wantAs[*CursorError](t, err); e.Reason != wire.CursorInFuture || e.Requested != 99 || e.Available != 3 {
		t.Fatalf("%+v", e)
	}
}

func TestRefusedSubscribeIsTypedAndRetriedByItsClass(t *testing.T) {
	var tries atomic.Int64
	b := scripted(t, func(s *testbroker.Stream, m *wire.Subscribe) {
		n := tries.Add(1)
		switch m.Stream {
		case "moving":
			if n < 3 {
				s.Refuse(wire.Refuse(wire.CodeShardUnavailable, "moving").WithReason(wire.ReasonMoving, 1))
				return
			}
			e := s.OpenEvents()
			s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		case "led":
			s.Send(&wire.NotLeader{NodeID: "b2", Generation: 7})
		case "forbidden":
			s.Refuse(wire.Refuse(wire.CodeForbidden, "no"))
		case "mystery":
			s.Send(&wire.OK{})
		default:
			s.Refuse(wire.Refuse(wire.CodeNotFound, "none"))
		}
	})
	c := connectWith(t, b, func(c *Client) { c.now = newClock().now }) // or a slow machine makes not_found news that is believed
	for _, row := range []struct {
		stream string
		tries  int64
		check  func(err error)
	}{
		{"moving", 3, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"led", 1, func(err error) {
			wantIs(t, err, ErrNotLeader)
			if e := wantAs[*NotLeaderError](t, err); e.NodeID != "b2" || e.Addr != "" || e.Generation != 7 {
				t.Fatalf("%+v", e)
			}
		}},
		{"forbidden", 1, func(err error) { wantIs(t, err, ErrForbidden) }},
		{"mystery", 1, func(err error) { wantAs[*ProtocolError](t, err) }},
		{"none", DefaultAttempts, func(err error) { wantIs(t, err, ErrNotFound) }},
	} {
		tries.Store(0)
		s, err := c.Subscribe(within(t), "ns", row.stream, SubscribeOptions{})
		row.check(err)
		if err == nil {
			s.Close()
		}
		if n := tries.Load(); n != row.tries {
			t.Errorf("%s: %d tries, want %d", row.stream, n, row.tries)
		}
	}
}
