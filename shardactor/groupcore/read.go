package groupcore

import (
	"cmp"
	"slices"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// read ends the reading for a poll: what was found is claimed and delivered, what does not exist is finished, what fits into no answer is
// given up on, what was not read is owed.
func (c *Core) read(in Read, failure *wire.Refusal) {
	n, found := in.Poll, in.Found
	p := c.reading.byID[n]
	if p == nil {
		return // it was answered when the group was stopped
	}
	c.reading.remove(p)
	at := len(c.turn.handed)
	for i, r := range p.recs {
		switch {
		case r.state != fetching || r.poll != n: // finished, voided or chosen for somebody else meanwhile
		case i == len(found) && in.Unfit:
			c.giveUp(r)
		case i >= len(found) || found[i] && !p.conn.open:
			c.returnRec(r)
		case found[i]:
			c.turn.handed = append(c.turn.handed, c.claim(p, r))
		default:
			c.vanish(r)
		}
	}
	records := c.turn.handed[at:len(c.turn.handed):len(c.turn.handed)]
	switch {
	case len(records) > 0:
		c.noteNumbers(p)
		c.deliver(p, n, records)
	case failure != nil:
		c.answer(Answer{Ask: p.ask, Refusal: failure})
		c.forget(p)
	case !p.conn.open || !c.exists:
		c.deliver(p, 0, nil)
	default:
		clear(p.recs)
		p.recs = p.recs[:0]
		c.await(p, true)
	}
}

// claim gives a record to a poll.
func (c *Core) claim(p *poll, r *rec) Handed {
	c.play.leave(r)
	r.number++
	r.state, r.until, r.conn, r.worker = claimed, c.now+p.visibility, p.conn, p.worker
	c.play.enter(r)
	c.counts.Delivered++
	if r.number > 1 {
		c.counts.Redelivered++
	}
	h := Handed{Offset: r.offset, Attempts: c.shown(r)}
	if c.gapEnd == r.offset && c.gapCount > 0 {
		h.Skipped, c.gapCount = c.gapCount, 0
	}
	return h
}

// shown is the number of a delivery as it is told.
func (c *Core) shown(r *rec) uint32 {
	if c.opts.MaxAttempts > 0 {
		return min(r.number, c.opts.MaxAttempts)
	}
	return r.number
}

// noteNumbers has the numbers of what a poll was handed written down: one record for each run of new ones, one for a record that had a
// number.
func (c *Core) noteNumbers(p *poll) {
	var open *run
	for _, r := range p.recs {
		switch {
		case r.state != claimed || r.poll != p.id:
			open = nil
		case r.redriven:
			c.dirtyDead(r.offset)
		case r.number > 1 || c.play.runs[r.offset] != nil:
			open = nil
			c.play.number(r)
			c.dirty(dkey{KindNumber, r.offset})
		case open != nil && open.start+id.Offset(open.count) == r.offset:
			open.count++
			open.live++
			r.run = open
		default:
			if x := r.run; x != nil {
				r.run = nil
				if x.live--; x.live == 0 {
					delete(c.play.runs, x.start)
					c.dirtyGone(dkey{KindRun, x.start}, x.stored)
				}
			}
			open = &run{start: r.offset, count: 1, live: 1}
			c.play.runs[open.start] = open
			c.dirty(dkey{KindRun, open.start})
			r.run = open
		}
	}
}

// returnRec makes a record owed that was chosen for a poll and not handed out.
func (c *Core) returnRec(r *rec) {
	if r.state == fetching {
		c.play.become(r, owed, 0)
	}
}

// vanish finishes a record that does not exist, for clients at least.
func (c *Core) vanish(r *rec) {
	o := r.offset
	if r.redriven {
		c.eraseDead(o)
	}
	c.leave(r)
	c.counts.Skipped++
	if c.gapEnd == o {
		c.gapEnd, c.gapCount = o+1, c.gapCount+1
		return
	}
	c.gapEnd, c.gapCount = o+1, 1
}

// leave takes a record out of play: it is finished.
func (c *Core) leave(r *rec) {
	o := r.offset
	c.unnumber(r)
	c.play.drop(r)
	if _, ok := c.settled.end(o); o >= c.cursor && !ok {
		c.settle(o)
	}
}

// unnumber lets go of what the log says of a record's number.
func (c *Core) unnumber(r *rec) {
	if r.single || r.stored {
		c.play.unnumber(r)
		c.dirtyGone(dkey{KindNumber, r.offset}, r.stored)
	}
	if x := r.run; x != nil {
		r.run = nil
		if x.live--; x.live == 0 {
			delete(c.play.runs, x.start)
			c.dirtyGone(dkey{KindRun, x.start}, x.stored)
		}
	}
}

// trim skips what the log does not hold any more.
func (c *Core) trim(base id.Offset) {
	c.base = max(c.base, base)
	if !c.exists {
		return
	}
	gone := c.play.below(c.base)
	for _, r := range gone {
		if r.redriven {
			c.eraseDead(r.offset)
			c.counts.Skipped++
		}
		c.unnumber(r)
		c.play.drop(r)
	}
	if c.cursor >= c.base {
		return
	}
	skipped := c.skipTo(c.base)
	c.counts.Skipped += skipped
	if c.gapEnd < c.base {
		c.gapEnd, c.gapCount = c.base, skipped
	}
}

// below is what is in play below an offset, ascending.
func (p *play) below(o id.Offset) []*rec {
	var list []*rec
	for _, r := range p.all {
		if r.offset < o {
			list = append(list, r)
		}
	}
	sortByOffset(list)
	return list
}

func sortByOffset(list []*rec) {
	slices.SortFunc(list, func(a, b *rec) int { return cmp.Compare(a.offset, b.offset) })
}
