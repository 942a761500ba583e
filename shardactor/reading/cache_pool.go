package reading

import (
	"slices"
	"sync"
	"sync/atomic"
)

// CachePool is the memory that all in-memory caches of a node share. A put that does not fit evicts: expired entries
// first, then the least recently used of a small sample, first of its own shard, then of the largest other one.
type CachePool struct {
	budget  poolBudget
	evicted atomic.Uint64
	clock   atomic.Uint64

	mu     sync.Mutex
	caches []*MemoryCache
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
	p.caches = append(p.caches, c)
}

func (p *CachePool) leave(c *MemoryCache) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caches = slices.DeleteFunc(p.caches, func(x *MemoryCache) bool { return x == c })
}

// makeRoom evicts until the budget holds, never keep, and reports whether it does. No two cache locks are held at once.
func (p *CachePool) makeRoom(own *MemoryCache, keep *entry, nowMillis uint64) bool {
	for p.budget.over() {
		if own.evictOne(keep, nowMillis) {
			continue
		}
		other := p.largest(own)
		if other == nil || !other.evictOne(keep, nowMillis) {
			return !p.budget.over()
		}
	}
	return true
}

// largest returns the cache with the most bytes, other than own; nil when no other holds any.
func (p *CachePool) largest(own *MemoryCache) *MemoryCache {
	p.mu.Lock()
	caches := slices.Clone(p.caches)
	p.mu.Unlock()
	var best *MemoryCache
	most := int64(0)
	for _, c := range caches {
		if c == own {
			continue
		}
		if n := c.Bytes(); n > most {
			best, most = c, n
		}
	}
	return best
}
