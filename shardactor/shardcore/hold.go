package shardcore

import "time"

// become changes the role, tells the shell what follows from it, and lets go of what was held.
func (c *Core) become(at At, next role, reason string) {
	c.emit(RoleChanged{From: c.role.name(), To: next.name(), Reason: reason})
	c.role = next
	_, leads := next.(leading)
	_, waits := next.(waitingForDisk) // it gave nothing away, and what is committed stays so
	if shows := leads || waits; leads != c.serving || shows != c.shows {
		c.serving, c.shows = leads, shows
		c.emit(Serving{On: leads, Shows: shows})
	}
	if open := !next.holds(); open != c.gate {
		c.gate = open
		c.emit(Gate{Open: open})
	}
	if next.holds() {
		return
	}
	held := c.held
	c.held, c.heldLen = nil, 0
	for _, h := range held {
		c.write(at, h.write)
	}
}

func (c *Core) hold(at At, w *Write) {
	size := kept(w)
	if len(c.held) >= c.opts.HeldWrites || c.heldLen+size > c.opts.HeldBytes && len(c.held) > 0 {
		c.refuse(w, unavailable("not_ready", "the shard is "+c.role.name()+" and enough is waiting for it; repeat the request"))
		return
	}
	c.held = append(c.held, heldWrite{write: w, until: at.Mono + c.opts.HoldLimit, size: size})
	c.heldLen += size
}

// wake does what is due.
func (c *Core) wake(at At) {
	c.deadline = 0
	if r, ok := c.role.(opening); ok && r.retry != 0 && r.retry <= at.Mono {
		c.save(r)
	}
	c.expireHeld(at)
}

// expireHeld refuses what waited long enough.
func (c *Core) expireHeld(at At) {
	n := 0
	for n < len(c.held) && c.held[n].until <= at.Mono {
		w := c.held[n].write
		c.heldLen -= c.held[n].size
		c.refuse(w, unavailable("not_ready", "the shard is "+c.role.name()+" and did not become ready in time; repeat the request"))
		n++
	}
	c.held = c.held[n:]
}

// arm asks for a Wake at the next moment something is due, if that is another than was asked for.
func (c *Core) arm() {
	next := time.Duration(0)
	if len(c.held) > 0 {
		next = c.held[0].until
	}
	if r, ok := c.role.(opening); ok && r.retry != 0 && (next == 0 || r.retry < next) {
		next = r.retry
	}
	if next != c.deadline {
		c.deadline = next
		c.emit(Deadline{At: next})
	}
}
