package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func watchCache(t *testing.T, c *Client, cache string, o WatchOptions) *CacheWatch {
	t.Helper()
	w, err := c.WatchCache(within(t), "ns", cache, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func nextChange(t *testing.T, w *CacheWatch) CacheChange {
	t.Helper()
	change, err := w.Next(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return change
}

func nextCacheItem(t *testing.T, w *CacheWatch, kind ItemKind) CacheItem {
	t.Helper()
	item, err := w.NextItem(within(t))
	if err != nil || item.Kind != kind {
		t.Fatalf("%s %+v, %v, want %s", item.Kind, item, err, kind)
	}
	return item
}

// wantChange is a change with a value, or without one when value is "-".
func wantChange(t *testing.T, w *CacheWatch, key, value string) CacheChange {
	t.Helper()
	change := nextChange(t, w)
	if change.Key != key || change.Deleted != (value == "-") || !change.Deleted && string(change.Value) != value {
		t.Fatalf("%+v, want %s = %s", change, key, value)
	}
	return change
}

func one(shard uint32) *uint32 { return &shard }

func TestWatchOfAKeyTellsItsChangesOnly(t *testing.T) {
	noLeaks(t)
	b := logBacked(t)
	c := connect(t, b)
	ctx := within(t)
	key := "alice"
	w := watchCache(t, c, "wide", WatchOptions{Key: &key})
	shard := wire.RoutingModulo.Shard([]byte(key), true, 3)
	if got := w.Shards(); !slices.Equal(got, []uint32{shard}) {
		t.Fatalf("shards %v, want %d", got, shard)
	}
	if n := w.Retained(); len(n) != 0 {
		t.Fatalf("retained %v without asking", n)
	}
	for _, k := range []string{"alice2", "bob", key} {
		if err := c.CachePut(ctx, "ns", "wide", k, []byte("of "+k), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.CacheDelete(ctx, "ns", "wide", key); err != nil {
		t.Fatal(err)
	}
	if err := c.CachePut(ctx, "ns", "wide", key, nil, 0); err != nil {
		t.Fatal(err)
	}
	put := wantChange(t, w, key, "of alice")
	if left := time.Until(put.ExpiresAt); put.Shard != shard || put.Retained || put.Resnapshot || left < 50*time.Minute || left > time.Hour {
		t.Fatalf("%+v", put)
	}
	if deleted := wantChange(t, w, key, "-"); deleted.Offset <= put.Offset || !deleted.ExpiresAt.IsZero() {
		t.Fatalf("%+v after %+v", deleted, put)
	}
	empty := wantChange(t, w, key, "") // an empty value is a value
	e, err := c.CacheGetVersion(ctx, "ns", "wide", key)
	if err != nil || e.Version != uint64(empty.Offset) || !empty.ExpiresAt.IsZero() {
		t.Fatalf("%+v, %v, after %+v", e, err, empty)
	}
	if at := w.Positions()[shard]; at != empty.Offset.Add(1) {
		t.Fatalf("position %v after %v", at, empty.Offset)
	}
}

func TestWatchOfAPrefixReadsAllShardsOrOne(t *testing.T) {
	noLeaks(t)
	b := logBacked(t)
	c := connect(t, b)
	all := watchCache(t, c, "wide", WatchOptions{Prefix: "u/"})
	last := watchCache(t, c, "wide", WatchOptions{Shard: one(2)})
	want := map[string]bool{}
	for shard := range uint32(3) {
		for i := range 20 {
			key := fmt.Sprintf("%c/%d-%d", "ux"[i%2], shard, i)
			b.CachePut("ns/wide", shard, key, key)
			if i%2 == 0 {
				want[key] = true
			}
		}
	}
	due := map[uint32]id.Offset{}
	for range 30 {
		change := nextChange(t, all)
		if !want[change.Key] || string(change.Value) != change.Key || change.Offset < due[change.Shard] {
			t.Fatalf("%+v", change)
		}
		delete(want, change.Key)
		due[change.Shard] = change.Offset.Add(1)
	}
	if got := all.Positions(); len(got) != 3 || got[0] != 19 || got[1] != 19 || got[2] != 19 {
		t.Fatalf("positions %v", got)
	}
	for i := range 20 {
		if change := nextChange(t, last); change.Shard != 2 || int(change.Offset) != i {
			t.Fatalf("%+v, want the change at %d", change, i)
		}
	}
}

func TestRetainedValuesComeFirstAndAreCounted(t *testing.T) {
	noLeaks(t)
	b := logBacked(t)
	c := connect(t, b)
	first := b.CachePut("ns/wide", 0, "u/a", "old")
	b.CachePut("ns/wide", 0, "u/b", "b")
	b.CachePut("ns/wide", 0, "u/a", "new")
	b.CachePut("ns/wide", 0, "x", "x")
	b.CachePut("ns/wide", 0, "u/gone", "gone")
	b.CacheDelete("ns/wide", 0, "u/gone")
	b.CachePut("ns/wide", 1, "x", "x")
	w := watchCache(t, c, "wide", WatchOptions{Prefix: "u/", Retained: true})
	if n := w.Retained(); len(n) != 3 || n[0] != 2 || n[1] != 0 || n[2] != 0 {
		t.Fatalf("retained %v", n)
	}
	if at := w.Positions(); len(at) != 2 || at[1] != 1 || at[2] != 0 { // of shard 0 nothing was returned yet
		t.Fatalf("positions %v", at)
	}
	values := map[uint32][]string{}
	counts := map[uint32]uint64{}
	for ends := 0; ends < 3; {
		item, err := w.NextItem(within(t))
		if err != nil {
			t.Fatal(err)
		}
		switch item.Kind {
		case ItemSnapshot:
			if !item.Counted || item.Resnapshot {
				t.Fatalf("%+v", item)
			}
			counts[item.Shard] = item.Count
		case ItemEvent:
			if !item.Change.Retained || item.Change.Resnapshot || item.Change.Offset <= first {
				t.Fatalf("%+v", item)
			}
			values[item.Shard] = append(values[item.Shard], item.Change.Key+"="+string(item.Change.Value))
		case ItemSnapshotEnd:
			if uint64(len(values[item.Shard])) != counts[item.Shard] {
				t.Fatalf("shard %d: %v, want %d values", item.Shard, values[item.Shard], counts[item.Shard])
			}
			ends++
		default:
			t.Fatalf("%s %+v", item.Kind, item)
		}
	}
	if !slices.Equal(values[0], []string{"u/b=b", "u/a=new"}) {
		t.Fatalf("values %v", values)
	}
	if at := w.Positions(); len(at) != 3 || at[0] != 6 {
		t.Fatalf("positions %v", at)
	}
	b.CacheDelete("ns/wide", 0, "u/b")
	if change := wantChange(t, w, "u/b", "-"); change.Retained || change.Offset != 6 {
		t.Fatalf("%+v", change)
	}
}

func TestPositionsAreWhereAnotherWatchGoesOn(t *testing.T) {
	noLeaks(t)
	b := logBacked(t)
	c := connect(t, b)
	b.CachePut("ns/wide", 0, "kept", "before")
	w := watchCache(t, c, "wide", WatchOptions{Retained: true})
	seen := map[string]int{}
	read := func(w *CacheWatch) {
		change := nextChange(t, w)
		seen[fmt.Sprintf("%d/%v", change.Shard, change.Offset)]++
	}
	for shard := range uint32(3) {
		for i := range 10 {
			b.CachePut("ns/wide", shard, "k", fmt.Sprint(i))
		}
	}
	for len(seen) < 14 || len(w.Positions()) < 3 {
		read(w)
	}
	at := w.Positions()
	w.Close()
	w = watchCache(t, c, "wide", WatchOptions{From: at, Retained: true})
	if n := w.Retained(); len(n) != 0 {
		t.Fatalf("retained %v, when %v was given", n, at)
	}
	for len(seen) < 31 {
		read(w)
	}
	for change, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", change, n)
		}
	}
	_, err := c.WatchCache(within(t), "ns", "wide", WatchOptions{Shard: one(1), From: map[uint32]id.Offset{1: 99}})
	if e := wantAs[*CursorError](t, err); e.Available != 10 {
		t.Fatal(err)
	}
	wantIs(t, err, ErrInFuture)
}

func TestWatchThatOneShardRefusesIsNone(t *testing.T) {
	noLeaks(t)
	b := logBacked(t, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			m, ok := f.Message().(*wire.CacheWatch)
			if ok && m.Shard.V == 1 {
				s.Refuse(wire.Refuse(wire.CodeForbidden, "no"))
			}
			return ok && m.Shard.V == 1
		}
	})
	c := connect(t, b)
	_, err := c.WatchCache(within(t), "ns", "wide", WatchOptions{})
	e := wantAs[*SubscribeAllError](t, err)
	if len(e.Shards) != 1 || e.Shards[0].Shard != 1 {
		t.Fatal(err)
	}
	wantIs(t, err, ErrForbidden)
	_, err = c.WatchCache(within(t), "ns", "wide", WatchOptions{Shard: one(1)})
	var all *SubscribeAllError
	if wantIs(t, err, ErrForbidden); errors.As(err, &all) {
		t.Fatalf("an error of all shards for one: %v", err)
	}
}

func TestWatchOfACacheInMemoryIsRefused(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{
		Caches: map[string]uint32{"ns/c": 1}, Features: testbroker.DefaultFeatures | testbroker.DurableFeatures})
	_, err := connect(t, b).WatchCache(within(t), "ns", "c", WatchOptions{Shard: one(0)})
	wantIs(t, err, ErrInvalidRequest)
	_, err = connect(t, b).WatchCache(within(t), "ns", "none", WatchOptions{Shard: one(0)})
	wantIs(t, err, ErrNotFound)
}

