package testbroker

import (
	"math"

	"github.com/felixd/felixd/wire"
)

func (b *Broker) cachePutIf(s *Stream, m *wire.CachePutIf) {
	c := b.cacheShard(s, m.Namespace, m.Cache, m.Key)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &wire.CacheConditionResult{RequestID: m.RequestID}
	e, ok := c.get(m.Key)
	want := m.Condition.Version
	if answer.Applied = ok == want.Set && (!ok || uint64(e.version) == want.V); answer.Applied {
		answer.Version = wire.Some(uint64(c.put(m.Key, m.Value, m.TTLMillis)))
	} else if ok {
		answer.Version = wire.Some(uint64(e.version))
	}
	b.answerWrite(s, answer)
}

func (b *Broker) cacheDeleteIf(s *Stream, m *wire.CacheDeleteIf) {
	c := b.cacheShard(s, m.Namespace, m.Cache, m.Key)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &wire.CacheConditionResult{RequestID: m.RequestID}
	e, ok := c.get(m.Key)
	if answer.Applied = ok && uint64(e.version) == m.Version; answer.Applied {
		c.remove(m.Key)
	} else if ok {
		answer.Version = wire.Some(uint64(e.version))
	}
	b.answerWrite(s, answer)
}

func (b *Broker) counterAdd(s *Stream, m *wire.CounterAdd) {
	c := b.counters(s, m.Namespace, m.Cache, m.Key)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.counters[m.Key]
	if m.Delta > 0 && old > math.MaxInt64-m.Delta || m.Delta < 0 && old < math.MinInt64-m.Delta {
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "the sum does not fit into 64 bits"))
		return
	}
	c.counters[m.Key] = old + m.Delta
	b.answerWrite(s, &wire.CounterValue{RequestID: m.RequestID, Value: wire.Some(old + m.Delta)})
}

func (b *Broker) counterGet(s *Stream, m *wire.CounterGet) {
	c := b.counters(s, m.Namespace, m.Cache, m.Key)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &wire.CounterValue{RequestID: m.RequestID}
	if sum, ok := c.counters[m.Key]; ok {
		answer.Value = wire.Some(sum)
	}
	s.Send(answer)
}

// counters finds the shard of a counter, or refuses the request.
func (b *Broker) counters(s *Stream, namespace, cache, key string) *cacheShard {
	if !b.options.Durable {
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "a cache in memory has no counters"))
		return nil
	}
	return b.cacheShard(s, namespace, cache, key)
}

// answerWrite answers a conditional write or an addition that has taken effect or not, unless the test wants no answer.
func (b *Broker) answerWrite(s *Stream, answer wire.Message) {
	if b.options.OnCacheWritten == nil || !b.options.OnCacheWritten(s, answer) {
		s.Send(answer)
	}
}
