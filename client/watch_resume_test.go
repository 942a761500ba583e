package client

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// field case CAC-09, the client side
func TestWatchHandsOutEveryChangeOnceAcrossLosses(t *testing.T) {
	noLeaks(t)
	b := logBacked(t)
	c := connect(t, b)
	w := watchCache(t, c, "wide", WatchOptions{Retained: true})
	due := make([]id.Offset, 3)
	read := func(upTo id.Offset) {
		for due[0] < upTo || due[1] < upTo || due[2] < upTo {
			change := nextChange(t, w)
			if change.Offset != due[change.Shard] || change.Retained || string(change.Value) != change.Offset.String() {
				t.Fatalf("%+v, want offset %v", change, due[change.Shard])
			}
			due[change.Shard]++
		}
	}
	written := 0
	write := func(upTo int) {
		for ; written < 3*upTo; written++ {
			b.CachePut("ns/wide", uint32(written%3), "k", fmt.Sprint(written/3))
		}
	}
	for round := range 5 {
		write(20*round + 13)
		read(id.Offset(20*round + 7)) // and with more on the way
		dropAll(t, b, c)
		write(20*round + 20) // of each shard, so that none is read to here without a resumption
		read(id.Offset(20*round + 20))
		wantResumes(t, c, 3*round+3)
	}
}

// cut is a broker that ends the first watch in a way of the test's own, after current values or changes that the test sends.
// The shard has 10 changes of key k, at offsets 0 to 9.
func cut(t *testing.T, first func(s *testbroker.Stream, m *wire.CacheWatch)) *testbroker.Broker {
	return cutWith(t, func(n int64, s *testbroker.Stream, m *wire.CacheWatch) bool {
		if n == 1 {
			first(s, m)
		}
		return n == 1
	})
}

// cutWith has the test serve any watch, by its number from 1.
func cutWith(t *testing.T, serve func(n int64, s *testbroker.Stream, m *wire.CacheWatch) bool, changes ...func(o *testbroker.Options)) *testbroker.Broker {
	var watches atomic.Int64
	b := logBacked(t, append(changes, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			m, ok := f.Message().(*wire.CacheWatch)
			return ok && serve(watches.Add(1), s, m)
		}
	})...)
	for i := range 10 {
		b.CachePut("ns/c", 0, "k", fmt.Sprint(i))
	}
	return b
}

// started accepts a watch.
func started(s *testbroker.Stream, m wire.CacheWatchStarted) *testbroker.Events {
	e := s.OpenEvents()
	m.SubscriptionID = e.ID
	s.Send(&m)
	return e
}

// breakOff ends an event stream within a frame: unlike a reset, it takes nothing back that was sent.
func breakOff(e *testbroker.Events) {
	e.Raw(wire.AppendHeader(nil, wire.Header{Length: 100}))
	e.Finish()
}

func event(key string, at id.Offset) *wire.CacheEvent {
	return &wire.CacheEvent{Key: key, Value: wire.Some([]byte(at.String())), Offset: at}
}

func wantOffset(t *testing.T, w *CacheWatch, offsets ...id.Offset) {
	t.Helper()
	for _, want := range offsets {
		if change := nextChange(t, w); change.Offset != want || string(change.Value) != want.String() {
			t.Fatalf("%+v, want offset %v", change, want)
		}
	}
}

// of is what a watch of the one shard of ns/c goes on from.
func of(offset id.Offset) map[uint32]id.Offset { return map[uint32]id.Offset{0: offset} }

func TestLaggedWatchGoesOnWhereTheBrokerSays(t *testing.T) {
	noLeaks(t)
	b := cut(t, func(s *testbroker.Stream, m *wire.CacheWatch) {
		e := started(s, wire.CacheWatchStarted{})
		e.Send(event("k", m.FromOffset.V))
		e.Send(&wire.CacheWatchLagged{ResumeFrom: 5}) // offsets 3 and 4 were of other keys
		e.Finish()
	})
	w := watchCache(t, connect(t, b), "c", WatchOptions{Shard: one(0), From: of(2)})
	wantOffset(t, w, 2)
	lost := nextCacheItem(t, w, ItemShardLost)
	if e := wantAs[*SubscriptionLaggedError](t, lost.Err); e.ResumeFrom != 5 || e.Local {
		t.Fatal(e)
	}
	if back := nextCacheItem(t, w, ItemShardRecovered); !back.Exact || w.Positions()[0] != 5 {
		t.Fatalf("%+v, position %v", back, w.Positions())
	}
	wantOffset(t, w, 5, 6, 7, 8, 9)
}

