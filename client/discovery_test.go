package client

import (
	"sync/atomic"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

func TestQuestionsAboutShardsAreAnswered(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 4}, Caches: map[string]uint32{"ns/c": 3}})
	c := connect(t, b)
	ctx := within(t)
	if s, err := c.StreamShards(ctx, "ns", "s"); err != nil || s.Count != 4 || s.Routing != wire.RoutingModulo {
		t.Fatalf("%+v, %v", s, err)
	}
	if n, err := c.CacheShards(ctx, "ns", "c"); err != nil || n != 3 {
		t.Fatalf("%d, %v", n, err)
	}
	if o, err := c.ShardOwners(ctx, wire.ResourceStream, "ns", "s"); err != nil || len(o) != 1 {
		t.Fatalf("%+v, %v", o, err)
	}
	if e, err := c.Endpoints(ctx); err != nil || len(e) != 1 || e[0].Addr != b.Addr() {
		t.Fatalf("%+v, %v", e, err)
	}
	_, err := c.StreamShards(ctx, "ns", "none")
	wantIs(t, err, ErrNotFound)
	_, err = c.CacheShards(ctx, "ns", "none")
	wantIs(t, err, ErrNotFound)
	_, err = c.ShardOwners(ctx, wire.ResourceStream, "ns", "none")
	wantIs(t, err, ErrNotFound)
}

func TestQuestionsAreNotSentToABrokerThatCannotAnswerThem(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{
		Features: wire.FeatureErrorCodes, Streams: map[string]uint32{"ns/s": 4},
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if m := f.Message(); m != nil {
				t.Errorf("%q was sent", m.MessageType())
			}
			return false
		},
	})
	c := connect(t, b)
	ctx := within(t)
	_, err := c.StreamShards(ctx, "ns", "s")
	wantIs(t, err, ErrUnsupported)
	_, err = c.CacheShards(ctx, "ns", "c")
	wantIs(t, err, ErrUnsupported)
	_, err = c.ShardOwners(ctx, wire.ResourceCache, "ns", "c")
	wantIs(t, err, ErrUnsupported)
	_, err = c.Endpoints(ctx)
	wantIs(t, err, ErrUnsupported)
	if _, err := c.Publish(ctx, "ns", "s", nil, WithKey([]byte("k"))); err != nil { // routed by the broker alone
		t.Fatal(err)
	}
}

func TestAbsurdShardCountIsRefusedBeforeAnythingIsAllocated(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		m, ok := f.Message().(*wire.StreamShards)
		if ok {
			s.Send(&wire.StreamShardsView{Shards: 1<<32 - 1, RequestID: m.RequestID})
		}
		return ok
	}})
	_, err := connect(t, b).SubscribeAll(within(t), "ns", "s", SubscribeAllOptions{})
	wantAs[*ProtocolError](t, err)
}

func TestShardsOfAStreamAreAskedOnceAndForgottenWhenItIsGone(t *testing.T) {
	var asked atomic.Int64
	var gone atomic.Bool
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 4}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.StreamShards); ok {
			asked.Add(1)
		}
		if p, ok := f.Publish(); ok && gone.Load() {
			r := wire.Refuse(wire.CodeNotFound, "deleted")
			s.Ack(wire.PublishAck{RequestID: p.RequestID, Refusal: &r})
			return true
		}
		return false
	}})
	c := connect(t, b)
	publish := func() error {
		_, err := c.Publish(within(t), "ns", "s", nil, WithKey([]byte("k")))
		return err
	}
	for range 3 {
		if err := publish(); err != nil {
			t.Fatal(err)
		}
	}
	if asked := asked.Load(); asked != 1 {
		t.Fatalf("asked %d times, want once", asked)
	}
	gone.Store(true)
	wantIs(t, publish(), ErrNotFound)
	gone.Store(false)
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	if asked := asked.Load(); asked != 2 {
		t.Fatalf("asked %d times, want once more after the stream was gone", asked)
	}
}
