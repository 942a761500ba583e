package main

import (
	"fmt"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// probe uses every shard once more, over connections of its own: after the last fault each of them must serve.
func (r *run) probe() error {
	for _, b := range r.brokers {
		for _, a := range r.resources {
			c := r.newClient(b, a.Name.Tenant, 1)
			c.offer = offerToday
			c.work("probe", func() { c.probe(a) })
		}
	}
	return r.blame(r.world.Run(stepsMost, func() bool { return r.busy == 0 }))
}

// probe asks each shard of a resource for something that must succeed.
func (c *client) probe(a route.Assignment) {
	t := c.talk(1)
	done := t.authenticate("good")
	for shard := uint32(0); done && shard < a.Shards; shard++ {
		if a.Name.Kind == route.Cache {
			done = t.probeCache(a.Name)
		} else {
			done = t.probeStream(a, shard)
		}
	}
	if !done {
		c.run.failf("%s: the probe of %s found its stream over", c.name, a.Name)
	}
	t.finish()
}

func (t *talk) probeStream(a route.Assignment, shard uint32) bool {
	key := 0
	for a.Routing.Shard(fmt.Appendf(nil, "%d", key), true, a.Shards) != shard {
		key++
	}
	f := publishForm{ack: wire.AckPerBatch, key: fmt.Appendf(nil, "%d", key), sizes: []int{20}}
	if !t.publish(a, f) || !t.idle() {
		return false
	}
	if !t.last.acked {
		t.c.run.failf("%s: a publish to %s/%d was not acknowledged long after the last fault", t.name, a.Name, shard)
	}
	return true
}

func (t *talk) probeCache(of route.Name) bool {
	value := payload(recordID(t.c.number, t.number, 1), 20)
	stored := false
	m := &wire.CachePut{TenantID: of.Tenant, Namespace: of.Namespace, Cache: of.Name, Key: "probe", Value: value, RequestID: wire.Some(uint64(1))}
	ok := t.request(wire.AppendJSONFrame(nil, m), &ask{what: "probing cache_put", take: func(got answer) error {
		stored = got.refusal == nil
		return nil
	}})
	if !ok || !t.idle() {
		return false
	}
	if !stored {
		t.c.run.failf("%s: a put into %s was refused long after the last fault", t.name, of)
	}
	return t.cacheGet(of, "probe", wire.Some(uint64(2))) && t.idle()
}
