package shardactor

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
)

const costKeys = 256

// costs is a cache with some keys of 32 bytes and values of 256, and the puts under way.
type costs struct {
	h     *Handle
	w     window
	keys  []string
	value []byte
	now   uint64
	next  int
}

// newCosts is a cache as it is after a while: all keys are there.
func newCosts(t testing.TB, durable bool) *costs {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) {
		x.store.SegmentBytes = 64 << 20
		x.disk.IndexBytes = 64 << 20
	})
	a := cache("users")
	a.Durable = durable
	d.desire(a)
	c := &costs{h: d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard, w: newWindow(32), value: make([]byte, 256), now: d.millis()}
	for n := range costKeys {
		c.keys = append(c.keys, fmt.Sprintf("tenant/user/session/%012d", n))
		c.put(t)
	}
	c.w.finish()
	return c
}

// put sends one as soon as one of those before it was answered.
func (c *costs) put(t testing.TB) {
	<-c.w
	m := &CachePut{Key: c.keys[c.next%costKeys], Value: c.value}
	c.next++
	m.To(c.w, 1)
	if err := c.h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
}

func (c *costs) get(t testing.TB) {
	if v, ok := c.h.Cache.Get(c.keys[c.next%costKeys], c.now); !ok || len(v.Value) != len(c.value) {
		t.Fatal("a key is not there")
	}
	c.next++
}

// costly is a back end, and how many allocations a put and a get may take.
type costly struct {
	name     string
	durable  bool
	put, get float64
}

func backEnds() []costly {
	return []costly{
		// A put is its message, what judges it, its body, which memory keeps, and its key while it is claimed; the rest is shared by the
		// puts of a turn.
		{"in memory", false, 5, 0},
		// The log's share is that of a publish. The value of a get is the caller's.
		{"log-backed", true, 6, 1},
	}
}

func TestCachePutsAndGetsAllocateLittle(t *testing.T) { // mission 204
	for _, k := range backEnds() {
		t.Run(k.name, func(t *testing.T) {
			c := newCosts(t, k.durable)
			const puts = 1024
			each := testing.AllocsPerRun(5, func() {
				for range puts {
					c.put(t)
				}
				c.w.finish()
			}) / puts
			get := testing.AllocsPerRun(puts, func() { c.get(t) })
			t.Logf("%.2f allocations for a put, %.2f for a get", each, get)
			if each > k.put || get > k.get {
				t.Errorf("%.2f allocations for a put, want at most %v; %.2f for a get, want at most %v", each, k.put, get, k.get)
			}
		})
	}
}

func BenchmarkCachePut(b *testing.B) {
	for _, k := range backEnds() {
		b.Run(k.name, func(b *testing.B) {
			c := newCosts(b, k.durable)
			b.ReportAllocs()
			for b.Loop() {
				c.put(b)
			}
			c.w.finish()
		})
	}
}

func BenchmarkCacheGet(b *testing.B) {
	for _, k := range backEnds() {
		b.Run(k.name, func(b *testing.B) {
			c := newCosts(b, k.durable)
			b.ReportAllocs()
			for b.Loop() {
				c.get(b)
			}
		})
	}
}
