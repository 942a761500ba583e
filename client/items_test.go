package client

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func subscribeAll(t *testing.T, c *Client, o SubscribeAllOptions) *MergedSubscription {
	t.Helper()
	m, err := c.SubscribeAll(within(t), "ns", "s", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func nextItem(t *testing.T, m *MergedSubscription) Item {
	t.Helper()
	item, err := m.NextItem(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func TestWholeStreamWithOffsetsTellsOfEachLossAndMissesNothing(t *testing.T) {
	noLeaks(t)
	const shards, each = 3, 40
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": shards}, Durable: true})
	fill := func(round int) {
		for shard := range uint32(shards) {
			for i := range each {
				b.Append("ns/s", shard, testbroker.Region(fmt.Sprint(round*each+i)))
			}
		}
	}
	c := connect(t, b)
	fill(0)
	m := subscribeAll(t, c, SubscribeAllOptions{From: Earliest()})
	next := make([]int, shards)
	news := make([][]ItemKind, shards)
	read := func(upTo int) {
		for left := shards; left > 0; {
			item := nextItem(t, m)
			if item.Kind != ItemEvent {
				news[item.Shard] = append(news[item.Shard], item.Kind)
				if item.Kind == ItemShardLost && !errors.Is(item.Err, ErrConnectionLost) || item.Kind == ItemShardRecovered && !item.Exact {
					t.Fatalf("%+v", item)
				}
				continue
			}
			if want := next[item.Shard]; int(item.Event.Offset) != want || string(item.Event.Payload) != fmt.Sprint(want) {
				t.Fatalf("shard %d: %q at %s, want %d", item.Shard, item.Event.Payload, item.Event.Offset, want)
			}
			if next[item.Shard]++; next[item.Shard] == upTo {
				left--
			}
		}
	}
	read(each)
	dropAll(t, b, c)
	fill(1)
	read(2 * each)
	for shard, kinds := range news {
		if fmt.Sprint(kinds) != "[shard_lost shard_recovered]" {
			t.Errorf("shard %d: %v", shard, kinds)
		}
	}
	for shard, at := range m.Positions() {
		if at != 2*each {
			t.Errorf("shard %d is at %s", shard, at)
		}
	}
}

func TestWholeInMemoryStreamGoesOnAtItsTailAndSaysSo(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b)
	m := subscribeAll(t, c, SubscribeAllOptions{})
	b.Append("ns/s", 0, testbroker.Region("before"))
	if item := nextItem(t, m); item.Kind != ItemEvent || item.Event.Gap {
		t.Fatalf("%+v", item)
	}
	dropAll(t, b, c)
	if item := nextItem(t, m); item.Kind != ItemShardLost || item.Err == nil {
		t.Fatalf("%+v", item)
	}
	if item := nextItem(t, m); item.Kind != ItemShardRecovered || item.Exact {
		t.Fatalf("%+v", item)
	}
	b.Append("ns/s", 0, testbroker.Region("after"))
	if item := nextItem(t, m); item.Kind != ItemEvent || !item.Event.Gap || string(item.Event.Payload) != "after" {
		t.Fatalf("%+v", item)
	}
	if len(m.Positions()) != 0 {
		t.Fatalf("positions of a stream without offsets: %v", m.Positions())
	}
}

func TestPositionsResumeAWholeStreamElsewhere(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 3}, Durable: true})
	for i := range 10 {
		b.Append("ns/s", 0, testbroker.Region(fmt.Sprint(i)))
		b.Append("ns/s", 2, testbroker.Region(fmt.Sprint(i)))
	}
	m := subscribeAll(t, connect(t, b), SubscribeAllOptions{From: Earliest()})
	seen := make(map[uint32]int)
	for seen[0] < 4 {
		seen[nextItem(t, m).Shard]++
	}
	positions := m.Positions()
	m.Close()
	if int(positions[0]) != seen[0] || int(positions[2]) != seen[2] {
		t.Fatalf("positions %v after %v", positions, seen)
	}
	again := subscribeAll(t, connect(t, b), SubscribeAllOptions{From: Earliest(), Positions: positions})
	for seen[0] < 10 || seen[2] < 10 {
		item := nextItem(t, again)
		if int(item.Event.Offset) != seen[item.Shard] {
			t.Fatalf("shard %d went on at %s after %v", item.Shard, item.Event.Offset, seen)
		}
		seen[item.Shard]++
	}
}

func TestMovedShardOfAWholeStreamIsFollowed(t *testing.T) {
	noLeaks(t)
	var other *testbroker.Broker
	b := ending(t, func(_ *testbroker.Stream, e *testbroker.Events) {
		e.Send(&wire.ShardMoved{SubscriptionID: e.ID, ResumeFrom: wire.Some(id.Offset(3)), NodeID: wire.Some("b2"), Addr: wire.Some(other.Addr()), Generation: 4})
		e.Finish()
	})
	other = testbroker.New(t, testbroker.Options{Share: b})
	m := subscribeAll(t, connect(t, b), SubscribeAllOptions{From: Earliest()})
	var kinds []ItemKind
	for next := 0; next < 20; {
		item := nextItem(t, m)
		if item.Kind != ItemEvent {
			kinds = append(kinds, item.Kind)
			continue
		}
		if int(item.Event.Offset) != next {
			t.Fatalf("offset %s, want %d", item.Event.Offset, next)
		}
		next++
	}
	if fmt.Sprint(kinds) != "[shard_moved shard_recovered]" {
		t.Fatalf("%v", kinds)
	}
}

func TestEndOfAShardIsALossOfTheWholeStreamUntilItComesBackEmpty(t *testing.T) {
	noLeaks(t)
	var subscribes atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.Subscribe); !ok {
			return false
		}
		subscribes.Add(1)
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		e.Finish()
		return true
	}})
	m := subscribeAll(t, connect(t, b), SubscribeAllOptions{})
	var last Item
	for last.Kind != ItemShardEnded {
		last = nextItem(t, m)
	}
	if last.Err != nil || subscribes.Load() != DefaultAttempts {
		t.Fatalf("%+v after %d subscribes", last, subscribes.Load())
	}
	if _, err := m.NextItem(within(t)); err != io.EOF {
		t.Fatal(err)
	}
}

func TestFailedSubscribeAllNamesEveryShardThatWasNotReached(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 5}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		m, ok := f.Message().(*wire.Subscribe)
		if ok && m.Shard.V%2 == 1 {
			s.Refuse(wire.Refuse(wire.CodeForbidden, "no"))
			return true
		}
		return false
	}})
	_, err := connect(t, b).SubscribeAll(within(t), "ns", "s", SubscribeAllOptions{})
	failed := wantAs[*SubscribeAllError](t, err)
	if len(failed.Shards) != 2 || failed.Shards[0].Shard != 1 || failed.Shards[1].Shard != 3 {
		t.Fatalf("%+v", failed.Shards)
	}
	wantIs(t, err, ErrForbidden)
}

func TestDroppingQueueWorksForWholeStreams(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 2}, BatchSize: 1})
	m := subscribeAll(t, connect(t, b), SubscribeAllOptions{Policy: QueueDropNew, ClientQueue: 2})
	for m.Dropped() == 0 && t.Context().Err() == nil {
		b.Append("ns/s", 1, testbroker.Region("x"))
	}
	for range 2 { // that were queued when something was dropped
		if item := nextItem(t, m); item.Kind != ItemEvent || item.Shard != 1 {
			t.Fatalf("%+v", item)
		}
	}
}