func TestMovedWatchIsFollowedToTheNewOwner(t *testing.T) {
	noLeaks(t)
	var other *testbroker.Broker
	b := cut(t, func(s *testbroker.Stream, m *wire.CacheWatch) {
		e := started(s, wire.CacheWatchStarted{})
		e.Send(event("k", 0))
		e.Send(&wire.ShardMoved{SubscriptionID: e.ID, ResumeFrom: wire.Some(id.Offset(3)), NodeID: wire.Some("b2"), Addr: wire.Some(other.Addr()), Generation: 4})
		e.Finish()
	})
	other = testbroker.New(t, testbroker.Options{Share: b, Features: testbroker.DefaultFeatures | testbroker.DurableFeatures})
	w := watchCache(t, connect(t, b), "c", WatchOptions{From: of(0)})
	wantOffset(t, w, 0)
	wantAs[*ShardMovedError](t, nextCacheItem(t, w, ItemShardMoved).Err)
	wantOffset(t, w, 3, 4, 5)
	if other.Connections() != 1 {
		t.Fatalf("%d connections to the new owner", other.Connections())
	}
}

func TestWatchIsOpenedAtTheBrokerThatOwnsTheShard(t *testing.T) {
	noLeaks(t)
	var other *testbroker.Broker
	b := cut(t, func(s *testbroker.Stream, _ *wire.CacheWatch) {
		s.Send(&wire.NotLeader{NodeID: "b2", Addr: wire.Some(other.Addr()), Generation: 4})
	})
	other = testbroker.New(t, testbroker.Options{Share: b})
	wantOffset(t, watchCache(t, connect(t, b), "c", WatchOptions{Shard: one(0), From: of(8)}), 8, 9)
	if other.Connections() != 1 {
		t.Fatalf("%d connections to the owner", other.Connections())
	}
}

func TestCompactedHistoryIsReplacedByACountedSnapshotThatIsTold(t *testing.T) {
	noLeaks(t)
	b := logBacked(t)
	for i := range 3 {
		b.CachePut("ns/c", 0, fmt.Sprint("k", i), "old")
	}
	c := connect(t, b)
	w := watchCache(t, c, "c", WatchOptions{Shard: one(0), Retained: true})
	for range 3 {
		nextChange(t, w)
	}
	nextCacheItem(t, w, ItemSnapshotEnd)
	compacted := make(chan struct{})
	again := testbroker.New(t, testbroker.Options{Share: b, OnFrame: func(*testbroker.Stream, testbroker.Frame) bool {
		<-compacted
		return false
	}})
	c.seeds.learn([]string{again.Addr()})
	c.seeds.prefer(again.Addr())
	if err := b.Stop(); err != nil { // nothing more reaches the watch
		t.Fatal(err)
	}
	b.CacheDelete("ns/c", 0, "k0")
	b.CachePut("ns/c", 0, "k3", "new")
	b.CacheCompact("ns/c", 0)
	b.CachePut("ns/c", 0, "k4", "later") // after the compaction, and in the snapshot
	close(compacted)
	wantIs(t, nextCacheItem(t, w, ItemShardLost).Err, ErrConnectionLost)
	if back := nextCacheItem(t, w, ItemShardRecovered); back.Exact {
		t.Fatalf("nothing is missing, it says: %+v", back)
	}
	if snap := nextCacheItem(t, w, ItemSnapshot); !snap.Resnapshot || !snap.Counted || snap.Count != 4 {
		t.Fatalf("%+v", snap)
	}
	var keys []string
	for i := range 4 {
		change := nextCacheItem(t, w, ItemEvent).Change
		if !change.Retained || change.Resnapshot != (i == 0) {
			t.Fatalf("value %d: %+v", i, change)
		}
		if at := w.Positions()[0]; (at == 3) != (i < 3) {
			t.Fatalf("position %v after value %d", at, i)
		}
		keys = append(keys, change.Key)
	}
	if !slices.Equal(keys, []string{"k1", "k2", "k3", "k4"}) {
		t.Fatalf("keys %v", keys)
	}
	nextCacheItem(t, w, ItemSnapshotEnd)
	b.CachePut("ns/c", 0, "k0", "back")
	if change := wantChange(t, w, "k0", "back"); change.Retained || change.Resnapshot || change.Offset != 6 {
		t.Fatalf("%+v", change)
	}
}

