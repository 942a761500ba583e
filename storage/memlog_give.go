package storage

import "github.com/felixd/felixd/wire/id"

// place is where a slot lies: in kept, or in the ring behind it.
type place struct {
	ring bool
	i    int
}

// seek finds the slot that holds offset o, or the first one after it.
func (l *MemLog) seek(o id.Offset) place {
	if i := l.kept.find(o); i < len(l.kept.slots) {
		return place{i: i}
	}
	return place{ring: true, i: l.ring.find(o)}
}

// slot is the slot at a place.
func (l *MemLog) slot(p place) *slot {
	if p.ring {
		return l.ring.at(p.i)
	}
	return &l.kept.slots[p.i]
}

// after is the place after p.
func (l *MemLog) after(p place) place {
	if p.i++; !p.ring && p.i == len(l.kept.slots) {
		return place{ring: true}
	}
	return p
}

// arrival is what becomes readable at once: slots of the ring.
type arrival struct {
	first, last int
	bytes       int64
}

// give hands the ring's slots first to last-1, which have just become readable, to all readers. Those that waited are rung.
func (l *MemLog) give(first, last int) {
	a := arrival{first: first, last: last}
	for i := first; i < last; i++ {
		a.bytes += int64(l.ring.at(i).batch.Size())
	}
	whole := int32(0) // readers that take all of it
	lagging := int64(0)
	for c := l.running.first(); c != nil; c = l.running.after(c) {
		was := c.lags()
		if c.offer(a) {
			whole++
		}
		if !was && c.lags() {
			lagging++
		}
		c.ringIfEnough()
	}
	for c := l.waiting.first(); c != nil; c = l.waiting.first() {
		if c.offer(a) {
			whole++
		}
		lagging++
		l.running.take(c)
		c.ring()
	}
	for i := first; i < last && whole > 0; i++ {
		l.ring.at(i).refs += whole
	}
	if lagging > 0 {
		l.opts.Readers.lagging.Add(lagging)
	}
}
