package keyed

// What changes an index; mu is held for writing.

const (
	// tidyShare is how many bytes of garbage and live blocks are looked at for each byte that is written: garbage is a quarter of what a
	// victim holds, so 4 would keep even; twice as much catches up.
	tidyShare = 8
	// tidyStep bounds that for one write.
	tidyStep = 64 << 10
	// tidyFrom is how much garbage is let be whatever is live.
	tidyFrom = 4 << 10
)

// find is where a key stands; the ref is 0 if it is not there.
func (x *Index) find(tag uint32, key []byte) (*segment, int, ref) {
	s := x.table.of(tag)
	if s == nil {
		return nil, 0, 0
	}
	for i := s.home(tag); s.slots[i] != 0; i = s.next(i) {
		if slot := s.slots[i]; tagOf(slot) == tag && string(x.arena.at(refOf(slot)).key()) == string(key) {
			return s, i, refOf(slot)
		}
	}
	return nil, 0, 0
}

func (x *Index) lookup(key []byte) block {
	_, _, r := x.find(x.hash.tag(key), key)
	if r == 0 {
		return nil
	}
	return x.arena.at(r)
}

// put sets an entry. A value of ValueBytes that is not given, or too long to be kept, is cold.
func (x *Index) put(tag uint32, e Entry) {
	if x.closed {
		return
	}
	e.Cold = len(e.Value) != e.ValueBytes || x.inlineOf(e.ValueBytes) != e.ValueBytes
	inline := e.ValueBytes
	if e.Cold {
		inline = 0
	}
	size := blockSize(len(e.Key), inline)
	s, i, r := x.find(tag, e.Key)
	var b block
	switch {
	case r == 0:
		r, b = x.arena.alloc(size)
		b.write(&e)
		x.table.insert(tag, r)
	case x.arena.at(r).size() == size:
		b = x.arena.at(r)
		x.count(b, -1)
		b.write(&e)
	default:
		x.count(x.arena.at(r), -1)
		r, b = x.replace(s, i, r, size)
		b.write(&e)
	}
	x.count(b, 1)
	x.setEnd(r, b)
	x.tidy(size)
}

// replace moves what is known of an entry to another block of the given size, which its content is then written to.
func (x *Index) replace(s *segment, i int, old ref, size int) (ref, block) {
	r, b := x.arena.alloc(size)
	before := x.arena.at(old)
	x.relink(s, i, before.place(), r)
	b.setPlace(before.place())
	x.arena.release(old, before.size())
	return r, b
}

// relink names the block of slot i, and of a place in ends, anew.
func (x *Index) relink(s *segment, i int, place uint32, r ref) {
	s.slots[i] = slotOf(tagOf(s.slots[i]), r)
	if place != 0 {
		x.ends.get(int(place - 1)).at = r
	}
}

// setEnd brings ends in line with a block's expiry.
func (x *Index) setEnd(r ref, b block) {
	place, expires := b.place(), b.expires()
	switch {
	case place != 0 && expires != 0:
		x.ends.fix(&x.arena, int(place-1), end{expires, r})
	case place != 0:
		b.setPlace(0)
		x.ends.drop(&x.arena, int(place-1))
	case expires != 0:
		x.ends.push(&x.arena, expires, r)
	}
}

func (x *Index) remove(s *segment, i int, r ref) {
	b := x.arena.at(r)
	x.count(b, -1)
	if place := b.place(); place != 0 {
		b.setPlace(0)
		x.ends.drop(&x.arena, int(place-1))
	}
	size := b.size()
	x.table.remove(s, i)
	x.arena.release(r, size)
	x.tidy(size)
}

// count adds or takes away what a block counts for.
func (x *Index) count(b block, sign int) {
	x.cost += int64(sign) * costOf(b)
	x.logLive += int64(sign) * int64(b.logBytes())
	if b.cold() {
		x.cold += sign
	}
}

// book brings the budget in line with cost.
func (x *Index) book() {
	if d := x.cost - x.booked; d != 0 {
		x.budget.used.Add(d)
		x.booked = x.cost
	}
}

// tidy goes on to empty a chunk with much garbage, in proportion to what was written.
func (x *Index) tidy(written int) {
	a := &x.arena
	if a.victim == 0 {
		if a.garbage() <= max(a.live/3, tidyFrom) {
			return
		}
		a.choose()
	}
	for left := min(written*tidyShare, tidyStep); left > 0 && a.victim != 0; {
		left -= x.moveOne()
	}
}

// moveOne moves the victim's next block away if it is live, and returns its size. The chunk is freed with its last live block.
func (x *Index) moveOne() int {
	a := &x.arena
	here := ref(a.victim<<chunkBits | uint32(a.emptied/unit))
	b := a.at(here)
	size := b.size()
	a.emptied += size
	tag := x.hash.tag(b.key())
	s := x.table.of(tag)
	if s == nil {
		return size
	}
	i := s.find(tag, here)
	if i < 0 {
		return size
	}
	r, to := a.alloc(size)
	copy(to[:size], b)
	x.relink(s, i, b.place(), r)
	a.release(here, size)
	return size
}
