package reading

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire/id"
)

func put(c *MemoryCache, key, value string, expires uint64, version id.Offset, now uint64) Outcome {
	return c.Apply(Record{Op: OpPut, Key: []byte(key), Value: []byte(value), ExpiresAtMillis: expires}, version, now)
}

func remove(c *MemoryCache, key string, now uint64) Outcome {
	return c.Apply(Record{Op: OpDelete, Key: []byte(key)}, 0, now)
}

func get(c *MemoryCache, key string, now uint64) string {
	l, ok := c.Get(key, now)
	if !ok {
		return "<miss>"
	}
	return string(l.Value)
}

// mission 228, 229, 230
func TestPutGetDelete(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1<<20), 1)
	if out := put(c, "k", "v1", 0, 1, 0); !out.Applied || out.Existed {
		t.Fatalf("first put: %+v", out)
	}
	if out := put(c, "k", "v2", 0, 2, 0); !out.Existed || string(out.Removed) != "v1" {
		t.Fatalf("second put: %+v", out)
	}
	if l, ok := c.Get("k", 0); string(l.Value) != "v2" || l.Version != 2 || l.Offset != 2 || !ok {
		t.Fatalf("get: %+v, %v", l, ok)
	}
	if out := remove(c, "k", 0); !out.Existed || string(out.Removed) != "v2" {
		t.Fatalf("delete: %+v", out)
	}
	if out := remove(c, "k", 0); out.Existed || get(c, "k", 0) != "<miss>" {
		t.Fatalf("second delete found something: %+v", out)
	}
}

// mission 80: an empty value is a hit.
func TestAnEmptyValueIsNotAMiss(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1<<20), 1)
	put(c, "k", "", 0, 1, 0)
	if l, ok := c.Get("k", 0); !ok || l.Value == nil || len(l.Value) != 0 {
		t.Fatalf("get: %+v, %v", l, ok)
	}
}

// mission 232: one millisecond after the end an entry is gone, whoever swept or not.
func TestAnEntryEndsAtItsTime(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1<<20), 1)
	put(c, "k", "v", 1000, 1, 0)
	if got := get(c, "k", 999); got != "v" {
		t.Fatalf("before its end: %s", got)
	}
	if got := get(c, "k", 1000); got != "<miss>" {
		t.Fatalf("at its end: %s", got)
	}
	if out := remove(c, "k", 1001); out.Existed {
		t.Fatal("a delete returned a value that had expired")
	}
}

func TestExpireRemovesWhatEndedAndNamesTheNext(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1<<20), 1)
	for i := range 10 {
		put(c, fmt.Sprint(i), "v", uint64(100*(i+1)), 1, 0)
	}
	if n, next := c.Expire(450, 3); n != 3 || next != 400 {
		t.Fatalf("removed %d, next %d; want the limit of 3 and 400", n, next)
	}
	if n, next := c.Expire(450, 100); n != 1 || next != 500 || c.Len() != 6 {
		t.Fatalf("removed %d, next %d, %d left", n, next, c.Len())
	}
	if n, next := c.Expire(5000, 100); n != 6 || next != 0 || c.Bytes() != 0 {
		t.Fatalf("removed %d, next %d, %d bytes left", n, next, c.Bytes())
	}
}

// mission 235
func TestEvictionKeepsTheBudgetAndSparesWhatWasUsed(t *testing.T) {
	value := string(make([]byte, 1000))
	pool := NewCachePool(100 * (1000 + 3 + EntryOverhead))
	c := NewMemoryCache(pool, 7)
	put(c, "hot", value, 0, 1, 0)
	for i := range 1000 {
		if out := put(c, fmt.Sprintf("%03d", i%1000), value, 0, 1, 0); !out.Applied {
			t.Fatalf("put %d was refused", i)
		}
		if pool.Used() > pool.Limit() {
			t.Fatalf("%d bytes in a pool of %d", pool.Used(), pool.Limit())
		}
		c.Get("hot", 0)
	}
	if get(c, "hot", 0) == "<miss>" {
		t.Fatal("an entry in steady use was evicted")
	}
	if pool.Evicted() < 900 {
		t.Fatalf("%d evictions, want about 901", pool.Evicted())
	}
}

func TestExpiredEntriesGoBeforeLiveOnes(t *testing.T) {
	pool := NewCachePool(10 * (1 + 1 + EntryOverhead))
	c := NewMemoryCache(pool, 7)
	for i := range 9 {
		put(c, fmt.Sprint(i), "v", 0, 1, 0)
	}
	put(c, "x", "v", 10, 1, 0)
	put(c, "y", "v", 0, 1, 20)
	if pool.Evicted() != 0 || c.Len() != 10 {
		t.Fatalf("%d evictions, %d entries; the expired one should have made room", pool.Evicted(), c.Len())
	}
}

