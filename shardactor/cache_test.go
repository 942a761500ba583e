package shardactor

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func durableCache(name string) route.Assignment {
	a := cache(name)
	a.Durable = true
	return a
}

// cacheShard is one shard of a log-backed cache that serves.
func (d *diskWorld) cacheShard(name string) *Handle {
	d.t.Helper()
	a := durableCache(name)
	d.desire(a)
	return d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard
}

// ask sends a cache write and returns its answer.
func ask(t testing.TB, h *Handle, m interface {
	Message
	To(Reply, shardcore.Token)
}) Answer {
	t.Helper()
	return start(t, h, m).wait(t, 1)
}

func put(t testing.TB, h *Handle, key, value string) id.Offset {
	t.Helper()
	a := ask(t, h, &CachePut{Key: key, Value: []byte(value)})
	if a.Refusal != nil {
		t.Fatalf("put %s: %v", key, a.Refusal)
	}
	return a.Offset
}

func (d *diskWorld) millis() uint64 { return uint64(d.clock.Now().UnixMilli()) }

func (d *diskWorld) get(h *Handle, key string) string {
	v, ok := h.Cache.Get(key, d.millis())
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%s@%d", v.Value, v.Version)
}

// matrix G1, H6
func TestALogBackedCacheKeepsValuesVersionsEndsAndCountersAcrossAKill(t *testing.T) { // G1, H4, H6
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	h := d.cacheShard("users")
	put(t, h, "a", "1")
	put(t, h, "a", "2")
	put(t, h, "empty", "")
	if a := ask(t, h, &CachePut{Key: "ttl", Value: []byte("x"), TTLMillis: 5000, HasTTL: true}); a.Refusal != nil {
		t.Fatal(a.Refusal)
	}
	put(t, h, "gone", "y")
	if a := ask(t, h, &CacheDelete{Key: "gone"}); !a.Found || string(a.Value) != "y" {
		t.Fatalf("delete: %+v", a)
	}
	if a := ask(t, h, &CacheDelete{Key: "gone"}); a.Found || a.Refusal != nil {
		t.Fatalf("second delete: %+v", a)
	}
	for i := range 10 {
		if a := ask(t, h, &CounterAdd{Key: "a", Delta: int64(i)}); a.Refusal != nil {
			t.Fatal(a.Refusal)
		}
	}
	if a := ask(t, h, &CounterAdd{Key: "a", Delta: -50}); a.Sum != -5 {
		t.Fatalf("sum %d", a.Sum)
	}
	if a := ask(t, h, &CounterAdd{Key: "zero", Delta: 0}); a.Refusal != nil || a.Sum != 0 {
		t.Fatalf("zero: %+v", a)
	}
	before := fmt.Sprint(d.get(h, "a"), d.get(h, "empty"), d.get(h, "ttl"), d.get(h, "gone"))
	if before != "2@1@2x@3-" {
		t.Fatal(before)
	}

	n := newDiskWorld(t, mem.Clone())
	n.clock.Advance(d.clock.Now().Sub(n.clock.Now()))
	h = n.cacheShard("users")
	if after := fmt.Sprint(n.get(h, "a"), n.get(h, "empty"), n.get(h, "ttl"), n.get(h, "gone")); after != before {
		t.Fatalf("before the kill %s, after it %s", before, after)
	}
	if sum, ok := h.Counters.Get("a"); !ok || sum != -5 {
		t.Fatalf("sum %d, %v", sum, ok)
	}
	if sum, ok := h.Counters.Get("zero"); !ok || sum != 0 {
		t.Fatalf("zero: %d, %v", sum, ok)
	}
	if _, ok := h.Counters.Get("never"); ok {
		t.Fatal("a counter that was never written is there")
	}
	n.clock.Advance(5*time.Second + time.Millisecond)
	if got := n.get(h, "ttl"); got != "-" {
		t.Fatalf("alive at its end: %s", got)
	}
}

// matrix G9
func TestAnEntryThatEndedIsDeletedInTheLogAndOneThatWasPutAgainStays(t *testing.T) { // G9, G10
	d := newDiskWorld(t, vfs.NewMem())
	h := d.cacheShard("users")
	for i := range 300 {
		if a := ask(t, h, &CachePut{Key: fmt.Sprint("k", i), Value: []byte("v"), TTLMillis: 1000, HasTTL: true}); a.Refusal != nil {
			t.Fatal(a.Refusal)
		}
	}
	put(t, h, "k7", "again")
	_, end := h.Log.Bounds()
	d.await("299 expiries are recorded", func() bool {
		d.clock.Advance(50 * time.Millisecond)
		_, now := h.Log.Bounds()
		return now == end.Add(299)
	})
	if s := h.Keyed.Index().Stats(); s.Entries != 1 || s.Expiring != 0 {
		t.Fatalf("%+v", s)
	}
	if got := d.get(h, "k7"); !strings.HasPrefix(got, "again@") {
		t.Fatal(got)
	}
}

