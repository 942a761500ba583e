package groupcore

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// ack finishes a record, whether or not its claim stands.
func (c *Core) ack(in *Ack) {
	o := in.Offset
	if c.mayNotWrite(in.Ask) {
		return
	}
	r, d := c.play.byOffset[o], c.dead.find(o)
	switch _, done := c.settled.end(o); {
	case o >= c.end:
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "the offset is at or past the end of the shard; settle what was handed out"))
		return
	case !c.exists:
		c.refuse(in.Ask, wire.Refuse(wire.CodeStaleClaim, "there is no such group; poll first"))
		return
	case r != nil:
		c.counts.Settled++
		c.leave(r)
	case o < c.cursor || done:
		if d != nil { // whoever was late is done with it all the same
			c.counts.Settled++
		}
	case o >= c.ackBelow:
		c.refuse(in.Ask, notHandedOut())
		return
	case (len(c.settled.spans) >= 2*c.opts.MaxInFlight || c.overfull()) && c.settled.isolated(o): // one more range for which there is no room
		c.refuse(in.Ask, notHandedOut())
		return
	default: // it was handed out before this core was made
		c.counts.Settled++
		c.settle(o)
	}
	if d != nil {
		c.eraseDead(o)
	}
	c.backlog.wait(c, waiter{ask: in.Ask})
}

func notHandedOut() wire.Refusal {
	return wire.Refuse(wire.CodeStaleClaim, "the group did not hand out this record; poll for it")
}

// mayNotWrite refuses what would have to be written while that does not work, or too much of it.
func (c *Core) mayNotWrite(ask Ask) bool {
	switch {
	case c.backlog.failing():
		c.refuse(ask, wire.Refuse(wire.CodeStorage, "the group's log cannot be written: "+c.backlog.reason+"; nothing was done").WithRetry(wire.RetryAfter))
	case c.backlog.waiters() >= c.opts.MaxUnwritten || c.backlog.full(c.opts.MaxUnwritten):
		c.refuse(ask, wire.Refuse(wire.CodeOverloaded, "the group has too much to write; repeat the request later"))
	default:
		return false
	}
	return true
}

// standing is the claim that a settlement names; nil if it does not stand.
func (c *Core) standing(n Conn, o id.Offset, attempts uint32) *rec {
	r := c.play.byOffset[o]
	if r == nil || r.state != claimed || r.until <= c.now { // its time may be up, and its failure wait for its turn
		return nil
	}
	if attempts == 0 {
		return r
	}
	reused := r.again || o < c.usedBelow || c.opts.MaxAttempts > 0 && r.number > c.opts.MaxAttempts
	if c.shown(r) != attempts || reused && r.conn.open && r.conn.id != n {
		return nil
	}
	return r
}

// nack gives a record back.
func (c *Core) nack(in Nack) {
	r := c.standing(in.Conn, in.Offset, in.Attempts)
	if r == nil {
		c.stale(in.Ask, in.Offset, in.Attempts)
		return
	}
	c.counts.Nacked++
	r.failures++
	pause := c.opts.backOff(r.failures)
	if in.HasDelay {
		pause = max(0, min(in.Delay, c.opts.MaxVisibility))
	}
	c.failedOnce(r, c.now+pause)
	c.answer(Answer{Ask: in.Ask})
}

// stale refuses a settlement whose claim does not stand. One that named no delivery and a record that may still be handed out is worth
// repeating.
func (c *Core) stale(ask Ask, o id.Offset, attempts uint32) {
	if o >= c.end {
		c.refuse(ask, wire.Refuse(wire.CodeInvalidRequest, "the offset is at or past the end of the shard; settle what was handed out"))
		return
	}
	f := wire.Refuse(wire.CodeStaleClaim, "this delivery does not stand any more; drop the work")
	_, done := c.settled.end(o)
	if attempts == 0 && c.exists && o >= c.cursor && !done {
		f.Message = "nobody holds this record; poll for it"
	} else {
		f = f.WithRetry(wire.RetryFatal)
	}
	c.refuse(ask, f)
}

// extend prolongs a claim from now.
func (c *Core) extend(in Extend) {
	if in.Extend <= 0 {
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "extend by at least a millisecond"))
		return
	}
	if in.Attempts == 0 {
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, "name the delivery: its attempts"))
		return
	}
	r := c.standing(in.Conn, in.Offset, in.Attempts)
	if r == nil {
		c.stale(in.Ask, in.Offset, in.Attempts)
		return
	}
	granted := c.opts.visible(in.Extend)
	c.play.become(r, claimed, c.now+granted)
	c.answer(Answer{Ask: in.Ask, Visible: granted})
}

// lapse ends what has had its time: claims fail, delays and reservations end.
func (c *Core) lapse() {
	if c.stopped != nil {
		return
	}
	// What fails may have to be written. No more at a time than a write may hold: the others fail when that is done.
	for c.play.timers.len() > 0 && c.play.timers.top().until <= c.now && !c.backlog.full(c.opts.MaxUnwritten) {
		switch r := c.play.timers.top(); r.state {
		case claimed:
			c.counts.Lapsed++
			r.failures++
			c.failedOnce(r, r.until+c.opts.backOff(r.failures))
		case delayed:
			if c.spent(r) { // it was parked
				c.giveUp(r)
				continue
			}
			c.play.become(r, owed, 0)
		case reserved:
			c.play.become(r, owed, 0)
		case fetching, owed, listing, stateCount:
			panic("groupcore: a record without an end is among those that have one")
		}
	}
}

// spent reports whether a record has failed as often as it may.
func (c *Core) spent(r *rec) bool { return c.opts.MaxAttempts > 0 && r.failures >= c.opts.MaxAttempts }

// failedOnce decides what becomes of a record that has just failed: owed, at due or now, or given up on.
func (c *Core) failedOnce(r *rec, due time.Duration) {
	switch {
	case c.spent(r):
		c.giveUp(r)
	case due > c.now:
		c.play.become(r, delayed, due)
	default:
		c.play.become(r, owed, 0)
	}
}