func TestSnapshotOfNothingIsToldWithTheNextChange(t *testing.T) {
	noLeaks(t)
	b := logBacked(t)
	b.CachePut("ns/c", 0, "u/k", "old")
	b.CacheDelete("ns/c", 0, "u/k")
	b.CacheCompact("ns/c", 0)
	w := watchCache(t, connect(t, b), "c", WatchOptions{Prefix: "u/", From: of(1)})
	if n, ok := w.Retained()[0]; n != 0 || !ok {
		t.Fatalf("retained %v", w.Retained())
	}
	if at := w.Positions()[0]; at != 1 { // who stops here has not been told
		t.Fatalf("position %v", at)
	}
	b.CachePut("ns/c", 0, "u/k", "new")
	if change := wantChange(t, w, "u/k", "new"); !change.Resnapshot || change.Retained || change.Offset != 2 {
		t.Fatalf("%+v", change)
	}
}

func TestSnapshotThatBrokeOffComesAgainWhole(t *testing.T) {
	noLeaks(t)
	b := cut(t, func(s *testbroker.Stream, m *wire.CacheWatch) {
		if !m.Retained || m.FromOffset.Set {
			t.Errorf("watch %+v", m)
		}
		e := started(s, wire.CacheWatchStarted{ResumeOffset: 5, RetainedCount: wire.Some(uint64(2))})
		e.Send(event("gone meanwhile", 3))
		breakOff(e)
	})
	w := watchCache(t, connect(t, b), "c", WatchOptions{Shard: one(0), Retained: true})
	if first := nextCacheItem(t, w, ItemSnapshot); first.Count != 2 || first.Resnapshot {
		t.Fatalf("%+v", first)
	}
	wantOffset(t, w, 3)
	if at := w.Positions(); len(at) != 0 {
		t.Fatalf("position %v within a snapshot", at)
	}
	nextCacheItem(t, w, ItemShardLost)
	if back := nextCacheItem(t, w, ItemShardRecovered); back.Exact {
		t.Fatalf("%+v", back)
	}
	if again := nextCacheItem(t, w, ItemSnapshot); again.Count != 1 || !again.Resnapshot {
		t.Fatalf("%+v", again)
	}
	wantOffset(t, w, 9)
	nextCacheItem(t, w, ItemSnapshotEnd)
	if at := w.Positions()[0]; at != 10 {
		t.Fatalf("position %v", at)
	}
}

// withoutRetained are brokers that cannot count current values.
func withoutRetained(o *testbroker.Options) {
	o.Features = testbroker.DefaultFeatures | testbroker.DurableFeatures&^wire.FeatureCacheWatchRetained
}

func TestSnapshotWithoutACountEndsWithTheNextChange(t *testing.T) {
	noLeaks(t)
	b := logBacked(t, withoutRetained)
	for i := range 3 {
		b.CachePut("ns/c", 0, "k", fmt.Sprint(i))
	}
	b.CacheCompact("ns/c", 0)
	c := connect(t, b)
	_, err := c.WatchCache(within(t), "ns", "c", WatchOptions{Shard: one(0), Retained: true})
	wantIs(t, err, ErrUnsupported)
	w := watchCache(t, c, "c", WatchOptions{Shard: one(0), From: of(1)})
	if snap := nextCacheItem(t, w, ItemSnapshot); snap.Counted || !snap.Resnapshot || len(w.Retained()) != 0 {
		t.Fatalf("%+v", snap)
	}
	if value := nextCacheItem(t, w, ItemEvent).Change; !value.Retained || !value.Resnapshot || value.Offset != 2 || w.Positions()[0] != 1 {
		t.Fatalf("%+v, positions %v", value, w.Positions())
	}
	b.CachePut("ns/c", 0, "k", "3")
	nextCacheItem(t, w, ItemSnapshotEnd)
	if at := w.Positions()[0]; at != 3 {
		t.Fatalf("position %v", at)
	}
	wantOffset(t, w, 3)
}

