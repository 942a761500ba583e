package reading

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/felixd/felixd/wire/id"
)

// EntryOverhead is what one entry costs beside its key and value, in bytes, in the node's cache budget.
const EntryOverhead = 64

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
//  2. bytes is the sum of the entries' costs, and is booked in the pool; it changes under mu;
//  3. every entry with an expiry is in the expiry heap exactly once.
type MemoryCache struct {
	pool *CachePool

	mu      sync.RWMutex
	index   map[string]*entry
	entries []*entry
	expiry  expiryHeap
	bytes   atomic.Int64
	rng     *rand.Rand
	closed  bool

	noted atomic.Int64 // of bytes, by the pool, as it found them last; it changes under the pool's mu
	slot  int          // in the pool's heap, -1 = not there; the same
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

// Get returns what a key has that has not ended at now. The value is shared and must not be changed.
func (c *MemoryCache) Get(key string, nowMillis uint64) (Live, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.index[key]
	if e == nil || e.expired(nowMillis) {
		return Live{}, false
	}
	e.used.Store(c.pool.tick())
	return e.live(), true
}

// Find is Get for what a write is decided by: it does not count as a use.
func (c *MemoryCache) Find(key []byte, nowMillis uint64) (Live, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.index[string(key)]
	if e == nil || e.expired(nowMillis) {
		return Live{}, false
	}
	return e.live(), true
}

// Stat is Find without the value.
func (c *MemoryCache) Stat(key []byte, nowMillis uint64) (Live, bool) {
	l, ok := c.Find(key, nowMillis)
	l.Value = nil
	return l, ok
}

func (e *entry) live() Live {
	return Live{Value: e.value, Version: e.version, Offset: e.version, ExpiresAtMillis: e.expires}
}

// TooLargeError refuses an entry that is larger than the whole pool.
type TooLargeError struct{ Needed, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("cache put: the entry needs %d bytes, and the node's in-memory caches have %d in all; store less or raise it", e.Needed, e.Limit)
}

// Admit refuses what no eviction makes room for, with a *TooLargeError, so that no write is decided by one that came to nothing.
func (c *MemoryCache) Admit(key []byte, valueBytes int, _ bool) error {
	if need := int64(len(key)+valueBytes) + EntryOverhead; need > c.pool.Limit() {
		return &TooLargeError{Needed: need, Limit: c.pool.Limit()}
	}
	return nil
}

// Len and Bytes are the number of entries, expired ones included, and what they cost.
func (c *MemoryCache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries)
}

// Bytes is what the cache has booked in its pool.
func (c *MemoryCache) Bytes() int64 { return c.bytes.Load() }

// Apply folds the record at an offset in; the version of a put is that offset. The cache keeps r.Value: the caller gives it away.
func (c *MemoryCache) Apply(r Record, at id.Offset, nowMillis uint64) Outcome {
	version := at
	switch r.Op {
	case OpPut:
	case OpMove:
		version = r.Version
		if had, ok := c.Stat(r.Key, 0); ok && had.Version > version {
			return Outcome{Applied: true}
		}
	case OpDelete:
		return c.delete(r.Key, nowMillis, nil)
	case OpExpire:
		return c.delete(r.Key, nowMillis, &r.Version)
	default:
		panic(fmt.Sprintf("reading: a cache record of unknown operation %d", r.Op))
	}
	if need := int64(len(r.Key)+len(r.Value)) + EntryOverhead; need > c.pool.budget.limit {
		return Outcome{}
	}
	e, out := c.put(&r, version, nowMillis)
	if !c.pool.makeRoom(c, e, nowMillis) {
		c.drop(e)
		out.Applied = false
	}
	return out
}

// put sets a key. An entry that is there already is changed where it stands, which costs no memory and leaves the index as it is.
func (c *MemoryCache) put(r *Record, version id.Offset, nowMillis uint64) (*entry, Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Outcome{Applied: true}
	e := c.index[string(r.Key)]
	if e == nil {
		e = &entry{key: string(r.Key), heapSlot: -1, place: len(c.entries)}
		c.entries = append(c.entries, e)
		c.index[e.key] = e
	} else {
		if !e.expired(nowMillis) {
			out.Existed, out.Removed = true, e.value
		}
		c.book(-e.cost())
	}
	e.value, e.version = r.Value, version
	e.used.Store(c.pool.tick())
	c.book(e.cost())
	c.setEnd(e, r.ExpiresAtMillis)
	return e, out
}

// setEnd says when an entry ends; 0 is never.
func (c *MemoryCache) setEnd(e *entry, expires uint64) {
	e.expires = expires
	switch there := e.heapSlot >= 0; {
	case there && expires == 0:
		heap.Remove(&c.expiry, e.heapSlot)
	case there:
		heap.Fix(&c.expiry, e.heapSlot)
	case expires != 0:
		heap.Push(&c.expiry, e)
	}
}

// delete removes a key, with a version only if it has that one.
func (c *MemoryCache) delete(key []byte, nowMillis uint64, version *id.Offset) Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Outcome{Applied: true}
	if old := c.index[string(key)]; old != nil && (version == nil || old.version == *version) {
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
	c.pool.budget.give(c.bytes.Swap(0))
	c.index, c.entries, c.expiry = make(map[string]*entry), nil, nil
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
	now := c.bytes.Add(n)
	c.pool.budget.add(n)
	if n > 0 && now > 2*c.noted.Load() {
		c.pool.grown(c)
	}
}