// matrix G20
func TestOfRacingConditionalPutsExactlyOneIsApplied(t *testing.T) { // G20
	d := newDiskWorld(t, vfs.NewMem())
	h := d.cacheShard("users")
	r := newReplies()
	const writers = 50
	for i := range shardcore.Token(writers) {
		m := &CachePutIf{Key: "k", Value: fmt.Append(nil, i)}
		m.To(r, i)
		if err := h.Ref.TrySend(m, Size(m)); err != nil {
			t.Fatal(err)
		}
	}
	var won Answer
	wins := 0
	var lost []Answer
	for i := range shardcore.Token(writers) {
		switch a := r.wait(t, i); {
		case a.Refusal != nil:
			t.Fatal(a.Refusal)
		case a.Applied:
			wins++
			won = a
		default:
			lost = append(lost, a)
		}
	}
	if wins != 1 {
		t.Fatalf("%d of %d were applied", wins, writers)
	}
	for _, a := range lost {
		if !a.HasVersion || a.Version != won.Version {
			t.Fatalf("the winner has version %d, a loser was told %+v", won.Version, a)
		}
	}
	if a := ask(t, h, &CachePutIf{Key: "k", Value: []byte("next"), HasVersion: true, Version: won.Version}); !a.Applied || a.Version <= won.Version {
		t.Fatalf("%+v", a)
	}
	if a := ask(t, h, &CacheDeleteIf{Key: "k", Version: won.Version}); a.Applied || !a.HasVersion {
		t.Fatalf("%+v", a)
	}
}

func TestADeleteAnswersAValueThatIsInTheLogAlone(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.disk.InlineBytes = 16 })
	h := d.cacheShard("users")
	long := strings.Repeat("long", 100)
	put(t, h, "k", long)
	v, ok := h.Cache.Get("k", d.millis())
	if !ok || !v.Cold {
		t.Fatalf("%+v", v)
	}
	if a := ask(t, h, &CacheDelete{Key: "k"}); !a.Found || string(a.Value) != long {
		t.Fatalf("found %v, %d bytes, %v", a.Found, len(a.Value), a.Refusal)
	}
}

// matrix H5
func TestACounterThatWouldOverflowIsRefusedAndStays(t *testing.T) { // H5
	d := newDiskWorld(t, vfs.NewMem())
	h := d.cacheShard("users")
	ask(t, h, &CounterAdd{Key: "k", Delta: 1<<63 - 1})
	if a := ask(t, h, &CounterAdd{Key: "k", Delta: 1}); a.Refusal == nil || a.Refusal.Code != wire.CodeInvalidRequest {
		t.Fatalf("%+v", a)
	}
	if a := ask(t, h, &CounterAdd{Key: "k", Delta: -1}); a.Sum != 1<<63-2 {
		t.Fatalf("%+v", a)
	}
}

// matrix G19, H7
func TestCompactionKeepsValuesVersionsAndCountersAndShortensTheLogs(t *testing.T) { // G6, G19, mission 60
	for _, inline := range []int{4096, 64} {
		t.Run(fmt.Sprintf("inline_%d", inline), func(t *testing.T) {
			mem := vfs.NewMem()
			d := newDiskWorld(t, mem, func(x *diskSetup) {
				x.disk.InlineBytes = inline
				x.store.SegmentBytes = 256 << 10
			})
			h := d.cacheShard("users")
			value := strings.Repeat("v", 2000)
			for i := range 50 {
				put(t, h, fmt.Sprint("keep", i), fmt.Sprint(i, value))
				ask(t, h, &CounterAdd{Key: fmt.Sprint("c", i), Delta: int64(i)})
			}
			want := d.contents(t, h)
			adds := unlessRaced(1500, 800)
			for i := range adds {
				put(t, h, "hot", fmt.Sprint(i, value))
				ask(t, h, &CounterAdd{Key: "hot", Delta: 1})
			}
			d.await("the log begins later", func() bool {
				oldest, _ := h.Log.Bounds()
				if oldest == 0 {
					put(t, h, "hot", fmt.Sprint("more", value))
				}
				return oldest > 50
			})
			hot := d.get(h, "hot")
			if got := d.contents(t, h); got != want {
				t.Fatalf("contents changed:\n%.300s\n%.300s", want, got)
			}
			d.stop()
			n := newDiskWorld(t, mem, func(x *diskSetup) { x.disk.InlineBytes = inline })
			h = n.cacheShard("users")
			if got := n.contents(t, h); got != want {
				t.Fatalf("contents changed by a restart:\n%.300s\n%.300s", want, got)
			}
			if got := n.get(h, "hot"); got != hot {
				t.Fatalf("%.40s, then %.40s", hot, got)
			}
			if sum, _ := h.Counters.Get("hot"); sum != int64(adds) {
				t.Fatalf("sum %d", sum)
			}
		})
	}
}

// contents is what the kept keys and counters say.
func (d *diskWorld) contents(t *testing.T, h *Handle) string {
	var out bytes.Buffer
	for i := range 50 {
		key := fmt.Sprint("keep", i)
		v, ok := h.Cache.Get(key, d.millis())
		if !ok {
			t.Fatalf("%s is gone", key)
		}
		text := d.settled(h, key, v)
		sum, _ := h.Counters.Get(fmt.Sprint("c", i))
		fmt.Fprintf(&out, "%s %d %d %d\n", key, v.Version, len(text), sum)
	}
	return out.String()
}

func TestTheJanitorComesToBothLogsOfACacheAndToNeitherWhenItIsOver(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	d.cacheShard("users")
	list := d.listed(2)
	if list[0].number != list[1].number || list[0].spec.Kind == list[1].spec.Kind {
		t.Fatalf("the list has %v and %v", list[0].turn(), list[1].turn())
	}
	if rest := d.disks.after(list[0].turn(), 10); len(rest) != 1 || rest[0] != list[1] {
		t.Fatalf("after the first one come %d", len(rest))
	}
	d.desire() // it is deleted
	d.await("neither is in the list", func() bool { return len(d.disks.after(turn{}, 10)) == 0 })
}
