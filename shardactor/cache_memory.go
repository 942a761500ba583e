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
	ending  reading.MemoryEnding
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
			m.ending.Put(r.ExpiresAtMillis)
			offset = offset.Add(1)
		}
		c.main.Settle(b.End())
	}
}

// work removes entries that have ended.
func (m *memoryCache) work(_ *shardcore.Core, at shardcore.At) time.Time {
	clear(m.caching.unfit)
	due, again := m.ending.Due(at.Wall)
	if !due {
		return again
	}
	removed, next := m.caching.memory.Expire(uint64(at.Wall.UnixMilli()), reading.MemoryExpirePass)
	m.metrics.Expired.Add(float64(removed))
	return m.ending.Passed(at.Wall, next)
}
