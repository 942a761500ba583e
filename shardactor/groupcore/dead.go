package groupcore

import (
	"slices"
	"sort"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// deadLetter is an offset the group gave up on.
type deadLetter struct {
	offset id.Offset
	owed   bool // it is handed out again, and in play
	stored bool // the log may have it
}

// deadLetters are ascending.
type deadLetters struct {
	list []deadLetter
	owed int
}

func (d *deadLetters) search(o id.Offset) int {
	return sort.Search(len(d.list), func(i int) bool { return d.list[i].offset >= o })
}

func (d *deadLetters) find(o id.Offset) *deadLetter {
	if i := d.search(o); i < len(d.list) && d.list[i].offset == o {
		return &d.list[i]
	}
	return nil
}

// eraseDead takes an offset off the dead letters.
func (c *Core) eraseDead(o id.Offset) {
	i := c.dead.search(o)
	x := c.dead.list[i]
	if x.owed {
		c.dead.owed--
	}
	if c.dead.list = slices.Delete(c.dead.list, i, i+1); cap(c.dead.list) > slimAbove && len(c.dead.list) < cap(c.dead.list)/slimBelow {
		c.dead.list = slices.Clone(c.dead.list)
	}
	c.backlog.logs[LogDeadLetters].mark(dkey{KindDead, o}, x.stored)
}

func (c *Core) dirtyDead(o id.Offset) { c.backlog.logs[LogDeadLetters].mark(dkey{KindDead, o}, false) }

// giveUp lists a record as a dead letter; it is finished when that is durable. Without room for it it is parked, and reported so.
func (c *Core) giveUp(r *rec) bool {
	d := c.dead.find(r.offset)
	if d == nil && (len(c.dead.list) >= c.opts.MaxDeadLetters || c.overfull()) {
		c.play.become(r, delayed, c.now+c.opts.ParkedRetry)
		return false
	}
	if d == nil {
		c.dead.list = slices.Insert(c.dead.list, c.dead.search(r.offset), deadLetter{offset: r.offset})
	} else if d.owed {
		d.owed = false
		c.dead.owed--
	}
	if r.redriven {
		r.redriven = false
		c.play.redriven--
	}
	c.counts.DeadLettered++
	c.dirtyDead(r.offset)
	c.play.become(r, listing, 0)
	c.backlog.listing = append(c.backlog.listing, r.offset)
	return true
}

// listed finishes what was given up on: its listing is durable.
func (c *Core) listed(offsets []id.Offset) {
	for _, o := range offsets {
		if r := c.play.byOffset[o]; r != nil && r.state == listing {
			c.leave(r)
		}
	}
}

// giveUpAsked lists a record in play because somebody asks for that.
func (c *Core) giveUpAsked(in GiveUp) {
	o := in.Offset
	if c.mayNotWrite(in.Ask) {
		return
	}
	r, d := c.play.byOffset[o], c.dead.find(o)
	_, done := c.settled.end(o)
	switch {
	case o >= c.end:
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "the offset is at or past the end of the shard; give up on what was handed out"))
		return
	case r == nil && c.exists && (o < c.cursor || done) && d != nil: // by one before it, whose answer may have got lost
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "the record is finished already; it is listed"))
		return
	case r == nil && c.exists && (o < c.cursor || done):
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "the record is finished already; it was not listed"))
		return
	case r == nil && (!c.exists || o >= c.ackBelow):
		c.refuse(in.Ask, notHandedOut())
		return
	case d == nil && len(c.dead.list) >= c.opts.MaxDeadLetters:
		c.refuse(in.Ask, wire.Refuse(wire.CodeLimitExceeded, "the group has as many dead letters as it may; redrive or discard some"))
		return
	case d == nil && c.overfull():
		c.refuse(in.Ask, wire.Refuse(wire.CodeLimitExceeded, "the groups of the broker keep as much as they may; redrive or discard dead letters, or settle what was handed out before"))
		return
	case r == nil && (c.unfinished() >= 2*c.opts.MaxInFlight || len(c.settled.spans) >= 2*c.opts.MaxInFlight):
		c.refuse(in.Ask, notHandedOut())
		return
	case r == nil: // it was handed out before this core was made
		r = c.play.add(o, owed)
	}
	if r.state != listing {
		c.giveUp(r)
	}
	c.backlog.wait(c, waiter{ask: in.Ask})
}

