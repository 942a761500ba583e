package reading

import "slices"

// evictionSample is how many entries are looked at to find one to evict: with 5, an entry that was just used survives
// against 4 older ones.
const evictionSample = 5

// evictionBatch is how many entries a cache evicts before another may be the larger one, and its readers may read.
const evictionBatch = 8

// evict makes room until the pool has enough, by at most so many entries, and returns by how many.
func (c *MemoryCache) evict(keep *entry, nowMillis uint64, most int) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < most && c.pool.budget.over() && c.evictOne(keep, nowMillis) {
		n++
	}
	return n
}

// evictOne makes room by one entry: an expired one if there is any, else the least recently used of a few, never keep. mu is held.
func (c *MemoryCache) evictOne(keep *entry, nowMillis uint64) bool {
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
