package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// caching uses the log-backed cache, with several requests open at a time.
func (c *dclient) caching() {
	r, plan := c.run.world.Rand(), &c.run.plan.Cache
	for n := 0; n < plan.Requests; {
		t := c.connect()
		if t == nil {
			return
		}
		for window := 1 + r.IntN(6); n < plan.Requests && t.idle(window); n++ {
			if !t.cacheRequest() || r.IntN(3) == 0 && !c.sleep(plan.Pause) {
				break
			}
		}
		t.idle(0)
		t.close()
	}
}

// cacheRequest sends a random request to the cache.
func (t *dconn) cacheRequest() bool {
	r, b := t.c.run.world.Rand(), t.c.run.caches
	keys := t.c.run.plan.Cache.keys()
	k := b.key(keys[r.IntN(len(keys))])
	switch n := r.IntN(20); {
	case n < 6:
		return t.putValue(k, r.IntN(4) > 0)
	case n < 8:
		return t.putTTL(k)
	case n < 11:
		return t.putIf(k)
	case n < 13:
		return t.remove(k)
	case n < 14:
		return t.removeIf(k)
	case n < 17:
		return t.get(k, nil)
	}
	return t.counterRequest()
}

// write is a request that may change a key.
func (k *cacheKey) write(what string) *cacheWrite {
	run := k.shard.book.run
	w := &cacheWrite{key: k, what: what, sent: run.world.Steps(), sentMS: run.wallMS(), done: never}
	k.writes = append(k.writes, w)
	return w
}

// value makes a value that nobody wrote yet.
func (c *dclient) value(w *cacheWrite) []byte {
	c.records++
	w.value = recordID(c.number, 2, c.records)
	c.run.caches.writes[w.value] = w
	value := payload(w.value, c.run.plan.Cache.drawSize(c.run.world.Rand()))
	w.key.shard.written += len(value) + len(w.key.name)
	return value
}

// send sends a cache request under its id.
func (t *dconn) cacheSend(k *cacheKey, what string, m wire.Message, take func(a *dask, got answer) error) bool {
	return t.send(&dask{what: fmt.Sprintf("%s of %s", what, k.name), take: take}, wire.AppendJSONFrame(nil, m))
}

func (t *dconn) putValue(k *cacheKey, id bool) bool {
	return t.put(k, k.write("cache_put"), id)
}

func (t *dconn) putTTL(k *cacheKey) bool {
	w := k.write("cache_put with an end")
	w.ttl = wire.Some(1 + t.c.run.world.Rand().Uint64N(t.c.run.plan.Cache.TTL))
	return t.put(k, w, true)
}

func (t *dconn) put(k *cacheKey, w *cacheWrite, numbered bool) bool {
	n := k.shard.cache.Name
	m := &wire.CachePut{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: k.name, Value: t.c.value(w), TTLMillis: w.ttl}
	if numbered {
		m.RequestID = wire.Some(t.c.run.nextID())
	}
	return t.cacheSend(k, w.what, m, func(a *dask, got answer) error {
		done, err := w.outcome(a, got)
		if !done || err != nil {
			return err
		}
		switch answer := got.message.(type) {
		case *wire.CacheOK:
			if !m.RequestID.Set || answer.RequestID != m.RequestID.V {
				return fmt.Errorf("answered under id %d, want %v", answer.RequestID, m.RequestID)
			}
		case *wire.OK:
			if m.RequestID.Set {
				return fmt.Errorf("answered ok without an id, want %d", m.RequestID.V)
			}
		default:
			return fmt.Errorf("answered %s", got)
		}
		return nil
	})
}

// outcome notes what became of a write; done says that it was acknowledged.
func (w *cacheWrite) outcome(a *dask, got answer) (done bool, err error) {
	done, refused, err := w.key.shard.outcomeOf(a, got)
	if refused {
		return false, w.nothing()
	}
	if done && err == nil {
		w.answered = true
		w.known()
	}
	return done, err
}

// nothing notes that a write did nothing.
func (w *cacheWrite) nothing() error {
	if w.at.Set {
		return fmt.Errorf("%s: a %s did nothing, and its value %x lies at %d", w.key, w.what, w.value, w.at.V)
	}
	w.refused = true
	return nil
}
