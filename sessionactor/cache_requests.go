package sessionactor

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// cacheShard finds the shard of a key, or answers why there is none. op is the request's name in the metric that counts it.
func (l *lane) cacheShard(t sessioncore.Token, op, tenant, namespace, cache, key string) (logOf, bool) {
	e := l.find(route.Cache, tenant, namespace, cache)
	if e == nil {
		l.refuseCache(t, op, notFound("cache", tenant, namespace, cache))
		return logOf{}, false
	}
	n, target := e.Resolve([]byte(key), true)
	if target.State != route.Local {
		l.refuseCache(t, op, elsewhere(target))
		return logOf{}, false
	}
	return logOf{e, n, target.Shard}, true
}

func (l *lane) refuseCache(t sessioncore.Token, op string, f wire.Refusal) {
	l.session.opts.Metrics.CacheRequests.WithLabelValues(op, "refused").Inc()
	l.refuse(t, f)
}

func (l *lane) cachePut(ctx context.Context, t sessioncore.Token, m *wire.CachePut) {
	if h, ok := l.cacheShard(t, "put", m.TenantID, m.Namespace, m.Cache, m.Key); ok && l.lives(t, "put", m.TTLMillis) && l.returns(t, "put", &h, m.Key, m.Value) {
		msg := &shardactor.CachePut{Key: m.Key, Value: m.Value, TTLMillis: m.TTLMillis.V, HasTTL: m.TTLMillis.Set}
		msg.To(l, shardcore.Token(t))
		msg.Sent = l.sampleSent(t)
		l.sendWrite(ctx, t, h.Handle, msg, "put")
	}
}

func (l *lane) cacheDelete(ctx context.Context, t sessioncore.Token, m *wire.CacheDelete) {
	if h, ok := l.cacheShard(t, "delete", m.TenantID, m.Namespace, m.Cache, m.Key); ok {
		msg := &shardactor.CacheDelete{Key: m.Key}
		msg.To(l, shardcore.Token(t))
		msg.Sent = l.sampleSent(t)
		l.sendWrite(ctx, t, h.Handle, msg, "delete")
	}
}

func (l *lane) cachePutIf(ctx context.Context, t sessioncore.Token, m *wire.CachePutIf) {
	if h, ok := l.cacheShard(t, "put_if", m.TenantID, m.Namespace, m.Cache, m.Key); ok && l.lives(t, "put_if", m.TTLMillis) && l.returns(t, "put_if", &h, m.Key, m.Value) {
		msg := &shardactor.CachePutIf{Key: m.Key, Value: m.Value, TTLMillis: m.TTLMillis.V, HasTTL: m.TTLMillis.Set}
		msg.HasVersion, msg.Version = m.Condition.Version.Set, id.Offset(m.Condition.Version.V)
		msg.To(l, shardcore.Token(t))
		msg.Sent = l.sampleSent(t)
		l.sendWrite(ctx, t, h.Handle, msg, "put_if")
	}
}

func (l *lane) cacheDeleteIf(ctx context.Context, t sessioncore.Token, m *wire.CacheDeleteIf) {
	if h, ok := l.cacheShard(t, "delete_if", m.TenantID, m.Namespace, m.Cache, m.Key); ok {
		msg := &shardactor.CacheDeleteIf{Key: m.Key, Version: id.Offset(m.Version)}
		msg.To(l, shardcore.Token(t))
		msg.Sent = l.sampleSent(t)
		l.sendWrite(ctx, t, h.Handle, msg, "delete_if")
	}
}

// lives refuses a value that would be over before it is there: nobody means that, and a put that is answered is to be found.
func (l *lane) lives(t sessioncore.Token, op string, ttl wire.Opt[uint64]) bool {
	if !ttl.Set || ttl.V > 0 {
		return true
	}
	l.refuseCache(t, op, wire.Refuse(wire.CodeInvalidRequest, "ttl_ms is 0: a value lives for 1 ms at least; leave it out for one that does not end"))
	return false
}

// returns refuses a value that could be stored and never told again: the messages that answer it have more around it than the one that it
// came in. Each of them is a frame.
func (l *lane) returns(t sessioncore.Token, op string, h *logOf, key string, value []byte) bool {
	if len(value) < roomyValue {
		return true
	}
	over := base64.StdEncoding.EncodedLen(len(value)) + cacheEnvelope(&h.entry.Name, key) - wire.MaxPayload
	if over <= 0 {
		return true
	}
	l.refuseCache(t, op, wire.Refuse(wire.CodeLimitExceeded,
		fmt.Sprintf("the value has %d bytes, and with its key it does not fit into the answer to a get, which is one frame of %d bytes in base64; store %d bytes less", len(value), wire.MaxPayload, (over+3)/4*3)))
	return false
}

// roomyValue is how long a value may be for everything around it to fit into a frame, whatever the key and the names are.
const roomyValue = 8 << 20

// cacheEnvelope is how long a frame's payload with a value may be beside the value.
func cacheEnvelope(cache *route.Name, key string) int {
	const most = math.MaxUint64
	answer := wire.AppendJSONFrame(nil, &wire.CacheValue{
		TenantID: cache.Tenant, Namespace: cache.Namespace, Cache: cache.Name, Key: key, Value: wire.Some([]byte{}), RequestID: wire.Some(uint64(most)), Version: wire.Some(uint64(most)),
	})
	event := wire.AppendJSONFrame(nil, &wire.CacheEvent{Key: key, Value: wire.Some([]byte{}), Offset: most, ExpiresAtMillis: most})
	return max(len(answer), len(event)) - wire.HeaderSize
}

// sendWrite hands a write to the shard of a cache.
func (l *lane) sendWrite(ctx context.Context, t sessioncore.Token, h *shardactor.Handle, m shardactor.Message, op string) {
	result := "refused"
	if l.submit(ctx, t, h, m, shardactor.Size(m)) {
		result = "ok"
		if h.Durable {
			l.awaitOutcome(t)
		}
	}
	l.session.opts.Metrics.CacheRequests.WithLabelValues(op, result).Inc()
}