func TestWatchChecksItsOptions(t *testing.T) {
	c := connect(t, logBacked(t))
	key, bad := "k", "\xff"
	for argument, o := range map[string]WatchOptions{
		"Key": {Key: &key, Prefix: "k"}, "Shard": {Key: &key, Shard: one(0)}, "Resume": {Resume: ResumeTail}, "Prefix": {Prefix: bad},
	} {
		_, err := c.WatchCache(within(t), "ns", "c", o)
		if e := wantAs[*ArgumentError](t, err); e.Argument != argument {
			t.Errorf("%v, want %s", err, argument)
		}
	}
	for name, o := range map[string]WatchOptions{
		"another shard": {Shard: one(1), From: map[uint32]id.Offset{2: 0}}, "no such shard": {From: map[uint32]id.Offset{0: 0, 3: 0}},
	} {
		_, err := c.WatchCache(within(t), "ns", "wide", o)
		if e := wantAs[*ArgumentError](t, err); e.Argument != "From" {
			t.Errorf("%s: %v", name, err)
		}
	}
	watchCache(t, c, "wide", WatchOptions{Shard: one(1), From: map[uint32]id.Offset{1: 0, 2: 0}})
	_, err := c.WatchCache(within(t), "ns", "c", WatchOptions{Key: &bad})
	wantAs[*ArgumentError](t, err)
	_, err = c.WatchCache(within(t), "ns", "", WatchOptions{})
	wantAs[*ArgumentError](t, err)
}

