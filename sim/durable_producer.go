package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// dproducer is an idempotent producer: it numbers its batches, and sends each again until it is acknowledged.
type dproducer struct {
	c     *dclient
	shard *shardBook
	id    uint64
	made  int       // batches
	next  uint64    // sequence of the next new batch of this id
	open  []*dbatch // not acknowledged, in their order
	last  *dbatch   // the newest that was
	stuck bool      // a batch was refused, or nobody knows: what follows has to be sent again
	cuts  int       // of the shard, when the id was drawn
}

// dbatch is one numbered batch.
type dbatch struct {
	sequence uint64
	ids      []uint64
	region   wire.Region
	tries    int
	lost     bool // nobody knows what became of some try
	conns    int  // connections it was sent on
	on       *dconn
	offset   id.Offset
}

// producing is the life of a producer.
func (c *dclient) producing() {
	r := c.run.world.Rand()
	p := &dproducer{c: c, shard: c.run.book.shards[r.IntN(2)]}
	for p.made < c.run.plan.Requests || len(p.open) > 0 {
		t := c.connect()
		if t == nil {
			return
		}
		p.on(t, 1+r.IntN(8))
		t.close()
	}
}

// on goes on over a connection: first with what is open, then with new batches.
func (p *dproducer) on(t *dconn, window int) {
	r := p.c.run.world.Rand()
	for p.made < p.c.run.plan.Requests || len(p.open) > 0 {
		p.stuck = false
		if p.id == 0 && !p.begin(t) {
			return
		}
		for _, b := range p.open {
			if !t.idle(window-1) || p.stuck || !p.send(t, b) {
				break
			}
		}
		for !t.over && !p.stuck && p.id != 0 && p.made < p.c.run.plan.Requests && t.idle(window-1) {
			if p.stuck || p.id == 0 {
				break
			}
			if p.last != nil && !p.c.run.plan.trims() && r.IntN(6) == 0 && !p.repeat(t, p.last) || !p.send(t, p.make(1+r.IntN(3))) {
				break
			}
			if r.IntN(3) == 0 && !p.c.sleep(4*time.Millisecond) {
				return
			}
		}
		if !t.idle(0) || len(p.open) > 0 && !p.c.retry() {
			return
		}
	}
}

// begin draws an id. What is open is numbered anew: it was refused for certain, or lost with the power.
func (p *dproducer) begin(t *dconn) bool {
	run := p.c.run
	ok := t.do(&dask{what: "producer_init", take: func(_ *dask, got answer) error {
		if got.refusal != nil && got.refusal.Code == wire.CodeDraining {
			return nil
		}
		m, err := isMessage[*wire.ProducerInitOK](got)
		if err == nil {
			p.id, p.next, p.last, p.cuts = m.ProducerID, 0, nil, p.shard.cuts
		}
		return err
	}}, wire.AppendJSONFrame(nil, &wire.ProducerInit{RequestID: run.nextID()}))
	kept := p.open[:0]
	for _, b := range p.open {
		if !b.lost {
			kept = append(kept, b) // the others may be there already, under the old id
		}
	}
	p.open = kept
	for _, b := range p.open {
		b.sequence = p.next
		p.next++
	}
	return ok && p.id != 0
}

func (p *dproducer) make(n int) *dbatch {
	b := &dbatch{sequence: p.next}
	p.next++
	p.made++
	b.ids, b.region = p.c.makeRecords(p.shard, n)
	for _, id := range b.ids {
		p.c.run.book.records[id].numbered = true
	}
	p.open = append(p.open, b)
	return b
}

// send sends a batch, for the first time or again.
func (p *dproducer) send(t *dconn, b *dbatch) bool {
	for _, id := range b.ids {
		p.c.run.book.records[id].refused = false // it may be taken this time
	}
	b.tries++
	if b.on != t {
		b.on = t
		b.conns++
	}
	request, number := p.c.run.nextID(), p.id
	return t.send(&dask{
		what: fmt.Sprintf("batch %d of producer %x to %s, try %d", b.sequence, p.id, p.shard, b.tries),
		take: func(a *dask, got answer) error { return p.answered(t, a, b, request, number, got) },
		lost: func() { b.lost = true },
	}, p.encode(b, request))
}

func (p *dproducer) encode(b *dbatch, request uint64) []byte {
	if b.ids[0]%2 == 0 {
		return wire.AppendJSONFrame(nil, &wire.PublishIdempotent{TenantID: durableTenant, Namespace: namespace, Stream: p.shard.stream.Name.Name,
			Records: b.region, Count: uint32(len(b.ids)), Key: wire.Some(p.shard.key()), RequestID: request, ProducerID: p.id, Sequence: b.sequence})
	}
	return wire.AppendPublish(nil, &wire.Publish{
		Flags:     wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagPublishIdempotent | wire.FlagPublishKeyed,
		RequestID: request, HasRequestID: true, Ack: wire.AckPerBatch, ProducerID: p.id, Sequence: b.sequence, Keyed: true, Key: p.shard.key(),
		Tenant: []byte(durableTenant), Namespace: []byte(namespace), Stream: []byte(p.shard.stream.Name.Name), Count: uint32(len(b.ids)), Region: b.region,
	})
}
