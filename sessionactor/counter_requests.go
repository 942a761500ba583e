package sessionactor

import (
	"context"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
)

// counterShard finds the shard of a counter, or answers why there is none.
func (l *lane) counterShard(t sessioncore.Token, op, tenant, namespace, cache, key string) (logOf, bool) {
	h, ok := l.cacheShard(t, op, tenant, namespace, cache, key)
	if ok && !h.entry.Durable {
		l.refuseCache(t, op, inMemory())
		return logOf{}, false
	}
	return h, ok
}

func (l *lane) counterAdd(ctx context.Context, t sessioncore.Token, m *wire.CounterAdd) {
	if h, ok := l.counterShard(t, "counter_add", m.TenantID, m.Namespace, m.Cache, m.Key); ok {
		msg := &shardactor.CounterAdd{Key: m.Key, Delta: m.Delta}
		msg.To(l, shardcore.Token(t))
		msg.Sent = l.sampleSent(t)
		l.sendWrite(ctx, t, h.Handle, msg, "counter_add")
	}
}

// counterGet reads the view of the shard, as cacheGet does.
func (l *lane) counterGet(t sessioncore.Token, m *wire.CounterGet) {
	h, ok := l.counterShard(t, "counter_get", m.TenantID, m.Namespace, m.Cache, m.Key)
	if !ok {
		return
	}
	if h.Counters == nil || !h.Showing() {
		l.refuseCache(t, "counter_get", notReady())
		return
	}
	sum, found := h.Counters.Get(m.Key)
	if !h.Showing() {
		l.refuseCache(t, "counter_get", notReady())
		return
	}
	result := "miss"
	if found {
		result = "hit"
	}
	l.session.opts.Metrics.CacheRequests.WithLabelValues("counter_get", result).Inc()
	l.settle(t, sessioncore.Answer{Message: &wire.CounterValue{Value: wire.Opt[int64]{V: sum, Set: found}, RequestID: m.RequestID}})
}
