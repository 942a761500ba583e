package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// remembering uses the cache in memory of a node that has a disk, and asks of it what only a log can do.
func (c *dclient) remembering() {
	run, n := c.run, c.run.resources[notesCache].Name
	c.each(4, func(t *dconn) bool {
		c.records++
		value := payload(recordID(c.number, 3, c.records), 40)
		put := &wire.CachePut{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: "k", Value: value, RequestID: wire.Some(run.nextID())}
		stored := false
		ok := t.do(&dask{what: "cache_put in memory", take: func(_ *dask, got answer) error {
			stored = got.refusal == nil
			return nil
		}}, wire.AppendJSONFrame(nil, put))
		if !ok {
			return false
		}
		get := &wire.CacheGet{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: "k", RequestID: wire.Some(run.nextID())}
		ok = t.do(&dask{what: "cache_get in memory", take: func(_ *dask, got answer) error {
			if got.refusal != nil {
				return nil
			}
			m, err := isMessage[*wire.CacheValue](got)
			if err == nil && stored && m.Value.Set && string(m.Value.V) != string(value) { // unset: its shard has failed meanwhile
				return fmt.Errorf("another value than the one that was put")
			}
			return err
		}}, wire.AppendJSONFrame(nil, get))
		return ok && t.refusedInMemory(&wire.CacheWatch{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: wire.Some("k")}) &&
			t.refusedInMemory(&wire.CounterAdd{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: "k", Delta: 1, RequestID: run.nextID()}) && c.sleep(10*time.Millisecond)
	})
}

// refusedInMemory asks for what takes a log.
func (t *dconn) refusedInMemory(m wire.Message) bool {
	return t.do(&dask{what: m.MessageType() + " in memory", take: func(_ *dask, got answer) error {
		f := got.refusal
		switch {
		case f == nil:
			return fmt.Errorf("answered %s, and the cache has no log", got)
		case f.Reason == "in_memory":
			t.c.run.marks.hit(dmarkInMemory)
		case f.Code != wire.CodeNotFound && f.Code != wire.CodeDraining && f.Code != wire.CodeShardUnavailable:
			return fmt.Errorf("answered %s, want a refusal that says in_memory", got)
		}
		return nil
	}}, wire.AppendJSONFrame(nil, m))
}
