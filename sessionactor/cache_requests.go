package sessionactor

import (
	"context"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
)

// cacheShard finds the shard of a key, or answers why there is none.
func (l *lane) cacheShard(t sessioncore.Token, tenant, namespace, cache, key string) *shardactor.Handle {
	e := l.find(route.Cache, tenant, namespace, cache)
	if e == nil {
		l.refuse(t, notFound("cache", tenant, namespace, cache))
		return nil
	}
	_, target := e.Resolve([]byte(key), true)
	if target.State != route.Local {
		l.refuse(t, elsewhere(target))
		return nil
	}
	return target.Shard
}

// cacheGet reads the view of the shard, under its right to serve, before the read and after it: no message is sent.
func (l *lane) cacheGet(t sessioncore.Token, m *wire.CacheGet) {
	h := l.cacheShard(t, m.TenantID, m.Namespace, m.Cache, m.Key)
	if h == nil {
		l.session.opts.Metrics.CacheRequests.WithLabelValues("get", "refused").Inc()
		return
	}
	served := h.Serving()
	value, _, ok := h.View.Get(m.Key, uint64(l.session.opts.Clock.Now().UnixMilli()))
	if !served || !h.Serving() {
		l.session.opts.Metrics.CacheRequests.WithLabelValues("get", "refused").Inc()
		l.refuse(t, unavailable(wire.ReasonNotReady, "the shard does not serve right now; repeat the request"))
		return
	}
	if ok {
		l.session.opts.Metrics.cacheHit.Inc()
	} else {
		l.session.opts.Metrics.cacheMiss.Inc()
	}
	l.settle(t, sessioncore.Answer{Found: ok, Value: value})
}

func (l *lane) cachePut(ctx context.Context, t sessioncore.Token, m *wire.CachePut) {
	h := l.cacheShard(t, m.TenantID, m.Namespace, m.Cache, m.Key)
	if h == nil {
		l.session.opts.Metrics.CacheRequests.WithLabelValues("put", "refused").Inc()
		return
	}
	msg := &shardactor.CachePut{Key: m.Key, Value: m.Value, TTLMillis: m.TTLMillis.V, HasTTL: m.TTLMillis.Set}
	msg.To(l, shardcore.Token(t))
	msg.Sent = l.sampleSent(t)
	l.sendWrite(ctx, t, h, msg, "put")
}

func (l *lane) cacheDelete(ctx context.Context, t sessioncore.Token, m *wire.CacheDelete) {
	h := l.cacheShard(t, m.TenantID, m.Namespace, m.Cache, m.Key)
	if h == nil {
		l.session.opts.Metrics.CacheRequests.WithLabelValues("delete", "refused").Inc()
		return
	}
	msg := &shardactor.CacheDelete{Key: m.Key}
	msg.To(l, shardcore.Token(t))
	msg.Sent = l.sampleSent(t)
	l.sendWrite(ctx, t, h, msg, "delete")
}

// sendWrite hands a cache write to its shard.
func (l *lane) sendWrite(ctx context.Context, t sessioncore.Token, h *shardactor.Handle, m shardactor.Message, op string) {
	result := "refused"
	if l.submit(ctx, t, h, m, shardactor.Size(m)) {
		result = "ok"
	}
	l.session.opts.Metrics.CacheRequests.WithLabelValues(op, result).Inc()
}
