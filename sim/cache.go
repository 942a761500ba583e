package main

import (
	"fmt"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// cacheKeys is how many keys the clients of a cache share: few, so that they meet.
const cacheKeys = 8

// cacheRequest sends a random request to a cache; false when the stream is over.
func (t *talk) cacheRequest(of route.Name) bool {
	r := t.c.run.world.Rand()
	key := fmt.Sprintf("k%d", r.IntN(cacheKeys))
	var id wire.Opt[uint64]
	if r.IntN(3) > 0 {
		id = wire.Some(t.c.run.world.Rand().Uint64N(1 << 40))
	}
	if t.c.conditional && r.IntN(4) == 0 {
		return t.cacheConditional(of, key, r.IntN(3) > 0)
	}
	switch n := r.IntN(10); {
	case n < 4:
		return t.cachePut(of, key, id)
	case n < 5:
		return t.cacheDelete(of, key, id)
	}
	return t.cacheGet(of, key, id)
}

func (t *talk) cachePut(of route.Name, key string, id wire.Opt[uint64]) bool {
	r := t.c.run.world.Rand()
	t.records++
	value := payload(recordID(t.c.number, t.number, t.records), 8+r.IntN(100))
	m := &wire.CachePut{TenantID: of.Tenant, Namespace: of.Namespace, Cache: of.Name, Key: key, Value: value, RequestID: id}
	if r.IntN(4) == 0 {
		m.TTLMillis = wire.Some(1 + r.Uint64N(50))
	}
	a := &ask{what: "cache_put " + key}
	a.take = func(got answer) error {
		switch answer := got.message.(type) {
		case *wire.ErrorAnswer:
			return t.notHappened(of, key, string(value), got)
		case *wire.CacheOK:
			if !id.Set || answer.RequestID != id.V {
				return fmt.Errorf("answered %s under id %d, want %v", got, answer.RequestID, id)
			}
		case *wire.OK:
			if id.Set {
				return fmt.Errorf("answered ok without an id, want %d", id.V)
			}
		default:
			return fmt.Errorf("answered %s", got)
		}
		if !t.c.to.truth.keyOf(of, key).held(string(value), a.span) {
			return fmt.Errorf("acknowledged, and the value was never stored meanwhile")
		}
		return nil
	}
	return t.request(wire.AppendJSONFrame(nil, m), a)
}

func (t *talk) cacheDelete(of route.Name, key string, id wire.Opt[uint64]) bool {
	m := &wire.CacheDelete{TenantID: of.Tenant, Namespace: of.Namespace, Cache: of.Name, Key: key, RequestID: id}
	a := &ask{what: "cache_delete " + key}
	a.take = func(got answer) error { return t.cacheValue(of, key, id, got, a.span) }
	return t.request(wire.AppendJSONFrame(nil, m), a)
}

func (t *talk) cacheGet(of route.Name, key string, id wire.Opt[uint64]) bool {
	m := &wire.CacheGet{TenantID: of.Tenant, Namespace: of.Namespace, Cache: of.Name, Key: key, RequestID: id}
	a := &ask{what: "cache_get " + key}
	a.take = func(got answer) error { return t.cacheValue(of, key, id, got, a.span) }
	return t.request(wire.AppendJSONFrame(nil, m), a)
}

// cacheValue judges what a get read or a delete removed: the key must have been like that between the request and its answer.
func (t *talk) cacheValue(of route.Name, key string, id wire.Opt[uint64], got answer, s span) error {
	if got.refusal != nil {
		return nil
	}
	m, err := isMessage[*wire.CacheValue](got)
	if err != nil {
		return err
	}
	if m.RequestID != id || m.Key != key || m.Cache != of.Name || m.TenantID != of.Tenant || m.Namespace != of.Namespace {
		return fmt.Errorf("answered for another request: %+v", m)
	}
	if m.Version.Set && !t.c.to.truth.keyOf(of, key).was(s, true, func(v *version) bool { return uint64(v.offset) == m.Version.V && v.value == string(m.Value.V) }) {
		return fmt.Errorf("saw version %d of %q, which the key was not between steps %d and %d", m.Version.V, m.Value.V, s.from, s.to)
	}
	if !t.c.to.truth.keyOf(of, key).could(m.Value.Set, string(m.Value.V), s) {
		return fmt.Errorf("saw %q (there: %v), which the key was not between steps %d and %d", m.Value.V, m.Value.Set, s.from, s.to)
	}
	return nil
}

// notHappened checks a refusal that says so.
func (t *talk) notHappened(of route.Name, key, value string, got answer) error {
	f := got.refusal
	if f.Code == wire.CodeUnknown || f.Retry == wire.RetryOutcomeUnknown || f.Code == wire.CodeLimitExceeded {
		return nil
	}
	if t.c.to.truth.keyOf(of, key).held(value, span{}) {
		return fmt.Errorf("refused with %v, and the value was stored", f)
	}
	return nil
}

// keyOf finds the history of a key; caches have one shard here.
func (t *truth) keyOf(of route.Name, key string) *keyTruth { return t.shard(of, 0).key(key) }

// held reports whether the key had that value at some time, within the span if it is not empty. Values are never used twice.
func (k *keyTruth) held(value string, s span) bool {
	for _, v := range k.versions {
		if v.there && v.value == value {
			return s.to == 0 || v.step >= s.from && v.step <= s.to
		}
	}
	return false
}
