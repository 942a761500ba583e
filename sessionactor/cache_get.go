package sessionactor

import (
	"context"
	"errors"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/wire"
)

// cacheGet reads the view of the shard, under its right to show that, before the read and after it: no message is sent. A value that is to be
// read from the log takes the right to serve: while the disk does not answer, that would wait for it in the place of others.
func (l *lane) cacheGet(t sessioncore.Token, m *wire.CacheGet) {
	h, ok := l.cacheShard(t, "get", m.TenantID, m.Namespace, m.Cache, m.Key)
	if !ok {
		return
	}
	if h.Cache == nil || !h.Showing() {
		l.refuseCache(t, "get", notReady())
		return
	}
	v, found := h.Cache.Get(m.Key, l.session.nowMillis())
	if !h.Showing() || v.Cold && !h.Serving() {
		l.refuseCache(t, "get", notReady())
		return
	}
	if !v.Cold {
		l.settle(t, l.got(v, found))
		return
	}
	l.getLater(t, h, m, v)
}

// getLater answers a get from the log. What it takes along is on the heap only here.
func (l *lane) getLater(t sessioncore.Token, h logOf, m *wire.CacheGet, v reading.Live) {
	_ = l.sampleSent(t) // own work ends here
	named := namesLen(m.TenantID, m.Namespace, m.Cache) + len(m.Key)
	if !l.later(t, h.History, named, func(ctx context.Context) sessioncore.Answer { return l.coldGet(ctx, h, m.Key, v) }) {
		l.session.opts.Metrics.CacheRequests.WithLabelValues("get", "refused").Inc()
	}
}

// got answers a get.
func (l *lane) got(v reading.Live, found bool) sessioncore.Answer {
	if !found {
		l.session.opts.Metrics.cacheMiss.Inc()
		return sessioncore.Answer{}
	}
	l.session.opts.Metrics.cacheHit.Inc()
	return sessioncore.Answer{Found: true, Value: v.Value, HasVersion: true, Version: v.Version}
}

// coldGet reads a value from the log, in the goroutine for reads. When a compaction or a write was faster, the key is looked up again: what
// it has by then is as good an answer.
func (l *lane) coldGet(ctx context.Context, h logOf, key string, v reading.Live) sessioncore.Answer {
	var cold recordReader
	for try := range coldTries {
		value, err := cold.read(ctx, h.History, key, &v)
		if !errors.Is(err, errNotThere) {
			if f := l.unread(h, err); f != nil {
				l.session.opts.Metrics.CacheRequests.WithLabelValues("get", "refused").Inc()
				return *f
			}
			v.Value = value
			return l.got(v, true)
		}
		l.session.pauseCold(ctx, l.session.opts.Runtime.NewGate(), try)
		again, found := h.Cache.Get(key, l.session.nowMillis())
		if !h.Serving() {
			break
		}
		if !found || !again.Cold {
			return l.got(again, found)
		}
		v = again
	}
	l.session.opts.Metrics.CacheRequests.WithLabelValues("get", "refused").Inc()
	f := notReady()
	return sessioncore.Answer{Refusal: &f}
}
