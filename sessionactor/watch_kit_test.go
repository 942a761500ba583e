package sessionactor

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// watchOf watches all keys of a cache of one shard, unless change says otherwise.
func watchOf(name string, change ...func(*wire.CacheWatch)) *wire.CacheWatch {
	m := &wire.CacheWatch{TenantID: tenant, Namespace: namespace, Cache: name, Prefix: wire.Some("")}
	for _, f := range change {
		f(m)
	}
	return m
}

func ofKey(key string) func(*wire.CacheWatch) {
	return func(m *wire.CacheWatch) { m.Key, m.Prefix = wire.Some(key), wire.Opt[string]{} }
}

func ofPrefix(p string) func(*wire.CacheWatch) {
	return func(m *wire.CacheWatch) { m.Prefix = wire.Some(p) }
}

func since(o id.Offset) func(*wire.CacheWatch) {
	return func(m *wire.CacheWatch) { m.FromOffset = wire.Some(o) }
}

func retained(m *wire.CacheWatch) { m.Retained = true }

func putTo(name, key, value string) *wire.CachePut {
	return &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: name, Key: key, Value: []byte(value), RequestID: wire.Some(uint64(1))}
}

func getFrom(name, key string) *wire.CacheGet {
	return &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: name, Key: key, RequestID: wire.Some(uint64(1))}
}

func deleteFrom(name, key string) *wire.CacheDelete {
	return &wire.CacheDelete{TenantID: tenant, Namespace: namespace, Cache: name, Key: key, RequestID: wire.Some(uint64(1))}
}

func addTo(name, key string, delta int64) *wire.CounterAdd {
	return &wire.CounterAdd{TenantID: tenant, Namespace: namespace, Cache: name, Key: key, Delta: delta, RequestID: 1}
}

// put puts, and wants it done.
func (l *line) put(name, key, value string) {
	l.t.Helper()
	if f := l.ask(putTo(name, key, value)); string(f.payload) != `{"type":"cache_ok","request_id":1}` {
		l.t.Fatalf("the put was answered %s", f.payload)
	}
}

// watching is the event stream of a watch behind its hello.
type watching struct {
	*line
	started *wire.CacheWatchStarted
}

// watch asks for a watch on l and waits for its event stream.
func (l *line) watch(c *memConn, m *wire.CacheWatch) watching {
	l.t.Helper()
	f := l.ask(m)
	started, is := f.message.(*wire.CacheWatchStarted)
	if !is {
		l.t.Fatalf("the watch was answered %s", f.payload)
	}
	h := want(l.t, c.toClient, "the event stream")
	w := watching{line: &line{t: l.t, s: h, h: h}, started: started}
	if hello, is := w.next().message.(*wire.EventStreamHello); !is || hello.SubscriptionID != started.SubscriptionID {
		l.t.Fatalf("the event stream of watch %d begins with %+v", started.SubscriptionID, hello)
	}
	return w
}

// change reads the next frame, which is to be a change.
func (w watching) change() *wire.CacheEvent {
	w.t.Helper()
	f := w.next()
	e, is := f.message.(*wire.CacheEvent)
	if !is {
		w.t.Fatalf("%s is no change", f.payload)
	}
	return e
}

// said writes a change down.
func said(e *wire.CacheEvent) string {
	if !e.Value.Set {
		return fmt.Sprintf("%s gone at %d", e.Key, e.Offset)
	}
	return fmt.Sprintf("%s=%s at %d", e.Key, e.Value.V, e.Offset)
}

// expect wants exactly these changes next.
func (w watching) expect(list ...string) {
	w.t.Helper()
	for _, text := range list {
		if got := said(w.change()); got != text {
			w.t.Fatalf("got %s, want %s", got, text)
		}
	}
}

// cacheShard is the handle of a shard of a cache.
func (x *site) cacheShard(t testing.TB, name string, n uint32) *shardactor.Handle {
	t.Helper()
	target, ok := x.opts.Table.Get(cache(name, 1).Name).Shard(n)
	if !ok || target.Shard == nil {
		t.Fatalf("%s/%d is not served", name, n)
	}
	return target.Shard
}
