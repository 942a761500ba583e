package groupcore

import (
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// seek moves the group, or creates it.
func (c *Core) seek(in Seek) {
	if c.mayNotWrite(in.Ask) {
		return
	}
	var to id.Offset
	switch in.Start.Kind {
	case wire.StartEarliest:
		to = c.base
	case wire.StartLatest:
		to = max(c.base, c.committed)
	case wire.StartOffset:
		to = in.Start.Offset
	default:
		panic(fmt.Sprintf("groupcore: a seek to a start of kind %d", in.Start.Kind))
	}
	if in.IfNew && c.exists {
		c.backlog.wait(c, waiter{ask: in.Ask, offset: c.cursor})
		return
	}
	if to < c.base || to > max(c.base, c.committed) {
		c.refuse(in.Ask, wire.Refuse(wire.CodeInvalidRequest, fmt.Sprintf("offset %s is outside of what can be read, %s to %s", to, c.base, max(c.base, c.committed))))
		return
	}
	if !c.exists {
		c.create(to)
	} else {
		c.void()
		c.begin()
		c.cursor, c.next = to, to
		c.dirty(dkey{KindPosition, 0})
	}
	c.backlog.wait(c, waiter{ask: in.Ask, offset: to, moved: true})
}

// void forgets everything above the cursor and every claim. What is left of it in the log is swept away, and means nothing from the
// next epoch on. Redriven records stay owed, and their dead letters stay too, wherever the cursor goes: until the new position is durable
// they are all that says so.
func (c *Core) void() {
	c.ackBelow, c.usedBelow = 0, max(c.usedBelow, c.next)
	for i := range c.settled.spans {
		if x := &c.settled.spans[i]; x.stored {
			c.sweepAway(LogCursors, dkey{KindRange, x.from})
		}
	}
	c.settled.spans = nil
	all := c.play.below(id.Offset(1<<64 - 1))
	for _, r := range all {
		if r.stored {
			c.sweepAway(LogCursors, dkey{KindNumber, r.offset})
			r.stored = false
			c.play.unnumber(r)
		}
		if x := r.run; x != nil {
			r.run = nil
			if x.live--; x.live == 0 {
				delete(c.play.runs, x.start)
				if x.stored {
					c.sweepAway(LogCursors, dkey{KindRun, x.start})
				}
			}
		}
		if r.redriven && r.state != owed {
			c.play.become(r, owed, 0)
		}
		if !r.redriven {
			c.play.drop(r)
		}
	}
	c.gapCount = 0
}

// remove deletes the group. The position says so before what is left goes, so that nothing of it is ever taken for a later group's.
func (c *Core) remove(in Remove) {
	if c.mayNotWrite(in.Ask) {
		return
	}
	existed := c.exists
	if existed {
		c.void()
		for _, r := range c.play.below(id.Offset(1<<64 - 1)) {
			c.play.drop(r)
		}
		c.endWaits(func(*poll) bool { return true })
		c.sweepDead()
		c.backlog.listing, c.backlog.listingNow = nil, nil
		c.begin()
		c.exists, c.tombstone = false, true
		c.cursor, c.next = 0, 0
		c.dirty(dkey{KindPosition, 0})
	}
	c.backlog.wait(c, waiter{ask: in.Ask, existed: existed})
}

// sweepDead forgets all dead letters.
func (c *Core) sweepDead() {
	for i := range c.dead.list {
		if x := &c.dead.list[i]; x.stored {
			c.sweepAway(LogDeadLetters, dkey{KindDead, x.offset})
		}
	}
	c.dead = deadLetters{}
}
