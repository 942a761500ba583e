package reading

import (
	"container/heap"
	"sync"
	"sync/atomic"
)

// CachePool is the memory that all in-memory caches of a node share. A put that does not fit evicts: expired entries
// first, then the least recently used of a small sample, first of its own shard, then of the largest other ones. That costs a put of n
// bytes at most n/EntryOverhead evictions, however many caches there are.
//
//  1. bySize is a heap by what was noted of each cache, and a cache that joined and did not leave is in it once, at its slot;
//  2. outside of a put no cache holds more than twice of what was noted of it.
type CachePool struct {
	budget  poolBudget
	evicted atomic.Uint64
	clock   atomic.Uint64

	mu     sync.Mutex
	bySize sizeHeap
	looks  int // at caches, for those that hold most; what a test judges the work by
}

type poolBudget struct {
	limit int64
	used  atomic.Int64
}

func (b *poolBudget) add(n int64)  { b.used.Add(n) }
func (b *poolBudget) give(n int64) { b.used.Add(-n) }
func (b *poolBudget) over() bool   { return b.used.Load() > b.limit }

// NewCachePool returns a pool of limit bytes.
func NewCachePool(limit int64) *CachePool {
	if limit <= 0 {
		panic("reading: a cache pool needs a positive limit")
	}
	return &CachePool{budget: poolBudget{limit: limit}}
}

// Used, Limit and Evicted describe the pool: bytes booked, bytes allowed, entries evicted so far.
func (p *CachePool) Used() int64 { return p.budget.used.Load() }

// Limit is the size of the pool in bytes.
func (p *CachePool) Limit() int64 { return p.budget.limit }

// Evicted counts entries that were evicted to make room.
func (p *CachePool) Evicted() uint64 { return p.evicted.Load() }

func (p *CachePool) tick() uint64 { return p.clock.Add(1) }

func (p *CachePool) join(c *MemoryCache) {
	p.mu.Lock()
	defer p.mu.Unlock()
	heap.Push(&p.bySize, c)
}

func (p *CachePool) leave(c *MemoryCache) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.slot >= 0 {
		heap.Remove(&p.bySize, c.slot)
	}
}

// makeRoom evicts until the budget holds, never keep, and reports whether it does. No two cache locks are held at once.
func (p *CachePool) makeRoom(own *MemoryCache, keep *entry, nowMillis uint64) bool {
	for p.budget.over() {
		if own.evict(keep, nowMillis, evictionBatch) > 0 {
			continue
		}
		other := p.largest(own)
		if other == nil {
			return !p.budget.over()
		}
		other.evict(keep, nowMillis, evictionBatch)
	}
	return true
}

// largest returns a cache, other than own, than which none holds more than twice as much; nil when no other holds anything.
func (p *CachePool) largest(own *MemoryCache) *MemoryCache {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		c := p.bySize.first(own)
		if c == nil {
			return nil
		}
		p.looks++
		p.note(c)
		if p.bySize.first(own) != c { // it held less than was noted
			continue
		}
		if c.noted.Load() == 0 {
			return nil
		}
		return c
	}
}

// grown is told of a cache that holds more than twice of what was noted of it.
func (p *CachePool) grown(c *MemoryCache) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.slot >= 0 {
		p.note(c)
	}
}

// note notes what a cache holds. One that grew meanwhile may have seen what was noted before, and gives no notice then: it is looked at again.
func (p *CachePool) note(c *MemoryCache) {
	for n := c.bytes.Load(); c.noted.Swap(n) != n; n = c.bytes.Load() {
	}
	heap.Fix(&p.bySize, c.slot)
}

// sizeHeap has the cache first of which most was noted.
type sizeHeap []*MemoryCache

// first is the first cache that is not own; nil if there is none.
func (h sizeHeap) first(own *MemoryCache) *MemoryCache {
	switch {
	case len(h) == 0:
		return nil
	case h[0] != own:
		return h[0]
	case len(h) == 1:
		return nil
	case len(h) == 2 || !h.Less(2, 1):
		return h[1]
	}
	return h[2]
}

func (h sizeHeap) Len() int           { return len(h) }
func (h sizeHeap) Less(i, j int) bool { return h[i].noted.Load() > h[j].noted.Load() }
func (h sizeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i, j
}
func (h *sizeHeap) Push(x any) {
	c := x.(*MemoryCache)
	c.slot = len(*h)
	*h = append(*h, c)
}
func (h *sizeHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.slot = -1
	return c
}
