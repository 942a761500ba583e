package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// mission 80, the client side
func TestCacheTellsAnEmptyValueFromNone(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b)
	ctx := within(t)
	if _, found, err := c.CacheGet(ctx, "ns", "c", "k"); found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
	if err := c.CachePut(ctx, "ns", "c", "k", []byte{}, 0); err != nil {
		t.Fatal(err)
	}
	if v, found, err := c.CacheGet(ctx, "ns", "c", "k"); !found || len(v) != 0 || err != nil {
		t.Fatalf("%q, %v, %v", v, found, err)
	}
	if _, found, err := c.CacheDelete(ctx, "ns", "c", "k"); !found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
	if _, found, err := c.CacheDelete(ctx, "ns", "c", "k"); found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
}

func TestTTLIsRoundedUpToMilliseconds(t *testing.T) {
	sent := make(chan wire.Opt[uint64], 1)
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}, OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
		if m, ok := f.Message().(*wire.CachePut); ok {
			sent <- m.TTLMillis
		}
		return false
	}})
	c := connect(t, b)
	for ttl, want := range map[time.Duration]wire.Opt[uint64]{
		0: {}, 1: wire.Some(uint64(1)), time.Millisecond: wire.Some(uint64(1)), time.Second + 1: wire.Some(uint64(1001)),
	} {
		if err := c.CachePut(within(t), "ns", "c", "k", nil, ttl); err != nil {
			t.Fatal(err)
		}
		if got := await(t, "put", sent); got != want {
			t.Errorf("ttl %v was sent as %+v, want %+v", ttl, got, want)
		}
	}
	wantAs[*ArgumentError](t, c.CachePut(within(t), "ns", "c", "k", nil, -1))
	wantAs[*ArgumentError](t, c.CachePut(within(t), "ns", "c", "\xff", nil, 0))
}

func TestManyCacheRequestsShareOneStream(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b, func(o *Options) { o.CacheStreams = 1 })
	ctx := within(t)
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			key, value := fmt.Sprintf("k%d", i), fmt.Sprintf("v%d", i)
			if err := c.CachePut(ctx, "ns", "c", key, []byte(value), 0); err != nil {
				t.Error(err)
			}
			if v, found, err := c.CacheGet(ctx, "ns", "c", key); !found || string(v) != value || err != nil {
				t.Errorf("%s: %q, %v, %v", key, v, found, err)
			}
		})
	}
	callers.Wait()
}

func TestCodedErrorAnswersTheOldestRequestAndTheStreamGoesOn(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b, func(o *Options) { o.CacheStreams = 1 })
	ctx := within(t)
	var callers sync.WaitGroup
	for i := range 40 { // good and bad ones at once on one stream: each gets its own answer
		callers.Go(func() {
			cache := [...]string{"c", "none"}[i%2]
			err := c.CachePut(ctx, "ns", cache, "k", nil, 0)
			if cache == "c" && err != nil || cache == "none" && !errors.Is(err, ErrNotFound) {
				t.Errorf("cache %s: %v", cache, err)
			}
		})
	}
	callers.Wait()
	if l, _ := c.entry.caches.places[0].current(); !l.alive() {
		t.Fatal("the stream was given up")
	}
}

func TestErrorThatCannotBeAssignedFailsTheStream(t *testing.T) {
	var requests []uint64
	b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		m, ok := f.Message().(*wire.CachePut)
		if !ok {
			return false
		}
		if requests = append(requests, m.RequestID.V); len(requests) == 4 {
			s.Send(&wire.CacheOK{RequestID: requests[1]}) // out of order
			s.Refuse(wire.Refuse(wire.CodeOverloaded, "whose is this?"))
		}
		return true
	}})
	c := connect(t, b, func(o *Options) { o.CacheStreams = 1 })
	ctx := within(t)
	results := make(chan error, 4)
	for range 4 {
		go func() { results <- c.CachePut(ctx, "ns", "c", "k", nil, 0) }()
	}
	taken := 0
	for range 4 {
		if err := await(t, "answer", results); err == nil {
			taken++
		} else {
			wantIs(t, err, ErrOutcomeUnknown, ErrOverloaded)
		}
	}
	if taken != 1 {
		t.Fatalf("%d requests were answered, want 1", taken)
	}
}

func TestCacheReadIsAskedAgainOnceAndAWriteIsNot(t *testing.T) {
	var b *testbroker.Broker
	frames := make(chan wire.Message, 10)
	b = testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		frames <- f.Message()
		if len(frames) == 1 {
			b.Drop(transport.CloseShutdown)
			return true
		}
		return false
	}})
	c := connect(t, b)
	if _, found, err := c.CacheGet(within(t), "ns", "c", "k"); found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
	if len(frames) != 2 {
		t.Fatalf("the broker saw %d requests, want 2", len(frames))
	}
	for len(frames) > 0 {
		<-frames
	}
	wantIs(t, c.CachePut(within(t), "ns", "c", "k", nil, 0), ErrOutcomeUnknown)
	if len(frames) != 1 {
		t.Fatalf("the broker saw %d requests, want 1", len(frames))
	}
}

func TestCanceledCacheWriteIsUnknownAndACanceledReadIsNot(t *testing.T) {
	arrived := make(chan struct{}, 2)
	b := testbroker.New(t, testbroker.Options{OnFrame: func(*testbroker.Stream, testbroker.Frame) bool {
		arrived <- struct{}{}
		return true
	}})
	c, err := Connect(within(t), optionsFor(b))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if c.Close(within(t)) == nil {
			t.Error("Close says that everything was answered")
		}
	}()
	untilArrived := func() context.Context {
		ctx, cancel := context.WithCancel(within(t))
		go func() {
			defer cancel()
			<-arrived
		}()
		return ctx
	}
	wantIs(t, c.CachePut(untilArrived(), "ns", "c", "k", nil, 0), ErrOutcomeUnknown, context.Canceled)
	_, _, err = c.CacheGet(untilArrived(), "ns", "c", "k")
	wantIs(t, err, context.Canceled)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("a read has no outcome: %v", err)
	}
}

func TestCacheDeleteIsNotSentToABrokerWithoutIt(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Features: wire.FeatureErrorCodes, Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b)
	_, _, err := c.CacheDelete(within(t), "ns", "c", "k")
	wantIs(t, err, ErrUnsupported)
	if err := c.CachePut(within(t), "ns", "c", "k", nil, 0); err != nil {
		t.Fatal(err)
	}
}