func TestSnapshotWithoutACountThatBrokeOffIsAskedForFromTheSameOffset(t *testing.T) {
	noLeaks(t)
	for _, history := range []bool{false, true} {
		b := cutWith(t, func(n int64, s *testbroker.Stream, m *wire.CacheWatch) bool {
			if m.FromOffset != wire.Some(id.Offset(4)) {
				t.Errorf("watch %d from %v", n, m.FromOffset)
			}
			if n == 1 {
				e := started(s, wire.CacheWatchStarted{ResumeOffset: 10, Resnapshot: true})
				e.Send(event("k", 9))
				breakOff(e)
			}
			return n == 1
		}, withoutRetained)
		if !history {
			b.CacheCompact("ns/c", 0)
		}
		w := watchCache(t, connect(t, b), "c", WatchOptions{Shard: one(0), From: of(4)})
		nextCacheItem(t, w, ItemSnapshot)
		wantOffset(t, w, 9)
		nextCacheItem(t, w, ItemShardLost)
		if history { // what was returned of the snapshot cannot be made whole, nor taken back
			wantIs(t, nextCacheItem(t, w, ItemShardEnded).Err, errSnapshotCut)
			continue
		}
		nextCacheItem(t, w, ItemShardRecovered)
		nextCacheItem(t, w, ItemSnapshot)
		wantOffset(t, w, 9)
	}
}

func TestCurrentValueThatIsAlsoAChangeComesOnce(t *testing.T) {
	noLeaks(t)
	b := cut(t, func(s *testbroker.Stream, m *wire.CacheWatch) {
		e := started(s, wire.CacheWatchStarted{ResumeOffset: 5, RetainedCount: wire.Some(uint64(2))})
		for _, at := range []id.Offset{2, 6, 5, 6} { // 6 was written while the broker collected
			e.Send(event("k", at))
		}
	})
	w := watchCache(t, connect(t, b), "c", WatchOptions{Shard: one(0), Retained: true})
	nextCacheItem(t, w, ItemSnapshot)
	wantOffset(t, w, 2)
	nextCacheItem(t, w, ItemSnapshotEnd)
	wantOffset(t, w, 5, 6)
}

func TestEachEndOfAWatchHasItsOwnError(t *testing.T) {
	noLeaks(t)
	protocol := func(t *testing.T, err error) { wantAs[*ProtocolError](t, err) }
	for name, end := range map[string]struct {
		send  func(s *testbroker.Stream, e *testbroker.Events)
		check func(t *testing.T, err error)
	}{
		"cut short": {func(_ *testbroker.Stream, e *testbroker.Events) { breakOff(e) },
			func(t *testing.T, err error) { wantAs[*SubscriptionLostError](t, err) }},
		"refused": {func(s *testbroker.Stream, e *testbroker.Events) {
			e.Send(wire.ErrorOf(wire.Refuse(wire.CodeNotFound, "deleted"), s.Grant))
		}, func(t *testing.T, err error) { wantIs(t, err, ErrNotFound) }},
		"lagged": {func(_ *testbroker.Stream, e *testbroker.Events) { e.Send(&wire.CacheWatchLagged{ResumeFrom: 7}) },
			func(t *testing.T, err error) { wantAs[*SubscriptionLaggedError](t, err) }},
		"moved": {func(_ *testbroker.Stream, e *testbroker.Events) { e.Send(&wire.ShardMoved{}) },
			func(t *testing.T, err error) { wantAs[*ShardMovedError](t, err) }},
		"no frame": {func(_ *testbroker.Stream, e *testbroker.Events) { e.Raw([]byte("no frame at all")) }, protocol},
		"binary": {func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Batch(wire.FlagEventBatchShared, wire.EventBatch{})
		}, protocol},
		"garbage": {func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Raw(append(wire.AppendHeader(nil, wire.Header{Length: 2}), "{]"...))
		}, protocol},
		"another message": {func(_ *testbroker.Stream, e *testbroker.Events) { e.Send(&wire.OK{}) }, protocol},
		"another key":     {func(_ *testbroker.Stream, e *testbroker.Events) { e.Send(event("x/k", 1)) }, protocol},
		"offset again": {func(_ *testbroker.Stream, e *testbroker.Events) {
			e.Send(event("u/k", 3))
			e.Send(event("u/k", 3))
		}, protocol},
		"deleted value": {func(_ *testbroker.Stream, e *testbroker.Events) { e.Send(&wire.CacheEvent{Key: "u/k"}) }, protocol},
	} {
		t.Run(name, func(t *testing.T) {
			b := cut(t, func(s *testbroker.Stream, m *wire.CacheWatch) {
				e := started(s, wire.CacheWatchStarted{ResumeOffset: 3, RetainedCount: wire.Some(uint64(1))})
				if name != "deleted value" {
					e.Send(event("u/k", 0))
				}
				end.send(s, e)
			})
			w := watchCache(t, connect(t, b), "c", WatchOptions{Prefix: "u/", Retained: true, Resume: ResumeNever})
			var err error
			for err == nil {
				_, err = w.Next(within(t))
			}
			if e := wantAs[*ShardError](t, err); e.Shard != 0 {
				t.Fatal(err)
			}
			end.check(t, err)
			if _, err := w.Next(within(t)); err != io.EOF {
				t.Fatalf("after the end: %v", err)
			}
		})
	}
}

