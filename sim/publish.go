package main

import (
	"fmt"
	"strings"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// publish is one publish of a client and what became of it.
type publish struct {
	name    route.Name
	shard   uint32 // that the key leads to
	ids     []uint64
	begun   int // step in which it was sent
	acked   bool
	refused bool
}

// publishForm is how a publish is written.
type publishForm struct {
	json, batch bool
	ack         wire.AckMode
	key         []byte // nil: unkeyed
	sizes       []int
}

// drawForm chooses one.
func (c *client) drawForm() publishForm {
	r := c.run.world.Rand()
	f := publishForm{json: r.IntN(4) == 0, ack: []wire.AckMode{wire.AckNone, wire.AckPerMessage, wire.AckPerBatch, wire.AckPerBatch}[r.IntN(4)]}
	if r.IntN(3) > 0 {
		f.key = fmt.Appendf(nil, "key-%d", r.IntN(40))
	}
	n := 1 + r.IntN(4)
	switch {
	case f.json && r.IntN(2) == 0:
		n = 1
	case r.IntN(20) == 0:
		n = 60 + r.IntN(80) // more than one event frame holds
	case r.IntN(30) == 0:
		n = 0
	}
	f.batch = n != 1 || r.IntN(2) == 0
	for range n {
		size := 8 + r.IntN(200)
		switch r.IntN(300) {
		case 0:
			size = 64<<10 + r.IntN(64<<10) // books room for a frame that is being read
		case 1, 2, 3, 4, 5:
			size = 4<<10 + r.IntN(30<<10)
		}
		f.sizes = append(f.sizes, size)
	}
	return f
}

// publish sends one; false when the stream is over.
func (t *talk) publish(to route.Assignment, f publishForm) bool {
	p, region := t.compose(to, f)
	a := &ask{what: fmt.Sprintf("publish of %d to %s/%d, ack %s", len(p.ids), to.Name, p.shard, f.ack)}
	requestID := uint64(1_000_000 + len(t.c.run.publishes))
	if f.ack != wire.AckNone {
		a.take = func(got answer) error { return t.c.published(p, f, requestID, got) }
	}
	p.begun = t.c.run.world.Steps()
	return t.request(encode(p, f, region, requestID), a)
}

// compose makes the records of a publish and registers it.
func (t *talk) compose(to route.Assignment, f publishForm) (*publish, wire.Region) {
	p := &publish{name: to.Name, shard: to.Routing.Shard(f.key, f.key != nil, to.Shards)}
	t.last = p
	var region wire.Region
	for _, size := range f.sizes {
		t.records++
		id := recordID(t.c.number, t.number, t.records)
		p.ids = append(p.ids, id)
		region = wire.AppendPayload(region, payload(id, size))
		t.c.run.sent[id] = p
	}
	t.c.run.publishes = append(t.c.run.publishes, published{t.c.to, p})
	return p, region
}

// published is a publish and the node it went to.
type published struct {
	to *broker
	p  *publish
}

// encode writes the frame.
func encode(p *publish, f publishForm, region wire.Region, requestID uint64) []byte {
	if !f.json {
		return wire.AppendPublish(nil, &wire.Publish{
			RequestID: requestID, HasRequestID: f.ack != wire.AckNone, Ack: f.ack, Keyed: f.key != nil, Key: f.key,
			Tenant: []byte(p.name.Tenant), Namespace: []byte(p.name.Namespace), Stream: []byte(p.name.Name), Count: uint32(len(p.ids)), Region: region,
		})
	}
	id := wire.Opt[uint64]{V: requestID, Set: f.ack != wire.AckNone}
	key := wire.Opt[[]byte]{V: f.key, Set: f.key != nil}
	if f.batch {
		return wire.AppendJSONFrame(nil, &wire.PublishBatchMessage{
			TenantID: p.name.Tenant, Namespace: p.name.Namespace, Stream: p.name.Name, Records: region, Count: uint32(len(p.ids)), Key: key, RequestID: id, Ack: f.ack,
		})
	}
	return wire.AppendJSONFrame(nil, &wire.PublishMessage{
		TenantID: p.name.Tenant, Namespace: p.name.Namespace, Stream: p.name.Name, Record: region, Key: key, RequestID: id, Ack: f.ack,
	})
}

// published judges the answer to a publish: under its id, and true.
func (c *client) published(p *publish, f publishForm, requestID uint64, got answer) error {
	var id uint64
	switch m := got.message.(type) {
	case nil:
		id = got.ack.RequestID
		if f.json {
			return fmt.Errorf("a JSON publish was answered in binary")
		}
	case *wire.PublishOK:
		id = m.RequestID
	case *wire.PublishError:
		id = m.RequestID
	default:
		return fmt.Errorf("answered %s", got)
	}
	if id != requestID {
		return fmt.Errorf("answered under id %d, want %d", id, requestID)
	}
	if got.refusal != nil {
		return c.refused(p, got.refusal)
	}
	p.acked = true
	for _, id := range p.ids {
		at, ok := c.to.truth.records[id]
		if !ok {
			return fmt.Errorf("acknowledged, and record %x was never stepped", id)
		}
		if s := at.life.shard; s.name != p.name || s.index != p.shard {
			return fmt.Errorf("acknowledged, and record %x went to %s/%d", id, s.name, s.index)
		}
	}
	return nil
}

// refused notes why a publish was refused. A refusal that says nothing happened must be true, now and at the end.
func (c *client) refused(p *publish, f *wire.Refusal) error {
	switch {
	case strings.HasPrefix(f.Message, "the shard's queue is full"):
		c.run.marks.hit(markRefusedByLane)
	case strings.HasPrefix(f.Message, "the node has enough"):
		c.run.marks.hit(markRefusedByPermit)
	}
	if f.Code == wire.CodeUnknown || f.Retry == wire.RetryOutcomeUnknown {
		return nil
	}
	p.refused = true
	return nil
}
