package shardactor

import (
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// memoryCache is the backend of the shard of an in-memory cache. Its log is nothing but a count of versions.
type memoryCache struct {
	memory
	caching *caching
	metrics *Metrics
	next    uint64 // when the next entry ends, in milliseconds since the Unix epoch; 0 is never
}

var _ backend = (*memoryCache)(nil)

func (m *memoryCache) fold(at shardcore.At, _ shardcore.Log, batches []*batch.Batch) {
	c := m.caching
	for _, b := range batches {
		offset := b.Base
		for r, err := range reading.Records(b.Body) {
			if err != nil {
				panic("shardactor: a record of our own making: " + err.Error())
			}
			if !c.memory.Apply(r, offset, uint64(at.Wall.UnixMilli())).Applied {
				if c.unfit == nil {
					c.unfit = make(map[id.Offset]struct{})
				}
				c.unfit[offset] = struct{}{}
			}
			if end := r.ExpiresAtMillis; end != 0 && (m.next == 0 || end < m.next) {
				m.next = end
			}
			offset = offset.Add(1)
		}
		c.main.Settle(b.End())
	}
}

// memoryExpirePass is how many ended entries one turn removes: a bound on how long a pass keeps the cache locked.
const memoryExpirePass = 1024

// work removes entries that have ended.
func (m *memoryCache) work(_ *shardcore.Core, at shardcore.At) time.Time {
	clear(m.caching.unfit)
	if m.next == 0 {
		return time.Time{}
	}
	if due := time.UnixMilli(int64(m.next)); at.Wall.Before(due) {
		return sooner(due, at.Wall.Add(clockLook))
	}
	removed, next := m.caching.memory.Expire(uint64(at.Wall.UnixMilli()), memoryExpirePass)
	m.metrics.Expired.Add(float64(removed))
	if m.next = next; next == 0 {
		return time.Time{}
	}
	return sooner(time.UnixMilli(int64(next)), at.Wall.Add(clockLook))
}