func TestAValueLargerThanThePoolIsRefusedAndLeavesTheOldOne(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1000), 1)
	put(c, "k", "old", 0, 1, 0)
	if out := put(c, "k", string(make([]byte, 2000)), 0, 2, 0); out.Applied {
		t.Fatal("applied")
	}
	if get(c, "k", 0) != "old" {
		t.Fatal("the refused put destroyed the old value")
	}
}

// Whoever decides writes by earlier ones must know at the claim what will come to nothing.
func TestAPutThatNoEvictionMakesRoomForIsRefusedBeforeItIsClaimed(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1000), 1)
	var large *TooLargeError
	if err := c.Admit([]byte("k"), 1000-1-EntryOverhead, false); err != nil {
		t.Fatal(err)
	}
	if err := c.Admit([]byte("k"), 1000-EntryOverhead, true); !errors.As(err, &large) || large.Needed != 1001 || large.Limit != 1000 {
		t.Fatalf("one byte more: %v", err)
	}
	if out := put(c, "k", string(make([]byte, 1000-1-EntryOverhead)), 0, 1, 0); !out.Applied {
		t.Fatal("what was admitted is not taken")
	}
}

func TestAnExpiryAndAMoveInMemoryAreThoseOfOneVersion(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1<<20), 1)
	put(c, "k", "v", 0, 5, 0)
	if c.Apply(Record{Op: OpExpire, Key: []byte("k"), Version: 4}, 6, 0); get(c, "k", 0) != "v" {
		t.Fatal("the expiry of another version took the value")
	}
	c.Apply(Record{Op: OpMove, Key: []byte("k"), Value: []byte("older"), Version: 3}, 7, 0)
	c.Apply(Record{Op: OpMove, Key: []byte("k"), Value: []byte("v"), Version: 5}, 8, 0)
	if l, ok := c.Get("k", 0); !ok || string(l.Value) != "v" || l.Version != 5 {
		t.Fatalf("after moves: %+v %v", l, ok)
	}
	if out := c.Apply(Record{Op: OpExpire, Key: []byte("k"), Version: 5}, 9, 0); !out.Existed || get(c, "k", 0) != "<miss>" {
		t.Fatalf("the expiry of its version: %+v", out)
	}
}

func TestAFullNeighbourMakesRoom(t *testing.T) {
	pool := NewCachePool(10_000)
	big, small := NewMemoryCache(pool, 1), NewMemoryCache(pool, 2)
	for i := range 200 {
		put(big, fmt.Sprint(i), "value", 0, 1, 0)
	}
	if out := put(small, "k", string(make([]byte, 5000)), 0, 1, 0); !out.Applied {
		t.Fatal("refused although another cache could give")
	}
	if pool.Used() > pool.Limit() {
		t.Fatalf("%d of %d bytes", pool.Used(), pool.Limit())
	}
	big.Close()
	small.Close()
	if pool.Used() != 0 {
		t.Fatalf("%d bytes booked after both caches closed", pool.Used())
	}
}

// A put that finds its room in many other caches takes time for what it evicts, and not for how many caches there are.
func TestAPutThatEvictsFromManyCachesLooksAtFewOfThemForEachEntry(t *testing.T) {
	const caches, entries, size = 256, 40, EntryOverhead + 8
	pool := NewCachePool(caches * entries * size)
	fill := func(c *MemoryCache) {
		for i := range entries {
			put(c, fmt.Sprintf("%04d", i), "1234", 0, 1, 0)
		}
	}
	all := make([]*MemoryCache, caches)
	for i := range all {
		all[i] = NewMemoryCache(pool, uint64(i))
		fill(all[i])
	}
	own := NewMemoryCache(pool, 1)
	if out := put(own, "large", string(make([]byte, caches*entries*size/2)), 0, 1, 0); !out.Applied || pool.Used() > pool.Limit() {
		t.Fatalf("%+v, %d of %d bytes", out, pool.Used(), pool.Limit())
	}
	if evicted := int(pool.Evicted()); pool.looks > 2*evicted || evicted > caches*entries/2+1 {
		t.Errorf("%d caches were looked at to evict %d entries", pool.looks, evicted)
	}
	for i, c := range all {
		if n := c.Len(); n < entries/2-evictionBatch || n > entries {
			t.Errorf("cache %d has %d of its %d entries left", i, n, entries)
		}
	}
}

