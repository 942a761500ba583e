package main

import (
	"fmt"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// cacheConditional sends a conditional put or delete to a cache; false when the stream is over.
func (t *talk) cacheConditional(of route.Name, key string, put bool) bool {
	r := t.c.run.world.Rand()
	version := t.drawVersion(of, key)
	request := r.Uint64N(1 << 40)
	if !put && version.Set {
		a := &ask{what: "cache_delete_if " + key}
		a.take = func(got answer) error { return t.conditional(of, key, nil, version, request, got, a.span) }
		return t.request(wire.AppendJSONFrame(nil, &wire.CacheDeleteIf{TenantID: of.Tenant, Namespace: of.Namespace, Cache: of.Name, Key: key, Version: version.V, RequestID: request}), a)
	}
	if r.IntN(3) == 0 {
		version = wire.Opt[uint64]{}
	}
	t.records++
	value := payload(recordID(t.c.number, t.number, t.records), 8+r.IntN(100))
	m := &wire.CachePutIf{TenantID: of.Tenant, Namespace: of.Namespace, Cache: of.Name, Key: key, Value: value, Condition: wire.CacheCondition{Version: version}, RequestID: request}
	if r.IntN(4) == 0 {
		m.TTLMillis = wire.Some(1 + r.Uint64N(50))
	}
	a := &ask{what: "cache_put_if " + key}
	a.take = func(got answer) error { return t.conditional(of, key, value, version, request, got, a.span) }
	return t.request(wire.AppendJSONFrame(nil, m), a)
}

// drawVersion draws a version that a key had, mostly the newest.
func (t *talk) drawVersion(of route.Name, key string) wire.Opt[uint64] {
	r, list := t.c.run.world.Rand(), t.c.to.truth.keyOf(of, key).versions
	n := len(list)
	if n > 1 && r.IntN(4) == 0 {
		n = 1 + r.IntN(n)
	}
	if n == 0 || !list[n-1].there {
		return wire.Opt[uint64]{}
	}
	return wire.Some(uint64(list[n-1].offset))
}

// conditional judges the answer to a conditional put, or delete if value is nil, that asked for a version, or for none.
func (t *talk) conditional(of route.Name, key string, value []byte, asked wire.Opt[uint64], request uint64, got answer, s span) error {
	k := t.c.to.truth.keyOf(of, key)
	if got.refusal != nil {
		if value == nil {
			return nil
		}
		return t.notHappened(of, key, string(value), got)
	}
	m, err := isMessage[*wire.CacheConditionResult](got)
	if err != nil {
		return err
	}
	if m.RequestID != request {
		return fmt.Errorf("answered under id %d, want %d", m.RequestID, request)
	}
	if m.Applied {
		t.c.run.marks.hit(markConditionHeld)
		if !k.applied(value, asked, m.Version, s) {
			return fmt.Errorf("applied as version %v, and between steps %d and %d the key was never what was asked for, version %v, and then that", m.Version, s.from, s.to, asked)
		}
		return nil
	}
	t.c.run.marks.hit(markConditionFailed)
	if m.Version == asked {
		return fmt.Errorf("not applied, and the key has what was asked for: version %v", asked)
	}
	if value != nil && k.held(string(value), span{}) {
		return fmt.Errorf("not applied, and the value was stored")
	}
	if !k.was(s, m.Version.Set, func(v *version) bool { return v.offset == id.Offset(m.Version.V) }) {
		return fmt.Errorf("not applied because of version %v, which the key had not between steps %d and %d", m.Version, s.from, s.to)
	}
	return nil
}

// applied reports whether a conditional write was done within the span, on what it asked for. value is nil for a delete.
func (k *keyTruth) applied(value []byte, asked, written wire.Opt[uint64], s span) bool {
	before := version{}
	for _, v := range k.versions {
		is := v.step >= s.from && v.step <= s.to && v.there == (value != nil)
		if value != nil {
			is = is && v.value == string(value) && written.Set && v.offset == id.Offset(written.V)
		}
		held := !asked.Set && before.gone(s)
		if asked.Set {
			held = before.alive(s) && before.offset == id.Offset(asked.V)
		}
		if is && held {
			return true
		}
		before = v
	}
	return false
}
