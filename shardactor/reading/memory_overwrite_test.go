package reading

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/wire/id"
)

// An entry that is put again has the new value, version and end, whatever end it had, and the old ones are booked nowhere.
func TestAPutOverAnEntryHasItsOwnEndAndIsBookedOnce(t *testing.T) {
	pool := NewCachePool(1 << 20)
	c := NewMemoryCache(pool, 1)
	at := id.Offset(0)
	put := func(key, value string, expires uint64) Outcome {
		at++
		return c.Apply(Record{Op: OpPut, Key: []byte(key), Value: []byte(value), ExpiresAtMillis: expires}, at, 100)
	}
	ends := []uint64{0, 200, 900, 150, 0, 300, 0}
	for i, end := range ends {
		value := fmt.Sprintf("value %*d", i, i)
		out := put("k", value, end)
		if out.Existed != (i > 0) || !out.Applied {
			t.Fatalf("put %d: %+v", i, out)
		}
		put("other", "x", 1000)
		if want := int64(len("k")+len(value)+len("other")+len("x")) + 2*EntryOverhead; c.Bytes() != want || pool.Used() != want || c.Len() != 2 {
			t.Errorf("put %d: %d and %d bytes are booked for %d entries, want %d", i, c.Bytes(), pool.Used(), c.Len(), want)
		}
		if live, ok := c.Get("k", 100); !ok || string(live.Value) != value || live.Version != at-1 || live.ExpiresAtMillis != end {
			t.Errorf("put %d: %+v, found %v", i, live, ok)
		}
		if next := first(c); end != 0 && next != end || end == 0 && next != 1000 {
			t.Errorf("put %d: the next end is %d", i, next)
		}
	}
	put("k", "ends", 200)
	if out := c.Apply(Record{Op: OpPut, Key: []byte("k"), Value: []byte("after it"), ExpiresAtMillis: 0}, 99, 200); out.Existed || !out.Applied {
		t.Errorf("over what has ended: %+v", out)
	}
	if n, next := c.Expire(999, 10); n != 0 || next != 1000 {
		t.Errorf("%d removed, the next end is %d", n, next)
	}
	if _, ok := c.Get("k", 999); !ok {
		t.Error("a put without an end has that of the value before")
	}
}

// first is when the first entry ends.
func first(c *MemoryCache) uint64 {
	_, next := c.Expire(0, 10)
	return next
}

func TestAPutOverAnEntryAllocatesNothing(t *testing.T) {
	c := NewMemoryCache(NewCachePool(1<<20), 1)
	r := Record{Op: OpPut, Key: []byte("tenant/user/session/000000000001"), Value: make([]byte, 256)}
	at := id.Offset(0)
	if n := testing.AllocsPerRun(100, func() {
		at++
		r.ExpiresAtMillis = 1000 * uint64(at%2)
		c.Apply(r, at, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMemoryPutOverAnEntry(b *testing.B) {
	c := NewMemoryCache(NewCachePool(1<<30), 1)
	keys := make([][]byte, 1<<14)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "tenant/user/session/%012d", i)
	}
	value, at := make([]byte, 256), id.Offset(0)
	b.ReportAllocs()
	for b.Loop() {
		at++
		c.Apply(Record{Op: OpPut, Key: keys[int(at)%len(keys)], Value: value}, at, 1)
	}
}