// listDead lists the dead letters, lowest first; not those that are handed out again. Whoever gave up on one finds it here at once.
func (c *Core) listDead(in ListDead) {
	i := 0
	if in.HasAfter {
		i = sort.Search(len(c.dead.list), func(i int) bool { return c.dead.list[i].offset > in.After })
	}
	room := max(0, min(in.Max, len(c.dead.list)-i))
	list := make([]id.Offset, 0, room)
	for ; i < len(c.dead.list) && len(list) < room; i++ {
		if !c.dead.list[i].owed {
			list = append(list, c.dead.list[i].offset)
		}
	}
	c.answer(Answer{Ask: in.Ask, Dead: list})
}

// discard forgets a dead letter. One that is being handed out again is not handed out any more, unless the cursor was moved back before it.
func (c *Core) discard(in Discard) {
	if c.mayNotWrite(in.Ask) {
		return
	}
	if d := c.dead.find(in.Offset); d != nil {
		switch r := c.play.byOffset[in.Offset]; {
		case r == nil:
		case r.state == listing || r.redriven && c.finished(in.Offset):
			c.leave(r)
		case r.redriven: // the cursor will come to it
			r.redriven = false
			c.play.redriven--
			if r.number > 0 && r.run == nil {
				c.play.number(r)
				c.dirty(dkey{KindNumber, r.offset})
			}
		}
		c.eraseDead(in.Offset)
	}
	c.backlog.wait(c, waiter{ask: in.Ask})
}

// redrive makes a dead letter owed, as if it had never been handed out.
func (c *Core) redrive(in Redrive) {
	o := in.Offset
	if c.mayNotWrite(in.Ask) {
		return
	}
	d, r := c.dead.find(o), c.play.byOffset[o]
	switch {
	case d == nil:
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "the group did not give up on this record; see its dead letters"))
		return
	case o < c.base:
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "the record is not in the log any more; discard it"))
		return
	case d.owed:
	case c.play.redriven >= c.opts.MaxInFlight:
		c.refuse(in.Ask, wire.Refuse(wire.CodeOverloaded, "as many dead letters as may be are handed out again; repeat the request later"))
		return
	case c.ration.later && c.claimable() == 0:
		c.refuse(in.Ask, wire.Refuse(wire.CodeOverloaded, "the broker has as many records in flight as it may; repeat the request when some are settled"))
		return
	case o >= c.cursor && len(c.settled.spans) >= 2*c.opts.MaxInFlight && c.settled.isolated(o): // its ack would be one more range
		c.refuse(in.Ask, wire.Refuse(wire.CodeOverloaded, "too many records above the position of the group are finished each by itself; repeat the request when those before it are worked off"))
		return
	case r != nil:
		c.oweAnyway(d, r)
		c.dirtyDead(o)
	default:
		c.owe(d, 0, 0)
		c.dirtyDead(o)
	}
	c.backlog.wait(c, waiter{ask: in.Ask})
}

// oweAnyway begins again with a dead letter that is in play: its listing is not durable yet, or it came back by a seek or a crash. It is
// not finished here: what says that it is owed may be lost where the cursor is not.
func (c *Core) oweAnyway(d *deadLetter, r *rec) {
	d.owed, r.redriven, r.failures = true, true, 0
	c.dead.owed++
	c.play.redriven++
	switch r.state {
	case listing, owed, delayed:
		if r.state != listing {
			c.unnumber(r) // a crash came between its listing and its end: the log still counts its deliveries
		}
		c.play.leave(r)
		r.state, r.number, r.again = owed, 0, true
		c.play.enter(r)
	}
}

// finished reports whether the cursor or a settled range covers an offset.
func (c *Core) finished(o id.Offset) bool {
	_, done := c.settled.end(o)
	return o < c.cursor || done
}

// owe puts a dead letter into play.
func (c *Core) owe(d *deadLetter, number, failures uint32) {
	d.owed = true
	c.dead.owed++
	r := c.play.add(d.offset, fetching)
	r.number, r.failures, r.again, r.redriven = number, failures, true, true
	c.play.redriven++
	c.play.become(r, owed, 0)
}
