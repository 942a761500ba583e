package shardcore

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// Digest is the state of the core in 64 bits, for a simulation's trace: cores that were stepped alike have equal digests. Where answers
// go, and the bytes of batches, are not in it.
func (c *Core) Digest() uint64 {
	h := fnv.New64a()
	var buf [8]byte
	add := func(values ...uint64) {
		for _, v := range values {
			binary.LittleEndian.PutUint64(buf[:], v)
			_, _ = h.Write(buf[:]) // a hash takes everything
		}
	}
	_, _ = io.WriteString(h, c.role.name())
	for i := range c.logs {
		l := c.log(Log(i))
		l.digest(add)
	}
	add(c.seq, uint64(c.heldLen), uint64(c.waitingLen), uint64(c.released), uint64(c.deadline), bit(c.serving), bit(c.shows), bit(c.gate))
	if r, ok := c.role.(opening); ok {
		add(uint64(r.generation), bit(r.recovered), r.save, uint64(r.retry))
	}
	add(uint64(len(c.duplicates)), uint64(len(c.held)))
	for i := range c.duplicates {
		d := &c.duplicates[i]
		add(uint64(d.token), uint64(d.base), uint64(d.end))
	}
	for i := range c.held {
		add(uint64(c.held[i].write.Token), uint64(c.held[i].write.Log), uint64(c.held[i].until))
	}
	c.producers.visit(func(x *producer) {
		add(x.id, x.last, uint64(x.count))
		for i := range x.count {
			s := x.at(i)
			add(uint64(s.base), uint64(s.count), uint64(s.sum), uint64(s.length))
		}
	})
	return h.Sum64()
}

// digest adds what is known of one log.
func (l *logState) digest(add func(...uint64)) {
	add(uint64(l.generation), uint64(l.base), uint64(l.tail), uint64(l.durable), uint64(l.commit), uint64(l.unsynced), uint64(l.claimed))
	add(uint64(len(l.appends)), uint64(len(l.claims)), uint64(len(l.pending)), uint64(len(l.waiting)), bit(l.broken != ""))
	for _, a := range l.appends {
		add(a.seq, uint64(a.end), uint64(a.bytes), bit(a.done))
	}
	for i := range l.pending { // the claimed runs follow from these
		p := &l.pending[i]
		add(uint64(p.token), uint64(p.batch.Base), uint64(p.batch.Count), p.batch.ProducerID, p.batch.Sequence, bit(p.fold), bit(p.acked))
	}
	for i := range l.waiting {
		x := &l.waiting[i]
		refusal := uint64(0)
		if x.refusal != nil {
			refusal = 1 + uint64(x.refusal.Code)
		}
		add(uint64(x.write.Token), uint64(x.until), refusal)
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
