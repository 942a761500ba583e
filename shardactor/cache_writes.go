package shardactor

import (
	"fmt"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// judge makes a cache write of a request: what it does is decided when it is claimed. Until then it is charged for bytes.
func (s *Shard) judge(r *request, w shardcore.Write, bytes int, judge func(base id.Offset, nowMillis uint64) shardcore.Verdict) shardcore.Input {
	w.Reply, w.Fold, w.Judge = r, true, judge
	w.Batch.Kind, w.Batch.PayloadBytes = batch.Records, bytes
	r.write = w
	return &r.write
}

// expiry is when a value ends that is put now: 0 is never. The millisecond that has begun is not counted, so that a value lives as long as
// was asked for at least, and at most one more; one that is given no time is given none.
func expiry(nowMillis, ttlMillis uint64, has bool) uint64 {
	switch {
	case !has:
		return 0
	case ttlMillis == 0:
		return reading.Expiry(nowMillis, 0)
	}
	return reading.Expiry(nowMillis+1, ttlMillis)
}

func (s *Shard) cachePut(m *CachePut) shardcore.Input {
	return s.judge(&m.request, shardcore.Write{Batch: &m.batch}, len(m.Key)+len(m.Value), func(_ id.Offset, nowMillis uint64) shardcore.Verdict {
		c := s.cache
		if f := c.admit([]byte(m.Key), len(m.Value), m.HasTTL); f != nil {
			return shardcore.Verdict{Refusal: f}
		}
		record(&m.batch, c.main.Put([]byte(m.Key), m.Value, expiry(nowMillis, m.TTLMillis, m.HasTTL)).Record)
		m.Value = recorded(&m.batch, len(m.Value))
		return shardcore.Verdict{Append: true}
	})
}

func (s *Shard) cachePutIf(m *CachePutIf) shardcore.Input {
	m.result, m.versioned = &m.judged, true
	return s.judge(&m.request, shardcore.Write{Batch: &m.batch}, len(m.Key)+len(m.Value), func(_ id.Offset, nowMillis uint64) shardcore.Verdict {
		c := s.cache
		d := c.main.PutIf([]byte(m.Key), m.Value, expiry(nowMillis, m.TTLMillis, m.HasTTL), reading.Condition{HasVersion: m.HasVersion, Version: m.Version}, nowMillis)
		if d.Append {
			if f := c.admit([]byte(m.Key), len(m.Value), m.HasTTL); f != nil {
				return shardcore.Verdict{Refusal: f}
			}
			record(&m.batch, d.Record)
			m.Value = recorded(&m.batch, len(m.Value))
		}
		m.judged = Answer{Applied: d.Applied, HasVersion: d.HasVersion, Version: d.Version}
		return shardcore.Verdict{Append: d.Append, Until: d.Until}
	})
}

// recorded is the value in a batch of one put, which ends with it. The message of a put lies in memory for as long as its batch, which is
// kept for watches; it is to keep one copy of the value.
func recorded(b *batch.Batch, n int) []byte { return b.Body[len(b.Body)-n:] }

func (s *Shard) cacheDelete(m *CacheDelete) shardcore.Input {
	m.result = &m.judged
	return s.judge(&m.request, shardcore.Write{Batch: &m.batch}, len(m.Key), func(_ id.Offset, nowMillis uint64) shardcore.Verdict {
		x := s.cache.main.Delete([]byte(m.Key), nowMillis)
		m.judged = Answer{Found: x.Found, Value: x.Value}
		if d, ok := s.log.(*cacheDisk); ok && x.Found {
			if f := d.remove(m, &x); f != nil {
				return shardcore.Verdict{Refusal: f}
			}
			m.judged.Value = m.removed.value
		}
		if x.Append {
			record(&m.batch, x.Record)
		}
		return shardcore.Verdict{Append: x.Append, Until: x.Until}
	})
}

func (s *Shard) cacheDeleteIf(m *CacheDeleteIf) shardcore.Input {
	m.result = &m.judged
	return s.judge(&m.request, shardcore.Write{Batch: &m.batch}, len(m.Key), func(_ id.Offset, nowMillis uint64) shardcore.Verdict {
		d := s.cache.main.DeleteIf([]byte(m.Key), m.Version, nowMillis)
		m.judged = Answer{Applied: d.Applied}
		if d.Append {
			record(&m.batch, d.Record)
		} else {
			m.judged.HasVersion, m.judged.Version = d.HasVersion, d.Version
		}
		return shardcore.Verdict{Append: d.Append, Until: d.Until}
	})
}

func (s *Shard) counterAdd(m *CounterAdd) shardcore.Input {
	m.result = &m.judged
	return s.judge(&m.request, shardcore.Write{Log: shardcore.LogCounters, Batch: &m.batch}, len(m.Key), func(id.Offset, uint64) shardcore.Verdict {
		c := s.cache
		d := c.sums.Add([]byte(m.Key), m.Delta)
		if !d.Append {
			f := wire.Refuse(wire.CodeInvalidRequest, fmt.Sprintf("the counter is at %d and %d more does not fit into 64 bits, nothing was added", d.Sum, m.Delta)).WithReason("counter_overflow", 0)
			return shardcore.Verdict{Refusal: &f, Until: d.Until}
		}
		if err := c.counters.Admit([]byte(m.Key)); err != nil {
			f := wire.Refuse(wire.CodeLimitExceeded, full(err))
			return shardcore.Verdict{Refusal: &f}
		}
		counterRecord(&m.batch, d.Record)
		m.judged = Answer{Sum: d.Sum}
		return shardcore.Verdict{Append: true}
	})
}
