package testbroker

import (
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func (b *Broker) cacheWatch(s *Stream, m *wire.CacheWatch) {
	matches, ok := filterOf(m)
	shards := b.caches[m.Namespace+"/"+m.Cache]
	shard := m.Shard.V
	if m.Key.Set {
		shard = wire.RoutingModulo.Shard([]byte(m.Key.V), true, uint32(max(1, len(shards))))
	}
	var refusal wire.Refusal
	switch {
	case len(shards) == 0:
		refusal = wire.Refuse(wire.CodeNotFound, "cache "+m.Cache+" is not known here")
	case !b.options.Durable:
		refusal = wire.Refuse(wire.CodeInvalidRequest, "a cache in memory has no changes to watch")
	case !ok:
		refusal = wire.Refuse(wire.CodeInvalidRequest, "a watch is of a key or of a prefix")
	case m.FromOffset.Set && m.Retained:
		refusal = wire.Refuse(wire.CodeInvalidRequest, "a watch goes on, or begins with current values")
	case !m.Key.Set && !m.Shard.Set && len(shards) > 1, int(shard) >= len(shards):
		refusal = wire.Refuse(wire.CodeInvalidRequest, "the cache has no such shard")
	default:
		b.startWatch(s, m, shards[shard], matches)
		return
	}
	s.Refuse(refusal)
}

// startWatch accepts a watch and serves it.
func (b *Broker) startWatch(s *Stream, m *wire.CacheWatch, c *cacheShard, matches func(key string) bool) {
	values, tail := c.current(matches)
	at := tail
	answer := &wire.CacheWatchStarted{ResumeOffset: tail}
	switch {
	case m.Retained:
		answer.RetainedCount = wire.Some(uint64(len(values)))
	case m.FromOffset.Set && m.FromOffset.V > tail:
		s.Send(&wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: m.FromOffset.V, Available: tail})
		return
	case m.FromOffset.Set:
		if _, _, _, answer.Resnapshot = c.since(m.FromOffset.V, matches); !answer.Resnapshot {
			at, values = m.FromOffset.V, nil
		}
	default:
		values = nil
	}
	e := s.OpenEvents()
	if e.stream == nil {
		return
	}
	answer.SubscriptionID = e.ID
	s.Send(answer)
	b.work.Go(func() { deliverChanges(e, c, values, at, matches) })
}

// deliverChanges writes values, and then what changes from an offset on, until the client stops the stream. Who is behind the
// history that is kept has lagged.
func deliverChanges(e *Events, c *cacheShard, values []wire.CacheEvent, at id.Offset, matches func(key string) bool) {
	for i := range values {
		e.Send(&values[i])
	}
	for {
		events, next, more, gone := c.since(at, matches)
		if gone {
			e.Send(&wire.CacheWatchLagged{ResumeFrom: at})
			e.Finish()
			return
		}
		for i := range events {
			if !e.Raw(wire.AppendJSONFrame(nil, &events[i])) {
				return
			}
		}
		at = next
		select {
		case <-more:
		case <-e.Stopped():
			return
		}
	}
}
