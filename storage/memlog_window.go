package storage

import "github.com/felixd/felixd/storage/batch"

// offer gives the reader what has become readable, as far as its window goes. It reports whether the reader takes all of it; its
// places in slot.refs are the caller's then.
func (c *memCursor) offer(a arrival) (whole bool) {
	n := a.last - a.first
	if c.beyond == 0 && !c.win.open && c.win.batches+n <= c.win.maxBatches && c.win.bytes+a.bytes <= c.win.maxBytes && c.mayLag() {
		c.win.take(n, a.bytes)
		return true
	}
	for i := a.first; i < a.last; i++ {
		c.offerOne(c.log.ring.at(i))
	}
	return false
}

func (c *memCursor) offerOne(s *slot) {
	size := int64(s.batch.Size())
	switch {
	case c.beyond == 0 && c.reaches(size):
		c.win.take(1, size)
		s.refs++
	case c.log.policy == Block:
		if c.beyond == 0 {
			c.limit = s.batch.Base
		}
		c.beyond++
		s.beyond++
		s.refs++
	default:
		n := visible(s.batch)
		c.win.lose(s.batch.Base, s.end, n)
		c.drop(Drop{From: s.batch.Base, To: s.end, Records: n})
	}
}

// reaches reports whether a further batch of that size lies in the reader's window.
func (c *memCursor) reaches(size int64) bool {
	return c.win.batches == 0 || c.mayLag() && c.win.fits(size)
}

// mayLag reports whether the reader may fall further behind: while the readers' budget is used up, only one whose queue is still
// in the ring may.
func (c *memCursor) mayLag() bool {
	return c.next >= c.log.oldest || !c.log.opts.Readers.Budget().Over()
}

// finish notes that the reader is done with its hand. Under Block its window moves on over what publishers wait for.
func (c *memCursor) finish() {
	if c.hand == 0 {
		return
	}
	l := c.log
	for p, n := l.seek(c.from), 0; n < c.hand; p, n = l.after(p), n+1 {
		l.unref(p)
	}
	l.kept.compact()
	c.win.leave(c.hand, c.handBytes)
	c.hand, c.handBytes, c.from = 0, 0, c.next
	if c.beyond > 0 {
		c.slide()
	}
	if !c.lags() {
		l.opts.Readers.lagging.Add(-1)
	}
}

// slide moves the end of the window over what lies behind it, as far as there is room.
func (c *memCursor) slide() {
	l := c.log
	for p := l.seek(c.limit); c.beyond > 0; p = l.after(p) {
		s := l.slot(p)
		size := int64(s.batch.Size())
		if !c.reaches(size) {
			break
		}
		c.win.take(1, size)
		c.beyond--
		s.beyond--
		c.limit = s.end
	}
	l.advance()
}

// cutTo takes from the reader everything that is queued up to and with s, which has just left the ring.
func (c *memCursor) cutTo(s *slot) {
	l := c.log
	for i := l.kept.find(c.next); i < len(l.kept.slots); i++ {
		if k := &l.kept.slots[i]; k.batch != nil && c.win.has(k.batch.Base) {
			c.cutOne(k.batch)
			l.unref(place{i: i})
		}
	}
	c.cutOne(s.batch)
	s.refs--
	for c.win.noted > 0 && c.win.holes[0].from < s.end {
		h, _ := c.win.pass(c.win.holes[0].from)
		c.lost += h.records
	}
	c.next = s.end
	if c.hand == 0 {
		c.from = c.next
	}
	if !c.lags() {
		l.opts.Readers.lagging.Add(-1)
	}
}

func (c *memCursor) cutOne(b *batch.Batch) {
	n := visible(b)
	c.lost += n
	c.win.leave(1, int64(b.Size()))
	c.drop(Drop{From: b.Base, To: b.End(), Records: n, Why: BudgetUsed})
}

// drop counts a loss. What can be read elsewhere is none.
func (c *memCursor) drop(d Drop) {
	if c.log.policy == CatchUp && d.Why != NotPassedOn {
		return
	}
	d.Owner = c.opts.Owner
	c.dropped += d.Records
	c.log.opts.Readers.drop(d)
}

// visible is how many records of a batch clients see.
func visible(b *batch.Batch) uint64 {
	if !b.Kind.Visible() {
		return 0
	}
	return uint64(b.Count)
}

// Cursors implements Reader.
func (l *MemLog) Cursors(after uint64, limit int) []CursorState {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []CursorState
	for i := l.cursorAbove(after); i < len(l.cursors) && len(out) < limit; i++ {
		c := l.cursors[i]
		out = append(out, CursorState{
			Number: c.number, Owner: c.opts.Owner, Queued: c.win.batches + c.beyond, Bytes: c.win.bytes, Capacity: c.opts.Capacity, Start: c.start,
			Position: c.from, Tail: l.readable, Dropped: c.dropped, Waiting: c.list == &l.waiting,
		})
	}
	return out
}
