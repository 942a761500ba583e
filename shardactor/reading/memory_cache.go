// Package reading holds the folds that turn a shard's log into what people ask of it. MemoryCache is the reading of an
// in-memory cache: key to newest value, with expiry and eviction. State is that of the commits of a stream: what they say of their
// entities.
package reading

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/felixd/felixd/wire/id"
)

// EntryOverhead is what one entry costs beside its key and value, in bytes, in the node's cache budget.
const EntryOverhead = 64

// evictionSample is how many entries are looked at to find one to evict: with 5, an entry that was just used survives
// against 4 older ones.
const evictionSample = 5

// Outcome is what applying one record did.
type Outcome struct {
	// Applied is false when a put found no room: the entry is larger than the whole budget, or nothing could be evicted.
	Applied bool
	// Existed and Removed describe the live entry that was there before.
	Existed bool
	Removed []byte
}

// MemoryCache maps keys to their newest values in memory. One goroutine applies records; any number get.
//
//  1. index[e.key] is e's place in entries, for every entry;
//  2. bytes is the sum of the entries' costs, and is booked in the pool;
//  3. every entry with an expiry is in the expiry heap exactly once.
type MemoryCache struct {
	pool *CachePool

	mu      sync.RWMutex
	index   map[string]*entry
	entries []*entry
	expiry  expiryHeap
	bytes   int64
	rng     *rand.Rand
	closed  bool
}

type entry struct {
	key      string
	value    []byte
	version  id.Offset
	expires  uint64 // Unix milliseconds, 0 = never
	place    int    // in entries
	heapSlot int    // in expiry, -1 = not there
	used     atomic.Uint64
}

func (e *entry) cost() int64 { return int64(len(e.key) + len(e.value) + EntryOverhead) }

func (e *entry) expired(nowMillis uint64) bool { return e.expires != 0 && e.expires <= nowMillis }

// NewMemoryCache returns an empty cache that shares pool with the other in-memory caches of its node. seed fixes the
// choices of eviction.
func NewMemoryCache(pool *CachePool, seed uint64) *MemoryCache {
	c := &MemoryCache{pool: pool, index: make(map[string]*entry), rng: rand.New(rand.NewPCG(seed, 0x66656c6978))}
	pool.join(c)
	return c
}

// Get returns the live value of key; ok is false for a miss. The value is shared and must not be changed.
func (c *MemoryCache) Get(key string, nowMillis uint64) (value []byte, version id.Offset, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.index[key]
	if e == nil || e.expired(nowMillis) {
		return nil, 0, false
	}
	e.used.Store(c.pool.tick())
	return e.value, e.version, true
}

// Len and Bytes are the number of entries, expired ones included, and what they cost.
func (c *MemoryCache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries)
}

// Bytes is what the cache has booked in its pool.
func (c *MemoryCache) Bytes() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.bytes
}

// Apply folds one record in. The cache keeps r.Value: the caller gives it away.
func (c *MemoryCache) Apply(r Record, version id.Offset, nowMillis uint64) Outcome {
	if r.Delete {
		return c.delete(string(r.Key), nowMillis)
	}
	e := &entry{key: string(r.Key), value: r.Value, version: version, expires: r.ExpiresAtMillis, heapSlot: -1}
	if e.cost() > c.pool.budget.limit {
		return Outcome{}
	}
	out := c.put(e, nowMillis)
	if !c.pool.makeRoom(c, e, nowMillis) {
		c.drop(e)
		out.Applied = false
	}
	return out
}

func (c *MemoryCache) put(e *entry, nowMillis uint64) Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Outcome{Applied: true}
	if old := c.index[e.key]; old != nil {
		if !old.expired(nowMillis) {
			out.Existed, out.Removed = true, old.value
		}
		c.remove(old)
	}
	e.used.Store(c.pool.tick())
	e.place = len(c.entries)
	c.entries = append(c.entries, e)
	c.index[e.key] = e
	c.book(e.cost())
	if e.expires != 0 {
		heap.Push(&c.expiry, e)
	}
	return out
}

func (c *MemoryCache) delete(key string, nowMillis uint64) Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Outcome{Applied: true}
	if old := c.index[key]; old != nil {
		if !old.expired(nowMillis) {
			out.Existed, out.Removed = true, old.value
		}
		c.remove(old)
	}
	return out
}

// drop takes e out again unless it was replaced meanwhile.
func (c *MemoryCache) drop(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index[e.key] == e {
		c.remove(e)
	}
}

// Expire removes at most limit entries whose time has come and returns the time of the next one, 0 when none is left.
func (c *MemoryCache) Expire(nowMillis uint64, limit int) (removed int, nextMillis uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for removed < limit && len(c.expiry) > 0 && c.expiry[0].expired(nowMillis) {
		c.remove(c.expiry[0])
		removed++
	}
	if len(c.expiry) > 0 {
		nextMillis = c.expiry[0].expires
	}
	return removed, nextMillis
}

// Close empties the cache and leaves the pool.
func (c *MemoryCache) Close() {
	c.pool.leave(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.pool.budget.give(c.bytes)
	c.index, c.entries, c.expiry, c.bytes = make(map[string]*entry), nil, nil, 0
}

// evictOne makes room by one entry: an expired one if there is any, else the least recently used of a few, never keep.
func (c *MemoryCache) evictOne(keep *entry, nowMillis uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.expiry) > 0 && c.expiry[0] != keep && c.expiry[0].expired(nowMillis) {
		c.remove(c.expiry[0])
		return true
	}
	var victim *entry
	for i := 0; i < evictionSample && len(c.entries) > 0; i++ {
		e := c.entries[c.rng.IntN(len(c.entries))]
		if e != keep && (victim == nil || e.used.Load() < victim.used.Load()) {
			victim = e
		}
	}
	if victim == nil { // the sample met nothing but keep
		i := slices.IndexFunc(c.entries, func(e *entry) bool { return e != keep })
		if i < 0 {
			return false
		}
		victim = c.entries[i]
	}
	c.remove(victim)
	c.pool.evicted.Add(1)
	return true
}

func (c *MemoryCache) remove(e *entry) {
	last := c.entries[len(c.entries)-1]
	c.entries[e.place], last.place = last, e.place
	c.entries[len(c.entries)-1] = nil
	c.entries = c.entries[:len(c.entries)-1]
	delete(c.index, e.key)
	if e.heapSlot >= 0 {
		heap.Remove(&c.expiry, e.heapSlot)
	}
	c.book(-e.cost())
}

func (c *MemoryCache) book(n int64) {
	if c.closed {
		panic("reading: write to a closed cache")
	}
	c.bytes += n
	c.pool.budget.add(n)
}

// expiryHeap orders entries by the time they end.
type expiryHeap []*entry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].expires < h[j].expires }
func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapSlot, h[j].heapSlot = i, j
}
func (h *expiryHeap) Push(x any) {
	e := x.(*entry)
	e.heapSlot = len(*h)
	*h = append(*h, e)
}
func (h *expiryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.heapSlot = -1
	return e
}
