package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// valueAnswer is the answer to a request for the value of a key.
func (k *cacheKey) valueAnswer(request wire.Opt[uint64], got answer) (*wire.CacheValue, error) {
	m, err := isMessage[*wire.CacheValue](got)
	if err != nil {
		return nil, err
	}
	n := k.shard.cache.Name
	if m.RequestID != request || m.Key != k.name || m.Cache != n.Name || m.TenantID != n.Tenant || m.Namespace != n.Namespace {
		return nil, fmt.Errorf("answered for another request: key %q under id %v", m.Key, m.RequestID)
	}
	return m, nil
}

// get reads a key. final, when not nil, is told what it has.
func (t *dconn) get(k *cacheKey, final func(*wire.CacheValue) error) bool {
	n, g := k.shard.cache.Name, k.look(nil)
	m := &wire.CacheGet{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: k.name, RequestID: wire.Some(t.c.run.nextID())}
	return t.cacheSend(k, "cache_get", m, func(_ *dask, got answer) error {
		if got.refusal != nil {
			return nil
		}
		v, err := k.valueAnswer(m.RequestID, got)
		if err == nil {
			err = t.isValue(g, v)
		}
		if err == nil && final != nil {
			err = final(v)
		}
		return err
	})
}

// isValue judges what a get has read.
func (t *dconn) isValue(g *cacheRead, v *wire.CacheValue) error {
	k := g.key
	if !v.Value.Set {
		t.c.run.marks.hit(dmarkCacheMiss)
		return g.none()
	}
	if !v.Version.Set {
		return fmt.Errorf("%s: a value without a version", k)
	}
	w, err := k.valueOf(v.Value.V)
	if err != nil {
		return err
	}
	t.c.run.marks.hit(dmarkCacheHit)
	if t.c.run.plan.Cache.cold(len(v.Value.V)) {
		t.c.run.marks.hit(dmarkCold)
	}
	if err := g.found(w); err != nil {
		return err
	}
	if err := g.version(id.Offset(v.Version.V)); err != nil {
		return err
	}
	return k.saw(id.Offset(v.Version.V), w, wire.Opt[uint64]{})
}

// remove deletes a key, which answers what it had.
func (t *dconn) remove(k *cacheKey) bool {
	n := k.shard.cache.Name
	w := k.write("cache_delete")
	g := k.look(w)
	m := &wire.CacheDelete{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: k.name, RequestID: wire.Some(t.c.run.nextID())}
	return t.cacheSend(k, w.what, m, func(a *dask, got answer) error {
		done, err := w.outcome(a, got)
		if !done || err != nil {
			return err
		}
		v, err := k.valueAnswer(m.RequestID, got)
		if err != nil || !v.Value.Set {
			if err == nil {
				err = g.none()
			}
			return err
		}
		x, err := k.valueOf(v.Value.V)
		if err != nil {
			return err
		}
		w.hasBefore, w.removed = true, x.value
		if t.c.run.plan.Cache.cold(len(v.Value.V)) {
			t.c.run.marks.hit(dmarkColdRemoved)
		}
		x.known()
		return g.found(x)
	})
}
