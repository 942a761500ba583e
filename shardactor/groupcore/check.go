package groupcore

import "fmt"

// check verifies the invariants that cost no more than a look.
func (c *Core) check() error {
	p := &c.play
	switch {
	case c.exists && (c.cursor < c.base || c.next < c.cursor):
		return fmt.Errorf("base %d, cursor %d and next %d are out of order", c.base, c.cursor, c.next)
	case len(c.settled.spans) > c.mostRanges():
		return fmt.Errorf("%d settled ranges; the most is %d", len(c.settled.spans), c.mostRanges())
	case len(p.all) != len(p.byOffset):
		return fmt.Errorf("%d records are in play and %d have an offset", len(p.all), len(p.byOffset))
	case p.timers.len() != p.counts[claimed]+p.counts[delayed]+p.counts[reserved]:
		return fmt.Errorf("%d records have a moment; %v are in each state", p.timers.len(), p.counts)
	case p.retries.len()+p.returned.len() != p.counts[owed]:
		return fmt.Errorf("%d and %d records are owed; %v are in each state", p.retries.len(), p.returned.len(), p.counts)
	case p.redriven != c.dead.owed:
		return fmt.Errorf("%d records are redriven; %d dead letters are owed", p.redriven, c.dead.owed)
	case c.opts.Counted && c.stopped == nil && !c.ration.asking && !c.keep.asking && c.keptUnits() > c.keep.granted:
		return fmt.Errorf("%d are kept, and %d are counted", c.keptUnits(), c.keep.granted)
	case c.keep.backed < 0 || c.keep.backed > c.keep.granted:
		return fmt.Errorf("there was room for %d of %d that are counted", c.keep.backed, c.keep.granted)
	case c.ends.len()+len(c.reading.byID) != c.polls:
		return fmt.Errorf("%d polls wait and %d are read for, of %d", c.ends.len(), len(c.reading.byID), c.polls)
	case (c.waiting.head == nil) != (c.ends.len() == 0):
		return fmt.Errorf("%d polls wait, and the ring disagrees", c.ends.len())
	}
	for i := range c.backlog.logs {
		if l := &c.backlog.logs[i]; len(l.now) > 0 && l.seq == 0 {
			return fmt.Errorf("log %d: %d wait for a write that is not on its way", i, len(l.now))
		}
	}
	return nil
}

// mostRanges bounds the settled ranges: what there may be of the group's own, and as many as the logs brought along, which were written under
// other settings perhaps, with what was in play then.
func (c *Core) mostRanges() int { return 4*c.opts.MaxInFlight + 1 + c.inherited }

// CheckAll verifies all invariants, looking at everything: for tests and simulations. An error says which one does not hold.
func (c *Core) CheckAll() error {
	if err := c.check(); err != nil {
		return err
	}
	end := c.cursor
	for i, x := range c.settled.spans {
		if x.from <= end || x.to <= x.from {
			return fmt.Errorf("settled range %d is [%d, %d), after %d", i, x.from, x.to, end)
		}
		end = x.to
	}
	for o := c.cursor; o < c.next; o++ {
		if !c.finished(o) && c.play.byOffset[o] == nil {
			return fmt.Errorf("offset %d is neither settled nor in play", o)
		}
	}
	singles := 0
	for i, r := range c.play.all {
		if err := c.checkRecord(i, r); err != nil {
			return err
		}
		if r.single {
			singles++
		}
	}
	if singles != c.play.singles {
		return fmt.Errorf("%d records have a number of their own, %d are counted", singles, c.play.singles)
	}
	for i := 1; i < len(c.dead.list); i++ {
		if c.dead.list[i-1].offset >= c.dead.list[i].offset {
			return fmt.Errorf("dead letter %d is not in order", i)
		}
	}
	return c.checkPolls()
}

func (c *Core) checkRecord(i int, r *rec) error {
	h := c.play.heapOf(r)
	switch d := c.dead.find(r.offset); {
	case r.slot != i || c.play.byOffset[r.offset] != r:
		return fmt.Errorf("record %d is not where it says", r.offset)
	case (h == nil) != (r.place == 0) || h != nil && h.items[r.place-1] != r:
		return fmt.Errorf("record %d is not in the heap of its state", r.offset)
	case r.redriven != (d != nil && d.owed):
		return fmt.Errorf("record %d is redriven: %v; its dead letter disagrees", r.offset, r.redriven)
	case !r.redriven && r.state != listing && c.finished(r.offset):
		return fmt.Errorf("record %d is finished and in play", r.offset)
	case r.state == claimed && (r.conn == nil || r.worker == nil || r.number == 0):
		return fmt.Errorf("record %d is claimed by nobody", r.offset)
	case r.run != nil && c.play.runs[r.run.start] != r.run:
		return fmt.Errorf("record %d rests on a run that is gone", r.offset)
	case r.offset < c.base:
		return fmt.Errorf("record %d is below the base", r.offset)
	}
	return nil
}

func (c *Core) checkPolls() error {
	n := 0
	for k := c.waiting.head; k != nil; {
		for p := k.first; p != nil; p = p.after {
			if n++; p.worker != k || c.ends.items[p.place-1] != p || len(p.recs) > 0 {
				return fmt.Errorf("poll %d is not what waits", p.id)
			}
		}
		if len(k.reserved) > 0 && !k.ready {
			return fmt.Errorf("member %q waits for %d records that are reserved for it, and nobody looks", k.member, len(k.reserved))
		}
		if k = k.after; k == c.waiting.head {
			break
		}
	}
	if n != c.ends.len() {
		return fmt.Errorf("%d polls are in the ring, %d have an end", n, c.ends.len())
	}
	return nil
}
