package groupcore

import (
	"encoding/binary"
	"hash/fnv"
)

// Digest is the state of the core in 64 bits, for a simulation's trace: cores that were stepped alike have equal digests. Where answers go
// is not in it.
func (c *Core) Digest() uint64 {
	h := fnv.New64a()
	var buf [8]byte
	add := func(values ...uint64) {
		for _, v := range values {
			binary.LittleEndian.PutUint64(buf[:], v)
			_, _ = h.Write(buf[:]) // a hash takes everything
		}
	}
	add(uint64(c.now), uint64(truth(c.exists)), uint64(truth(c.tombstone)), c.epoch, c.seen, c.born, uint64(c.cursor), uint64(c.safeCursor), uint64(c.next))
	add(uint64(c.base), uint64(c.end), uint64(c.committed), uint64(c.ackBelow), uint64(c.usedBelow), uint64(c.gapEnd), c.gapCount)
	add(c.pollID, uint64(c.polls), uint64(c.armed), uint64(c.touched), uint64(c.idleAt), uint64(truth(c.stopped != nil)))
	add(c.counts.Delivered, c.counts.Redelivered, c.counts.Settled, c.counts.Nacked, c.counts.Lapsed)
	add(c.counts.Reclaimed, c.counts.DeadLettered, c.counts.Skipped, c.counts.PollsCapped)
	add(uint64(c.ration.granted), uint64(truth(c.ration.asking)), uint64(truth(c.ration.later)))
	add(uint64(c.keep.granted), uint64(c.keep.backed), uint64(truth(c.keep.asking)), uint64(truth(c.keep.later)))
	add(uint64(len(c.settled.spans)), uint64(len(c.play.all)), uint64(len(c.dead.list)))
	for _, x := range c.settled.spans {
		add(uint64(x.from), uint64(x.to), uint64(truth(x.stored)))
	}
	for _, r := range c.play.all {
		r.digest(add)
	}
	for _, d := range c.dead.list {
		add(uint64(d.offset), uint64(truth(d.owed)), uint64(truth(d.stored)))
	}
	for k := c.waiting.head; k != nil; {
		for p := k.first; p != nil; p = p.after {
			p.digest(add)
		}
		if k = k.after; k == c.waiting.head {
			break
		}
	}
	for p := c.reading.first; p != nil; p = p.after {
		p.digest(add)
	}
	c.backlog.digest(add)
	return h.Sum64()
}

func (r *rec) digest(add func(...uint64)) {
	add(uint64(r.offset), uint64(r.state), uint64(r.number), uint64(r.failures), uint64(r.until), r.poll)
	add(uint64(truth(r.again)), uint64(truth(r.redriven)), uint64(truth(r.stored)), uint64(truth(r.single)))
	if r.conn != nil {
		add(uint64(r.conn.id), uint64(truth(r.conn.open)), uint64(truth(r.conn.reclaimed)))
	}
	if r.run != nil {
		add(uint64(r.run.start), uint64(r.run.count), uint64(r.run.live), uint64(truth(r.run.stored)))
	}
}

func (p *poll) digest(add func(...uint64)) {
	add(p.id, p.ask.Token, uint64(p.conn.id), uint64(truth(p.conn.open)), uint64(p.most), uint64(p.end), uint64(p.visibility), uint64(len(p.recs)))
}

func (b *backlog) digest(add func(...uint64)) {
	add(b.seq, uint64(b.retryAt), b.epochFlying, uint64(b.cursorFlying), b.safeEpoch, uint64(len(b.listing)), uint64(len(b.listingNow)))
	for i := range b.logs {
		l := &b.logs[i]
		add(l.seq, uint64(truth(l.bad)), uint64(len(l.changed)), uint64(len(l.sweep)), uint64(len(l.flying)))
		for _, k := range l.changed {
			add(uint64(k.kind), uint64(k.offset), uint64(truth(l.onLog[k])))
		}
		for _, w := range [2][]waiter{l.now, l.next} {
			add(uint64(len(w)))
			for j := range w {
				add(w[j].ask.Token, uint64(w[j].offset), uint64(truth(w[j].moved)), uint64(truth(w[j].existed)))
			}
		}
	}
}
