package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

func TestPublishLostWithItsConnectionIsUnknownAndNeverSentAgain(t *testing.T) {
	seen := make(chan struct{}, 10)
	var b *testbroker.Broker
	b = testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		seen <- struct{}{}
		b.Drop(transport.CloseOverload)
		return true
	}})
	c := connect(t, b)
	_, err := c.Publish(within(t), "ns", "s", []byte("x"))
	wantIs(t, err, ErrOutcomeUnknown, ErrConnectionLost)
	lost := wantAs[*ConnectionLostError](t, err)
	if code, remote, ok := transport.CloseCode(lost.Err); !ok || !remote || code != transport.CloseOverload {
		t.Fatalf("the cause does not tell the close code: %v", err)
	}
	if len(seen) != 1 {
		t.Fatalf("the broker saw the publish %d times", len(seen))
	}
}

func TestPublishWorksAgainAfterTheConnectionDied(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b)
	ctx := within(t)
	for range 3 {
		if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
			t.Fatal(err)
		}
		l, err := c.entry.publishLinks.acquire(ctx, "test")
		if err != nil {
			t.Fatal(err)
		}
		b.Drop(transport.CloseShutdown)
		await(t, "end of the connection", l.conn.Context().Done())
		await(t, "end of the lane", laneOf(t, c).closed)
	}
	if b.Connections() != 3 {
		t.Fatalf("%d connections, want 3", b.Connections())
	}
}

// laneOf returns the publish lane that was used.
func laneOf(t *testing.T, c *Client) *lane {
	t.Helper()
	for i := range c.entry.publishes.places {
		if l, ok := c.entry.publishes.places[i].current(); ok {
			return l
		}
	}
	t.Fatal("no lane is open")
	return nil
}

func TestCanceledPublishIsUnknownAndWaitMayBeCalledAgain(t *testing.T) {
	hold := make(chan func(), 1)
	b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, _ := f.Publish()
		hold <- func() { s.Ack(wire.PublishAck{RequestID: p.RequestID, HasOffset: true, Offset: 7}) }
		return true
	}})
	c := connect(t, b)
	p, err := c.PublishAsync(within(t), "ns", "s", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = p.Wait(canceled)
	wantIs(t, err, ErrOutcomeUnknown, context.Canceled)
	await(t, "publish", hold)()
	if r, err := p.Wait(within(t)); err != nil || r.Offset != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestUnansweredPublishGivesItsStreamUp(t *testing.T) {
	var silent atomic.Bool
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnFrame: func(*testbroker.Stream, testbroker.Frame) bool { return silent.Load() }})
	c := connect(t, b)
	if _, err := c.Publish(within(t), "ns", "s", []byte("x")); err != nil { // it opens the stream
		t.Fatal(err)
	}
	silent.Store(true)
	c.opts.AckTimeout = 20 * time.Millisecond // no answer comes, however slow this machine is
	_, err := c.Publish(within(t), "ns", "s", []byte("x"))
	wantIs(t, err, ErrOutcomeUnknown, errAckOverdue)
}

func TestAnswerOutOfTurnEndsTheStream(t *testing.T) {
	first := make(chan uint64, 1)
	b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, _ := f.Publish()
		select {
		case first <- p.RequestID:
		default:
			s.Ack(wire.PublishAck{RequestID: p.RequestID})
		}
		return true
	}})
	c := connect(t, b)
	ctx := within(t)
	one, err := c.PublishAsync(ctx, "ns", "s", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.PublishAsync(ctx, "ns", "s", []byte("2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*PendingPublish{one, two} {
		_, err := p.Wait(ctx)
		wantIs(t, err, ErrOutcomeUnknown)
		wantAs[*ProtocolError](t, err)
	}
}

func TestBrokenFrameEndsTheStreamWithAProtocolError(t *testing.T) {
	for name, raw := range map[string][]byte{
		"another protocol": []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"unknown type":     wire.AppendJSONFrame(nil, &wire.StreamShardsView{}),
		"an event batch":   wire.AppendEventBatch(nil, wire.FlagEventBatchShared, &wire.EventBatch{}),
		"no JSON":          append(wire.AppendHeader(nil, wire.Header{Length: 3}), "{]}"...),
	} {
		t.Run(name, func(t *testing.T) {
			b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
				s.Raw(raw)
				return true
			}})
			_, err := connect(t, b).Publish(within(t), "ns", "s", []byte("x"))
			wantIs(t, err, ErrOutcomeUnknown)
			wantAs[*ProtocolError](t, err)
		})
	}
}

func TestErrorThatNamesNoPublishFailsAllOfThemAsUnknown(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		s.Refuse(wire.Refuse(wire.CodeRevoked, "access revoked"))
		return true
	}})
	_, err := connect(t, b).Publish(within(t), "ns", "s", []byte("x"))
	wantIs(t, err, ErrOutcomeUnknown, ErrUnauthenticated)
}

func TestUnacknowledgedPublishesAreTakenBeforeCloseReturns(t *testing.T) {
	const n = 500
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	reader := connect(t, b)
	s, err := reader.Subscribe(within(t), "ns", "s", SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := connect(t, b)
	for i := range n {
		if _, err := c.Publish(within(t), "ns", "s", fmt.Appendf(nil, "%d", i), WithAck(AckNone)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e, err := s.Next(within(t))
		if err != nil || string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("event %d: %q, %v", i, e.Payload, err)
		}
	}
}

func TestCloseThatCannotFlushSaysSo(t *testing.T) {
	for _, ends := range []bool{false, true} { // the broker sits on the publish, or ends the stream without an answer
		b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, _ testbroker.Frame) bool {
			if !ends {
				<-s.Conn.Context().Done()
			}
			return true
		}})
		c, err := Connect(within(t), optionsFor(b))
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.PublishAsync(within(t), "ns", "s", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		ctx := within(t)
		if !ends {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			ctx = short
		}
		err = c.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "1 requests were not answered") || errors.Is(err, context.DeadlineExceeded) == ends {
			t.Fatalf("the broker ends %v: %v", ends, err)
		}
		_, err = p.Wait(within(t))
		wantIs(t, err, ErrOutcomeUnknown)
	}
}

// The broker never ends the stream, as one that goes away in that moment.
func TestCloseThatIsNotWaitedForIsAnErrorOnlyIfSomethingMayBeMissing(t *testing.T) {
	for _, ack := range []Ack{AckRecord, AckNone} {
		taken := make(chan struct{})
		b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			if p, _ := f.Publish(); ack != AckNone {
				s.Ack(wire.PublishAck{RequestID: p.RequestID})
			}
			close(taken)
			<-s.Conn.Context().Done()
			return true
		}})
		c, err := Connect(within(t), optionsFor(b))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Publish(within(t), "ns", "s", []byte("x"), WithAck(ack)); err != nil {
			t.Fatal(err)
		}
		await(t, "the record at the broker", taken)
		err = c.Close(short(t))
		if missing := err != nil && strings.Contains(err.Error(), "0 requests were not answered, and unacknowledged ones may be lost"); missing != (ack == AckNone) || (err != nil) != missing {
			t.Errorf("acknowledged %v: %v", ack, err)
		}
	}
}