func TestClosedWatchReturnsAndLeavesNothingBehind(t *testing.T) {
	noLeaks(t)
	c := connect(t, logBacked(t))
	w := watchCache(t, c, "wide", WatchOptions{})
	ended := make(chan error, 1)
	go func() {
		_, err := w.Next(within(t))
		ended <- err
	}()
	w.Close()
	w.Close()
	wantIs(t, await(t, "end of Next", ended), ErrClosed)
	_, err := w.NextItem(within(t))
	wantIs(t, err, ErrClosed)
	other := watchCache(t, c, "wide", WatchOptions{})
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	_, err = other.Next(within(t))
	wantIs(t, err, ErrClosed)
	_, err = c.WatchCache(within(t), "ns", "c", WatchOptions{Shard: one(0)})
	wantIs(t, err, ErrClosed)
}

func TestCanceledNextOfAWatchLosesNoChange(t *testing.T) {
	noLeaks(t)
	const n = 200
	b := logBacked(t)
	w := watchCache(t, connect(t, b), "wide", WatchOptions{})
	for i := range n {
		b.CachePut("ns/wide", uint32(i%3), "k", fmt.Sprint(i))
	}
	seen := map[string]bool{}
	for deadline := within(t); len(seen) < n && deadline.Err() == nil; {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Microsecond)
		change, err := w.Next(ctx)
		cancel()
		if err == nil {
			seen[string(change.Value)] = true
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if len(seen) != n {
		t.Fatalf("%d changes, want %d", len(seen), n)
	}
}

// A watch that nobody reads holds one change of each shard, and its receive window.
func TestWatchThatIsNotReadHoldsNoMoreThanItsWindowsAndLosesNothing(t *testing.T) {
	noLeaks(t)
	const changes, size = 400, 8 << 10
	b := logBacked(t)
	c := connect(t, b, func(o *Options) {
		o.EventConnRecvWindow, o.EventStreamRecvWindow = 256<<10, 64<<10
		o.CacheConnRecvWindow, o.CacheStreamRecvWindow = 256<<10, 64<<10
	})
	w := watchCache(t, c, "c", WatchOptions{})
	filler := strings.Repeat("x", size)
	for i := range changes {
		b.CachePut("ns/c", 0, "k", fmt.Sprintf("%d %s", i, filler))
	}
	if err := c.CachePut(within(t), "ns", "c", "k", nil, 0); err != nil { // nobody else is held up
		t.Fatal(err)
	}
	if got := c.Connections()[0].BytesReceived; got > changes*size/2 { // the window, and what may have been sent twice
		t.Fatalf("%d bytes came, of %d that nobody reads", got, changes*size)
	}
	for i := range changes {
		if change := nextChange(t, w); !strings.HasPrefix(string(change.Value), fmt.Sprintf("%d ", i)) {
			t.Fatalf("change %d: %.10q", i, change.Value)
		}
	}
}