// Whoever needs room takes it from the caches that hold most at that moment, whatever they held before.
func TestRoomIsMadeByTheLargestCaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := NewCachePool(1 << 30)
		all := make([]*MemoryCache, 5)
		for i := range all {
			all[i] = NewMemoryCache(pool, uint64(i))
		}
		some := rapid.IntRange(0, len(all)-1)
		t.Repeat(map[string]func(*rapid.T){
			"grow": func(t *rapid.T) {
				c, from := all[some.Draw(t, "cache")], rapid.IntRange(0, 300).Draw(t, "from")
				for i := range rapid.IntRange(1, 100).Draw(t, "entries") {
					put(c, fmt.Sprint(from+i), "value", 0, 1, 0)
				}
			},
			"shrink": func(t *rapid.T) {
				c := all[some.Draw(t, "cache")]
				for i := range rapid.IntRange(1, 400).Draw(t, "entries") {
					remove(c, fmt.Sprint(i), 0)
				}
			},
			"leave": func(t *rapid.T) {
				i := some.Draw(t, "cache")
				all[i].Close()
				all[i] = NewMemoryCache(pool, uint64(i))
			},
			"look": func(t *rapid.T) {
				own := all[some.Draw(t, "cache")]
				most := int64(0)
				for _, c := range all {
					if c != own {
						most = max(most, c.Bytes())
					}
				}
				switch c := pool.largest(own); {
				case c == own || c == nil && most > 0 || c != nil && c.Bytes() == 0:
					t.Fatalf("none was found, and one holds %d bytes", most)
				case c != nil && 2*c.Bytes() < most:
					t.Fatalf("one with %d bytes was found, and one holds %d", c.Bytes(), most)
				}
			},
		})
	})
}

func TestMemoryCacheBehavesLikeItsNaiveTwin(t *testing.T) {
	type cell struct {
		value   string
		expires uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		c := NewMemoryCache(NewCachePool(1<<30), 1)
		twin := map[string]cell{}
		now := uint64(1)
		key := rapid.SampledFrom([]string{"", "a", "b", "c", "dd"})
		live := func(k string) (string, bool) {
			x, ok := twin[k]
			return x.value, ok && (x.expires == 0 || x.expires > now)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.StringN(0, 5, 5).Draw(t, "value")
				expires := uint64(0)
				if rapid.Bool().Draw(t, "ttl") {
					expires = now + rapid.Uint64Range(0, 20).Draw(t, "ttl ms")
				}
				was, had := live(k)
				out := put(c, k, v, expires, 1, now)
				if out.Existed != had || had && string(out.Removed) != was {
					t.Fatalf("put replaced %+v, want %q %v", out, was, had)
				}
				twin[k] = cell{v, expires}
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				was, had := live(k)
				if out := remove(c, k, now); out.Existed != had || had && string(out.Removed) != was {
					t.Fatalf("delete took %+v, want %q %v", out, was, had)
				}
				delete(twin, k)
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				l, ok := c.Get(k, now)
				if was, had := live(k); ok != had || had && string(l.Value) != was {
					t.Fatalf("get %q: %+v %v, want %q %v", k, l, ok, was, had)
				}
			},
			"time": func(t *rapid.T) {
				now += rapid.Uint64Range(0, 10).Draw(t, "ms")
				if rapid.Bool().Draw(t, "sweep") {
					c.Expire(now, 2)
				}
			},
			"": func(t *rapid.T) {
				if got := c.invariants(); got != "" {
					t.Fatal(got)
				}
			},
		})
	})
}

// invariants says which of the documented invariants does not hold.
func (c *MemoryCache) invariants() string {
	var bytes int64
	timed := 0
	for i, e := range c.entries {
		if e.place != i || c.index[e.key] != e {
			return fmt.Sprintf("entry %q at %d says %d", e.key, i, e.place)
		}
		bytes += e.cost()
		if e.expires != 0 {
			timed++
			if c.expiry[e.heapSlot] != e {
				return fmt.Sprintf("entry %q is not at its place in the expiry heap", e.key)
			}
		}
	}
	if len(c.index) != len(c.entries) || timed != len(c.expiry) || bytes != c.bytes.Load() {
		return fmt.Sprintf("%d keys, %d entries; %d timed, %d in the heap; %d bytes, %d booked", len(c.index), len(c.entries), timed, len(c.expiry), bytes, c.bytes.Load())
	}
	return ""
}

func BenchmarkMemoryCacheGet(b *testing.B) {
	c := NewMemoryCache(NewCachePool(1<<30), 1)
	put(c, "key", "value", 0, 1, 0)
	b.ReportAllocs()
	for b.Loop() {
		c.Get("key", 1)
	}
}
