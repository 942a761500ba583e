package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// conditionOf draws the version that a conditional write asks for: mostly the newest one that is known.
func (k *cacheKey) conditionOf() wire.Opt[uint64] {
	if n := len(k.changes); n > 0 {
		if k.shard.book.run.world.Rand().IntN(4) == 0 {
			n = 1 + k.shard.book.run.world.Rand().IntN(n)
		}
		if c := k.changes[n-1]; c.write != nil {
			return wire.Some(uint64(c.at))
		}
	}
	return wire.Opt[uint64]{}
}

func (t *dconn) putIf(k *cacheKey) bool {
	r, n := t.c.run.world.Rand(), k.shard.cache.Name
	w := k.write("cache_put_if")
	w.version = k.conditionOf()
	w.absent = !w.version.Set || r.IntN(3) == 0
	if w.absent {
		w.version = wire.Opt[uint64]{}
	}
	if r.IntN(4) == 0 {
		w.ttl = wire.Some(1 + r.Uint64N(t.c.run.plan.Cache.TTL))
	}
	g := k.look(w)
	m := &wire.CachePutIf{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: k.name, Value: t.c.value(w), TTLMillis: w.ttl,
		Condition: wire.CacheCondition{Version: w.version}, RequestID: t.c.run.nextID()}
	return t.cacheSend(k, w.what, m, func(a *dask, got answer) error { return t.conditional(g, a, m.RequestID, got) })
}

func (t *dconn) removeIf(k *cacheKey) bool {
	n := k.shard.cache.Name
	version := k.conditionOf()
	if !version.Set {
		return t.remove(k)
	}
	w := k.write("cache_delete_if")
	w.version = version
	g := k.look(w)
	m := &wire.CacheDeleteIf{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: k.name, Version: version.V, RequestID: t.c.run.nextID()}
	return t.cacheSend(k, w.what, m, func(a *dask, got answer) error { return t.conditional(g, a, m.RequestID, got) })
}

// conditional judges the answer to a conditional write. One that was not applied says what the key has instead.
func (t *dconn) conditional(g *cacheRead, a *dask, request uint64, got answer) error {
	run, k, w := t.c.run, g.key, g.by
	done, refused, err := k.shard.outcomeOf(a, got)
	switch {
	case err != nil:
		return err
	case refused:
		return w.nothing()
	case !done:
		return nil
	}
	m, err := isMessage[*wire.CacheConditionResult](got)
	if err != nil {
		return err
	}
	if m.RequestID != request {
		return fmt.Errorf("answered under id %d, want %d", m.RequestID, request)
	}
	if m.Applied {
		run.marks.hit(dmarkConditionHeld)
		w.answered = true
		w.known()
		switch {
		case w.value == 0:
			return g.version(id.Offset(w.version.V))
		case !m.Version.Set:
			return fmt.Errorf("%s: applied, and no version is told", k)
		}
		return k.saw(id.Offset(m.Version.V), w, wire.Opt[uint64]{})
	}
	if err := w.nothing(); err != nil {
		return err
	}
	run.marks.hit(dmarkConditionFailed)
	if m.Version.Set && m.Version == w.version || !m.Version.Set && w.absent {
		return fmt.Errorf("%s: not applied, and the key has what was asked for: version %v", k, m.Version)
	}
	if !m.Version.Set {
		return g.none()
	}
	if c := k.shard.at[id.Offset(m.Version.V)]; c != nil && c.write != nil && c.write.done > a.sent && c.write.sent < run.world.Steps() {
		run.marks.hit(dmarkConditionWaited)
	}
	return g.had(id.Offset(m.Version.V))
}
