package groupcore

import (
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// pollList is the polls whose records are being read, oldest first.
type pollList struct {
	byID        map[uint64]*poll
	first, last *poll
}

func (l *pollList) add(p *poll) {
	l.byID[p.id] = p
	if l.last == nil {
		l.first, l.last = p, p
		return
	}
	p.before, l.last.after = l.last, p
	l.last = p
}

func (l *pollList) remove(p *poll) {
	delete(l.byID, p.id)
	if p.before != nil {
		p.before.after = p.after
	} else {
		l.first = p.after
	}
	if p.after != nil {
		p.after.before = p.before
	} else {
		l.last = p.before
	}
	p.before, p.after = nil, nil
}

// pollIn takes a poll: it waits, if only until the end of this step.
func (c *Core) pollIn(in *Poll) {
	if in.Max == 0 {
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "a poll for no records; ask for at least one"))
		return
	}
	if c.polls >= c.opts.MaxPolls {
		c.refuse(in.Ask, wire.Refuse(wire.CodeOverloaded, "too many polls of this group wait; repeat the request later"))
		return
	}
	if !c.exists {
		c.create(c.base)
	}
	k := c.connOf(in.Conn)
	w := c.workerOf(k, in.Member)
	if in.Reclaim && in.Member != "" && !k.reclaimed {
		k.reclaimed = true
		c.reclaim(w, k, in)
	}
	p := &poll{}
	if n := len(c.freePolls); n > 0 {
		p, c.freePolls = c.freePolls[n-1], c.freePolls[:n-1]
	}
	c.pollID++
	c.polls++
	p.ask, p.id, p.conn, p.worker = in.Ask, c.pollID, k, w
	p.most = int(min(in.Max, wire.MaxGroupRecords))
	p.end = c.now + max(0, min(in.Wait, c.opts.MaxWait))
	p.visibility = c.opts.visible(in.Visibility)
	c.await(p, false)
}

// await makes a poll wait for records.
func (c *Core) await(p *poll, front bool) {
	c.ends.push(p)
	c.waiting.add(p, front)
}

func (c *Core) unwait(p *poll) {
	c.ends.remove(p)
	c.waiting.remove(p)
}

// reclaim reserves for a member what it holds from connections that are older than k, or gone. Each is a failure of the delivery that it ends.
// Polls of such a connection that wait or are read for end with nothing: what they were given nobody would come for.
func (c *Core) reclaim(w *worker, k *conn, in *Poll) {
	left := func(x *conn) bool { return x.id < k.id || !x.open }
	leftPoll := func(p *poll) bool { return p.worker == w && left(p.conn) }
	c.endWaits(leftPoll)
	c.endReads(leftPoll)
	var theirs []*rec
	for _, r := range c.play.all {
		if r.state == claimed && r.worker == w && left(r.conn) {
			theirs = append(theirs, r)
		}
	}
	sortByOffset(theirs)
	for _, r := range theirs {
		c.counts.Reclaimed++
		if r.failures++; c.spent(r) {
			c.giveUp(r)
			continue
		}
		c.play.become(r, reserved, c.now+c.opts.visible(in.Visibility))
	}
	c.waiting.notice(w)
}

// serve hands out what there is to those who wait, one worker after the other.
func (c *Core) serve() {
	if c.stopped != nil || c.blocked() || !c.exists {
		return
	}
	c.serveReclaims()
	for c.waiting.head != nil && !c.blocked() {
		k := c.waiting.head
		if c.play.held() >= c.opts.MaxInFlight {
			return
		}
		r := c.lowestOwed()
		if r != nil && r.alone() && r.worker == k { // whoever failed at it is not the first choice
			k = k.after
		}
		p := k.first
		if (r == nil || !r.alone()) && c.asksFirst(p) {
			return
		}
		switch {
		case r != nil && r.alone():
			c.choose(p, r) // alone, so that it takes nothing along when its worker dies of it
		default:
			c.fill(p)
		}
		if len(p.recs) == 0 {
			return
		}
		c.fetch(p)
		c.waiting.served(k)
	}
}

// serveReclaims hands members what is reserved for them, also where no more may be in flight: it counts already.
func (c *Core) serveReclaims() {
	for _, k := range c.waiting.ready {
		k.ready = false
		for k.first != nil && len(k.reserved) > 0 {
			c.serveReserved(k)
		}
	}
	clear(c.waiting.ready)
	c.waiting.ready = c.waiting.ready[:0]
}

// serveReserved hands the oldest poll of a member the lowest record that is reserved for it, alone like all that were handed out before.
func (c *Core) serveReserved(k *worker) {
	p := k.first
	c.choose(p, k.reserved[0])
	c.fetch(p)
	c.waiting.served(k)
}

// capped reports whether there is something to hand out, and too much is in flight for that.
func (c *Core) capped() bool {
	if c.ration.later && c.claimable() == 0 || c.keepable() == 0 {
		return c.hasFresh()
	}
	return c.play.held() >= c.opts.MaxInFlight && (c.play.counts[owed] > 0 || c.hasFresh())
}

// lowestOwed is the record that is handed out next, nil if none is owed.
func (c *Core) lowestOwed() *rec {
	switch a, b := &c.play.retries, &c.play.returned; {
	case a.len() > 0 && (b.len() == 0 || a.top().offset < b.top().offset):
		return a.top()
	case b.len() > 0:
		return b.top()
	}
	return nil
}

// fill chooses records that were not handed out yet: those that were chosen before and not read, then new ones.
func (c *Core) fill(p *poll) {
	for len(p.recs) < p.most && c.play.held() < c.opts.MaxInFlight {
		if r := c.lowestOwed(); r != nil {
			if r.alone() {
				return
			}
			c.choose(p, r)
			continue
		}
		if c.room() == 0 || !c.hasFresh() { // nothing is owed, so that all that is unfinished is in flight
			return
		}
		r := c.play.add(c.next, fetching)
		c.next++
		r.poll = p.id
		p.recs = append(p.recs, r)
	}
}

// unfinished is how many records between the cursor and next are in play.
func (c *Core) unfinished() int { return len(c.play.all) - c.play.redriven }

// hasFresh moves next to the first offset that is neither finished nor in play, and reports whether it may be handed out.
func (c *Core) hasFresh() bool {
	for c.next < c.committed {
		if end, ok := c.settled.end(c.next); ok {
			c.next = end
		} else if c.play.byOffset[c.next] != nil {
			c.next++
		} else {
			return true
		}
	}
	return false
}

// choose takes a record that is owed or reserved for a poll.
func (c *Core) choose(p *poll, r *rec) {
	c.play.become(r, fetching, 0)
	r.poll = p.id
	p.recs = append(p.recs, r)
}

// fetch has the records read that were chosen for a poll.
func (c *Core) fetch(p *poll) {
	c.unwait(p)
	c.reading.add(p)
	t := c.turn
	at := len(t.offsets)
	for _, r := range p.recs {
		t.offsets = append(t.offsets, r.offset)
	}
	f := t.fetches.next()
	*f = Fetch{Ask: p.ask, Poll: p.id, Offsets: t.offsets[at:len(t.offsets):len(t.offsets)]}
	c.emit(f)
}

func (c *Core) refuse(ask Ask, f wire.Refusal) { c.answer(Answer{Ask: ask, Refusal: &f}) }

// create begins a group at an offset. Nothing of it was handed out before.
func (c *Core) create(at id.Offset) {
	c.ackBelow = 0
	c.begin()
	c.exists, c.tombstone, c.born = true, false, c.epoch
	c.cursor, c.next = at, at
	c.dirty(dkey{KindPosition, 0})
}
