package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

func TestSubscribeAllReadsEveryShardAndTellsWhich(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 5}})
	c := connect(t, b)
	ctx := within(t)
	m, err := c.SubscribeAll(ctx, "ns", "s", SubscribeAllOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Shards() != 5 {
		t.Fatalf("%d shards", m.Shards())
	}
	for i := range 50 {
		key := fmt.Appendf(nil, "k%d", i)
		if _, err := c.Publish(ctx, "ns", "s", key, WithKey(key)); err != nil {
			t.Fatal(err)
		}
	}
	shards := make(map[uint32]bool)
	n := 0
	for e, err := range m.Events(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if want := wire.RoutingModulo.Shard(e.Payload, true, 5); e.Shard != want {
			t.Fatalf("key %q came from shard %d, want %d", e.Payload, e.Shard, want)
		}
		shards[e.Shard] = true
		if n++; n == 50 {
			break
		}
	}
	if len(shards) != 5 {
		t.Fatalf("events came from %d shards", len(shards))
	}
}

func TestLostShardDoesNotDisturbTheOthers(t *testing.T) {
	opened := [2]chan *testbroker.Events{make(chan *testbroker.Events, 1), make(chan *testbroker.Events, 1)}
	b := scripted(t, func(s *testbroker.Stream, m *wire.Subscribe) {
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		opened[m.Shard.V] <- e
	})
	m, err := connect(t, b).SubscribeAll(within(t), "ns", "s", SubscribeAllOptions{Resume: ResumeNever})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	await(t, "subscription", opened[0]).Reset()
	_, err = m.Next(within(t))
	if e := wantAs[*ShardError](t, err); e.Shard != 0 {
		t.Fatal(err)
	}
	wantAs[*SubscriptionLostError](t, err)
	e := await(t, "subscription", opened[1])
	e.Batch(wire.FlagEventBatchShared, wire.EventBatch{Count: 1, Region: testbroker.Region("x")})
	if got := wantPayload(t, m, "x"); got.Shard != 1 {
		t.Fatalf("shard %d", got.Shard)
	}
	e.Finish()
	if _, err := m.Next(within(t)); err != io.EOF {
		t.Fatalf("after the last shard: %v", err)
	}
}

func TestSubscribeAllIsAllOrNothing(t *testing.T) {
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, m *wire.Subscribe) {
		if m.Shard.V == 1 {
			s.Refuse(wire.Refuse(wire.CodeForbidden, "no"))
			return
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		opened <- e
	})
	_, err := connect(t, b).SubscribeAll(within(t), "ns", "s", SubscribeAllOptions{})
	wantIs(t, err, ErrForbidden)
	if e := wantAs[*ShardError](t, err); e.Shard != 1 {
		t.Fatal(err)
	}
	await(t, "end of the other shard", await(t, "subscription", opened).Stopped())
}

func TestCanceledNextOfManyShardsLosesNoEvent(t *testing.T) {
	const n = 300
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 3}})
	c := connect(t, b)
	m, err := c.SubscribeAll(within(t), "ns", "s", SubscribeAllOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var publisher sync.WaitGroup
	defer publisher.Wait()
	publisher.Go(func() {
		for i := range n {
			if _, err := c.Publish(within(t), "ns", "s", fmt.Appendf(nil, "%d", i), WithKey(fmt.Append(nil, i))); err != nil {
				t.Error(err)
			}
		}
	})
	seen := make(map[string]bool)
	deadline := within(t)
	for len(seen) < n && deadline.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Microsecond)
		e, err := m.Next(ctx)
		cancel()
		if err == nil {
			seen[string(e.Payload)] = true
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if len(seen) != n {
		t.Fatalf("%d events, want %d", len(seen), n)
	}
	m.Close()
	_, err = m.Next(within(t))
	wantIs(t, err, ErrClosed)
}
