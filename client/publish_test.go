package client

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

func TestPublishReturnsTheOffsetTheBrokerGave(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	c := connect(t, b)
	ctx := within(t)
	for want := range 3 {
		r, err := c.Publish(ctx, "ns", "s", []byte("x"))
		if err != nil || !r.HasOffset || int(r.Offset) != want {
			t.Fatalf("publish %d: %+v, %v", want, r, err)
		}
	}
	r, err := c.PublishBatch(ctx, "ns", "s", [][]byte{{1}, {2}}, WithAck(AckBatch), WithKey(nil))
	if err != nil || r.Offset != 3 {
		t.Fatalf("batch: %+v, %v", r, err)
	}
}

func TestPublishToAnInMemoryStreamHasNoOffset(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	r, err := connect(t, b).Publish(within(t), "ns", "s", []byte("x"))
	if err != nil || r.HasOffset {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestRefusedPublishIsATypedErrorAndTheStreamGoesOn(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, ok := f.Publish()
		if !ok || string(p.Stream) != "full" {
			return false
		}
		r := wire.Refuse(wire.CodeOverloaded, "no room").WithReason(wire.ReasonPublishQueueFull, 250)
		s.Ack(wire.PublishAck{RequestID: p.RequestID, Refusal: &r})
		return true
	}})
	c := connect(t, b, func(o *Options) { o.PublishStreams = 1 })
	_, err := c.Publish(within(t), "ns", "full", []byte("x"))
	wantIs(t, err, ErrOverloaded)
	e := wantAs[*BrokerError](t, err)
	if e.Retry != wire.RetryAfter || e.Reason != wire.ReasonPublishQueueFull || e.RetryAfter != 250*time.Millisecond {
		t.Fatalf("%+v", e)
	}
	if _, err = c.Publish(within(t), "ns", "none", []byte("x")); err == nil {
		t.Fatal("a stream nobody made took a record")
	}
	wantIs(t, err, ErrNotFound)
	if _, err := c.Publish(within(t), "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if b.Connections() != 1 {
		t.Fatalf("%d connections, want 1", b.Connections())
	}
}

