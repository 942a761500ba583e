package reading

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire/id"
)

func put(c *MemoryCache, key, value string, expires uint64, version id.Offset, now uint64) Outcome {
	return c.Apply(Record{Key: []byte(key), Value: []byte(value), ExpiresAtMillis: expires}, version, now)
}

func remove(c *MemoryCache, key string, now uint64) Outcome {
	return c.Apply(Record{Delete: true, Key: []byte(key)}, 0, now)
}

func get(c *MemoryCache, key string, now uint64) string {
	v, _, ok := c.Get(key, now)
	if !ok {
		return "<miss>"
	}
	return string(v)
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
	if v, version, ok := c.Get("k", 0); string(v) != "v2" || version != 2 || !ok {
		t.Fatalf("get: %q at %d, %v", v, version, ok)
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
	if v, _, ok := c.Get("k", 0); !ok || len(v) != 0 {
		t.Fatalf("get: %q, %v", v, ok)
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
				v, _, ok := c.Get(k, now)
				if was, had := live(k); ok != had || had && string(v) != was {
					t.Fatalf("get %q: %q %v, want %q %v", k, v, ok, was, had)
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
	if len(c.index) != len(c.entries) || timed != len(c.expiry) || bytes != c.bytes {
		return fmt.Sprintf("%d keys, %d entries; %d timed, %d in the heap; %d bytes, %d booked", len(c.index), len(c.entries), timed, len(c.expiry), bytes, c.bytes)
	}
	return ""
}

func TestRecordsSurviveTheirEncoding(t *testing.T) {
	for _, r := range []Record{
		{Key: []byte("k"), Value: []byte("v"), ExpiresAtMillis: 1 << 60},
		{Key: []byte{}, Value: []byte{}},
		{Delete: true, Key: []byte("gone"), Value: []byte{}},
	} {
		body := AppendRecord(nil, r)
		if len(body) != BodySize(len(r.Key), len(r.Value)) {
			t.Fatalf("%d bytes, BodySize says %d", len(body), BodySize(len(r.Key), len(r.Value)))
		}
		got, err := DecodeRecord(body)
		if err != nil || got.Delete != r.Delete || got.ExpiresAtMillis != r.ExpiresAtMillis || !bytes.Equal(got.Key, r.Key) || !bytes.Equal(got.Value, r.Value) {
			t.Fatalf("decoded %+v, %v; want %+v", got, err, r)
		}
	}
}

func TestStampExpirySetsTheEndAndNeverOverflows(t *testing.T) {
	for _, c := range []struct{ now, ttl, want uint64 }{{1000, 500, 1500}, {1000, 0, 1000}, {1000, ^uint64(0), maxExpiryMillis}, {1000, 1 << 62, maxExpiryMillis}} {
		body := AppendRecord(nil, Record{Key: []byte("k"), Value: []byte("v")})
		StampExpiry(body, c.now, c.ttl)
		if r, err := DecodeRecord(body); err != nil || r.ExpiresAtMillis != c.want {
			t.Errorf("now %d ttl %d: %d, %v; want %d", c.now, c.ttl, r.ExpiresAtMillis, err, c.want)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(AppendRecord(nil, Record{Key: []byte("k"), Value: []byte("v"), ExpiresAtMillis: 7}))
	f.Add(AppendRecord(nil, Record{Delete: true, Key: []byte("k")}))
	f.Add([]byte{0, 0, 0, 13, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeRecord(body)
		if err == nil && !bytes.Equal(AppendRecord(nil, r), body) {
			t.Fatalf("%x decodes to %+v, which encodes differently", body, r)
		}
	})
}

func BenchmarkMemoryCacheGet(b *testing.B) {
	c := NewMemoryCache(NewCachePool(1<<30), 1)
	put(c, "key", "value", 0, 1, 0)
	b.ReportAllocs()
	for b.Loop() {
		c.Get("key", 1)
	}
}
