package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// makeRecords makes n records for a shard, each sent by nobody yet.
func (c *dclient) makeRecords(s *shardBook, n int) (ids []uint64, region wire.Region) {
	for range n {
		c.records++
		id := recordID(c.number, 1, c.records)
		ids = append(ids, id)
		region = wire.AppendPayload(region, payload(id, c.drawSize()))
		c.run.book.records[id] = &recordBook{shard: s}
	}
	return ids, region
}

// drawSize is mostly small; some records alone fill a segment.
func (c *dclient) drawSize() int {
	r := c.run.world.Rand()
	switch r.IntN(24) {
	case 0:
		return 3000 + r.IntN(12<<10)
	case 1, 2:
		return 500 + r.IntN(1500)
	}
	return 8 + r.IntN(150)
}

// key leads to a shard.
func (s *shardBook) key() []byte {
	for n := 0; ; n++ {
		key := fmt.Appendf(nil, "key-%d", n)
		if s.stream.Routing.Shard(key, true, s.stream.Shards) == s.index {
			return key
		}
	}
}

// plain publishes records that are sent once, whatever becomes of them.
func (c *dclient) plain() {
	r := c.run.world.Rand()
	for n := 0; n < c.run.plan.Requests; {
		t := c.connect()
		if t == nil {
			return
		}
		for window := 1 + r.IntN(6); n < c.run.plan.Requests && t.idle(window); n++ {
			if !t.publish(c.run.book.shards[r.IntN(2)], 1+r.IntN(4), r.IntN(4) > 0) || r.IntN(3) == 0 && !c.sleep(5*time.Millisecond) {
				break
			}
		}
		t.idle(0)
		t.close()
	}
}

// publish sends records to a shard; acked asks for an answer.
func (t *dconn) publish(s *shardBook, n int, acked bool) bool {
	run := t.c.run
	ids, region := t.c.makeRecords(s, n)
	request := run.nextID()
	a := &dask{what: fmt.Sprintf("publish of %d to %s, acked: %v", n, s, acked)}
	p := &wire.Publish{
		RequestID: request, HasRequestID: acked, Ack: wire.AckNone, Keyed: true, Key: s.key(), Tenant: []byte(durableTenant), Namespace: []byte(namespace),
		Stream: []byte(s.stream.Name.Name), Count: uint32(n), Region: region,
	}
	if !acked {
		return t.send(a, wire.AppendPublish(nil, p))
	}
	p.Ack = wire.AckPerBatch
	a.take = func(a *dask, got answer) error { return s.published(a, request, ids, got) }
	if run.world.Rand().IntN(3) == 0 {
		return t.send(a, wire.AppendJSONFrame(nil, &wire.PublishBatchMessage{TenantID: durableTenant, Namespace: namespace, Stream: s.stream.Name.Name,
			Records: region, Count: uint32(n), Key: wire.Some(p.Key), RequestID: wire.Some(request), Ack: wire.AckPerBatch}))
	}
	return t.send(a, wire.AppendPublish(nil, p))
}

// published judges the answer to a publish that is sent once.
func (s *shardBook) published(a *dask, request uint64, ids []uint64, got answer) error {
	run := s.book.run
	o, err := run.judge(request, got)
	switch {
	case err != nil:
		return err
	case o.acked && !o.offset.Set && run.plan.Limits.AckAtClaim:
		run.marks.hit(dmarkAtClaim)
		return nil // which promises nothing
	case o.acked && !o.offset.Set:
		return fmt.Errorf("acknowledged without an offset")
	case o.acked:
		return s.acked(o.offset.V, ids, a.sent)
	case o.refused:
		for _, id := range ids {
			if err := s.book.refused(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// ticking publishes to the stream in memory, and asks of it what only a log can do.
func (c *dclient) ticking() {
	t := c.connect()
	if t == nil {
		return
	}
	defer t.close()
	run, name := c.run, c.run.resources[ticksStream].Name
	for range 3 {
		request := run.nextID()
		ok := t.do(&dask{what: "publish to the stream in memory", take: func(_ *dask, got answer) error {
			_, err := run.judge(request, got)
			return err
		}}, wire.AppendPublish(nil, &wire.Publish{RequestID: request, HasRequestID: true, Ack: wire.AckPerBatch, Tenant: []byte(name.Tenant), Namespace: []byte(name.Namespace),
			Stream: []byte(name.Name), Count: 1, Region: wire.AppendPayload(nil, []byte("tick"))}))
		if !ok {
			return
		}
	}
	request := run.nextID()
	t.do(&dask{what: "publish_if to the stream in memory", take: func(_ *dask, got answer) error {
		o, err := run.judge(request, got)
		if err == nil && o.why != nil && (o.why.Code == wire.CodeNotFound || o.why.Code == wire.CodeDraining) {
			return nil // the node does not know yet what it hosts, or stops
		}
		if err == nil && (o.why == nil || o.why.Reason != "ephemeral") {
			return fmt.Errorf("answered %s, want a refusal that says ephemeral", got)
		}
		run.marks.hit(dmarkEphemeral)
		return err
	}}, wire.AppendJSONFrame(nil, &wire.PublishIf{TenantID: name.Tenant, Namespace: name.Namespace, Stream: name.Name, Records: wire.AppendPayload(nil, []byte("tick")), Count: 1, RequestID: request}))
}