func TestWatchThatTheBrokerEndsIsOverUnlessItIsOneOfMany(t *testing.T) {
	noLeaks(t)
	end := func(s *testbroker.Stream, m *wire.CacheWatch) {
		started(s, wire.CacheWatchStarted{ResumeOffset: 8}).Finish()
	}
	w := watchCache(t, connect(t, cut(t, end)), "c", WatchOptions{Shard: one(0)})
	for change, err := range w.Changes(within(t)) {
		t.Fatalf("%+v, %v", change, err)
	}
	wantOffset(t, watchCache(t, connect(t, cut(t, end)), "c", WatchOptions{}), 8, 9)
}

// What was deleted and is there again is something else: its changes are not those that a watch was at, and what was known of it is over.
func TestWatchOfACacheThatWasMadeAgainBeginsAnewAndIsNotExact(t *testing.T) {
	noLeaks(t)
	b := cutWith(t, func(n int64, s *testbroker.Stream, m *wire.CacheWatch) bool {
		switch n {
		case 1: // it is deleted
			started(s, wire.CacheWatchStarted{ResumeOffset: 8}).Finish()
		case 2:
			s.Refuse(wire.Refuse(wire.CodeNotFound, "no such cache"))
		}
		return n <= 2
	})
	w := watchCache(t, connect(t, b), "c", WatchOptions{})
	if lost := nextCacheItem(t, w, ItemShardLost); lost.Err != io.EOF {
		t.Fatalf("%+v", lost)
	}
	if back := nextCacheItem(t, w, ItemShardRecovered); back.Exact {
		t.Fatalf("nothing is missing, it says: %+v", back)
	}
	if snap := nextCacheItem(t, w, ItemSnapshot); !snap.Resnapshot || snap.Count != 1 {
		t.Fatalf("%+v", snap)
	}
	wantOffset(t, w, 9)
	nextCacheItem(t, w, ItemSnapshotEnd)
	b.CachePut("ns/c", 0, "k", "10")
	wantOffset(t, w, 10)
}

func TestStartOfAWatchThatSaysTooLittleIsRefused(t *testing.T) {
	for name, answer := range map[string]wire.Message{
		"no count": &wire.CacheWatchStarted{SubscriptionID: 1}, "another message": &wire.OK{},
	} {
		b := cut(t, func(s *testbroker.Stream, _ *wire.CacheWatch) { s.Send(answer) })
		_, err := connect(t, b).WatchCache(within(t), "ns", "c", WatchOptions{Retained: true})
		if err == nil {
			t.Fatal(name)
		}
		wantAs[*ProtocolError](t, err)
	}
	b := logBacked(t, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			m, ok := f.Message().(*wire.CacheShards)
			if ok {
				s.Send(&wire.CacheShardsView{RequestID: m.RequestID, Shards: 1 << 31})
			}
			return ok
		}
	})
	_, err := connect(t, b).WatchCache(within(t), "ns", "c", WatchOptions{})
	wantAs[*ProtocolError](t, err) // nothing is allocated for each
}