func TestPublishesOfOneCallerArriveInOrderWhileManyAreUnderWay(t *testing.T) {
	const n = 2000
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 4}})
	c := connect(t, b)
	ctx := within(t)
	m, err := c.SubscribeAll(ctx, "ns", "s", SubscribeAllOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var callers sync.WaitGroup
	for k := range 4 {
		callers.Go(func() {
			key := fmt.Appendf(nil, "key-%d", k)
			pending := make([]*PendingPublish, n/4)
			for i := range pending {
				p, err := c.PublishAsync(ctx, "ns", "s", fmt.Appendf(nil, "%d %d", k, i), WithKey(key))
				if err != nil {
					t.Error(err)
					return
				}
				pending[i] = p
			}
			for _, p := range pending {
				if _, err := p.Wait(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	next := make([]int, 4)
	for range n {
		e, err := m.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var k, i int
		if _, err := fmt.Sscanf(string(e.Payload), "%d %d", &k, &i); err != nil {
			t.Fatal(err)
		}
		if next[k] != i {
			t.Fatalf("key %d: record %d came where %d was due", k, i, next[k])
		}
		next[k]++
	}
}

func TestPublishNeverExceedsTheGrantedWindow(t *testing.T) {
	const window = 3
	var mu sync.Mutex
	unanswered, most := 0, 0
	arrived := make(chan func(), 100)
	b := testbroker.New(t, testbroker.Options{Window: window, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, _ := f.Publish()
		mu.Lock()
		unanswered++
		most = max(most, unanswered)
		mu.Unlock()
		arrived <- func() {
			mu.Lock()
			unanswered--
			mu.Unlock()
			s.Ack(wire.PublishAck{RequestID: p.RequestID})
		}
		return true
	}})
	c := connect(t, b)
	ctx := within(t)
	var all []*PendingPublish
	for range window {
		p, err := c.PublishAsync(ctx, "ns", "s", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := c.PublishAsync(short, "ns", "s", []byte("x")); err == nil {
		t.Fatal("a publish beyond the window was taken")
	} else {
		wantIs(t, err, context.DeadlineExceeded)
	}
	for range 10 {
		await(t, "publish", arrived)()
		p, err := c.PublishAsync(ctx, "ns", "s", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for range window {
		await(t, "publish", arrived)()
	}
	for _, p := range all {
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if most > window {
		t.Fatalf("%d publishes were unanswered at once, the window is %d", most, window)
	}
}

func TestPublishWaitsForRoomInTheByteBudget(t *testing.T) {
	hold := make(chan func(), 10)
	b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, _ := f.Publish()
		hold <- func() { s.Ack(wire.PublishAck{RequestID: p.RequestID}) }
		return true
	}})
	c := connect(t, b, func(o *Options) { o.PublishInflightBytes = 1000 })
	ctx := within(t)
	large, err := c.PublishAsync(ctx, "ns", "s", make([]byte, 5000)) // over the bound: goes alone
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = c.PublishAsync(short, "ns", "s", []byte("x"))
	wantIs(t, err, context.DeadlineExceeded)
	await(t, "publish", hold)()
	if _, err := large.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	small, err := c.PublishAsync(ctx, "ns", "s", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "publish", hold)()
	if _, err := small.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestPayloadsAreNotKeptAfterTheCall(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b)
	ctx := within(t)
	s, err := c.Subscribe(ctx, "ns", "s", SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	payload, key := []byte("original"), []byte("key")
	p, err := c.PublishAsync(ctx, "ns", "s", payload, WithKey(key))
	if err != nil {
		t.Fatal(err)
	}
	copy(payload, "garbage!")
	copy(key, "xxx")
	if _, err := p.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Next(ctx); err != nil || string(e.Payload) != "original" {
		t.Fatalf("%q, %v", e.Payload, err)
	}
}

// mission 186
func TestBrokerWithoutBinaryFramesGetsJSON(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{
		Streams: map[string]uint32{"ns/s": 1}, Flags: wire.FlagEventBatchShared, Features: wire.FeatureErrorCodes,
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if f.Flags != 0 {
				t.Errorf("a binary frame with flags 0x%04x, which the broker did not advertise", uint16(f.Flags))
			}
			return false
		},
	})
	c := connect(t, b)
	ctx := within(t)
	s, err := c.Subscribe(ctx, "ns", "s", SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	payload := []byte{0, 1, 0xFF}
	for _, ack := range []Ack{AckNone, AckRecord, AckBatch} {
		if _, err := c.Publish(ctx, "ns", "s", payload, WithAck(ack), WithKey([]byte("k"))); err != nil {
			t.Fatal(err)
		}
		if e, err := s.Next(ctx); err != nil || !bytes.Equal(e.Payload, payload) {
			t.Fatalf("%q, %v", e.Payload, err)
		}
	}
	_, err = c.Publish(ctx, "ns", "none", payload)
	wantIs(t, err, ErrNotFound)
}

func TestWrongPublishIsRefusedBeforeAnythingIsSent(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{OnFrame: func(*testbroker.Stream, testbroker.Frame) bool {
		t.Error("something was sent")
		return false
	}})
	c := connect(t, b)
	ctx := within(t)
	long := string(make([]byte, wire.MaxNameBytes+1))
	for argument, call := range map[string]func() error{
		"namespace": func() error { _, err := c.Publish(ctx, "", "s", nil); return err },
		"stream":    func() error { _, err := c.Publish(ctx, "ns", long, nil); return err },
		"payloads":  func() error { _, err := c.PublishBatch(ctx, "ns", "s", nil); return err },
		"key":       func() error { _, err := c.Publish(ctx, "ns", "s", nil, WithKey(make([]byte, 1<<16))); return err },
		"payload":   func() error { _, err := c.Publish(ctx, "ns", "s", make([]byte, wire.MaxPayload)); return err },
		"ack":       func() error { _, err := c.Publish(ctx, "ns", "s", nil, WithAck(9)); return err },
	} {
		if wrong := wantAs[*ArgumentError](t, call()); wrong.Argument != argument {
			t.Errorf("%s: %v", argument, wrong)
		}
	}
}
