package sessionactor

import (
	"strings"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// watchRequest is a cache_watch.
type watchRequest struct {
	asked
	scope    watchScope
	since    wire.Opt[id.Offset] // first change that was not seen yet
	retained bool                // current values come first
}

func (r *watchRequest) serve(s *session, n uint64) *feed { return &newWatch(s, n, *r).feed }

// watchScope is what a watch is for: one key, or all keys of a shard that begin with a prefix.
type watchScope struct {
	name   string
	prefix bool
}

func (w *watchScope) has(key []byte) bool {
	if w.prefix {
		return len(key) >= len(w.name) && string(key[:len(w.name)]) == w.name
	}
	return string(key) == w.name
}

// cacheWatch checks a cache_watch and hands it to the session, which owns the watch.
func (l *lane) cacheWatch(t sessioncore.Token, m *wire.CacheWatch) {
	if f := watchShape(m); f != nil {
		l.refuse(t, *f)
		return
	}
	e := l.find(route.Cache, m.TenantID, m.Namespace, m.Cache)
	if e == nil {
		l.refuse(t, notFound("cache", m.TenantID, m.Namespace, m.Cache))
		return
	}
	if !e.Durable {
		l.refuse(t, inMemory())
		return
	}
	shard, f := watchShard(e, m)
	if f != nil {
		l.refuse(t, *f)
		return
	}
	r := &watchRequest{asked: l.asked(t, e, shard), scope: watchScope{m.Key.V, false}, since: m.FromOffset, retained: m.Retained}
	if m.Prefix.Set {
		r.scope = watchScope{m.Prefix.V, true}
	}
	r.capacity = l.session.opts.Delivery.CapacityMax // a batch is mostly one change of one key
	if f := r.locate(); f != nil {
		l.refuse(t, *f)
		return
	}
	if r.shard.Keyed == nil || !r.shard.Showing() {
		l.refuse(t, notReady())
		return
	}
	if _, tail := r.shard.Log.Bounds(); r.since.Set && r.since.V > tail { // before an event stream is opened for it
		l.settle(t, sessioncore.Answer{Message: &wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: r.since.V, Available: tail}})
		return
	}
	l.open(t, namesLen(m.TenantID, m.Namespace, m.Cache)+len(r.scope.name), r)
}

// watchShape refuses a watch for what can be told from the message alone; nil when it goes on.
func watchShape(m *wire.CacheWatch) *wire.Refusal {
	var why []string
	if m.Key.Set == m.Prefix.Set {
		why = append(why, "name either a key or a prefix; the empty prefix is every key of a shard")
	}
	if m.Retained && m.FromOffset.Set {
		why = append(why, "retained and from_offset exclude each other: the first begins with current values, the second with the changes since an offset")
	}
	if len(why) == 0 {
		return nil
	}
	f := wire.Refuse(wire.CodeInvalidRequest, strings.Join(why, "; "))
	return &f
}

// watchShard is the shard that is watched: that of the key, or the one that a prefix comes with.
func watchShard(e *shardactor.Entry, m *wire.CacheWatch) (uint32, *wire.Refusal) {
	if m.Key.Set {
		n, _ := e.Resolve([]byte(m.Key.V), true)
		return n, nil
	}
	if !m.Shard.Set && len(e.Shards()) > 1 {
		f := wire.Refuse(wire.CodeInvalidRequest, "a watch of a prefix is of one shard, and the cache has several: name one with shard, or watch each")
		return 0, &f
	}
	return m.Shard.Or(0), nil
}

// inMemory refuses what takes the log of a cache that has none.
func inMemory() wire.Refusal {
	return wire.Refuse(wire.CodeInvalidRequest, "the cache is kept in memory and has no log: this needs one that is kept on disk").WithReason("in_memory", 0)
}
