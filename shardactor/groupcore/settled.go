package groupcore

import (
	"sort"

	"github.com/felixd/felixd/wire/id"
)

// span is a settled range [from, to).
type span struct {
	from, to id.Offset
	stored   bool // the log may have a record of it
}

// settled are the ranges above the cursor in which everything is finished: ascending, and none touches the next or the cursor.
type settled struct{ spans []span }

// after is the index of the first span that ends above o.
func (s *settled) after(o id.Offset) int {
	return sort.Search(len(s.spans), func(i int) bool { return s.spans[i].to > o })
}

// end is where the range ends that holds o; false if none does.
func (s *settled) end(o id.Offset) (id.Offset, bool) {
	if i := s.after(o); i < len(s.spans) && s.spans[i].from <= o {
		return s.spans[i].to, true
	}
	return 0, false
}

// find is the span that begins at from.
func (s *settled) find(from id.Offset) *span {
	if i := s.after(from); i < len(s.spans) && s.spans[i].from == from {
		return &s.spans[i]
	}
	return nil
}

// isolated reports whether o, which is not settled, would be a range of its own.
func (s *settled) isolated(o id.Offset) bool {
	i := s.after(o)
	return (i == 0 || s.spans[i-1].to != o) && (i == len(s.spans) || s.spans[i].from != o+1)
}

func (s *settled) insert(i int, x span) {
	s.spans = append(s.spans, span{})
	copy(s.spans[i+1:], s.spans[i:])
	s.spans[i] = x
}

func (s *settled) cut(i int) span {
	x := s.spans[i]
	s.spans = append(s.spans[:i], s.spans[i+1:]...)
	return x
}

// settle finishes o, which is at or above the cursor and not settled. What was behind it is dropped from the runs by its caller.
func (c *Core) settle(o id.Offset) {
	s := &c.settled
	if o == c.cursor {
		c.cursor++
		if len(s.spans) > 0 && s.spans[0].from == c.cursor {
			x := s.cut(0)
			c.cursor = x.to
			c.dirtyGone(dkey{KindRange, x.from}, x.stored)
		}
		c.next = max(c.next, c.cursor)
		c.dirty(dkey{KindPosition, 0})
		return
	}
	i := s.after(o)
	left, right := i > 0 && s.spans[i-1].to == o, i < len(s.spans) && s.spans[i].from == o+1
	switch {
	case left && right:
		x := s.cut(i)
		s.spans[i-1].to = x.to
		c.dirty(dkey{KindRange, s.spans[i-1].from})
		c.dirtyGone(dkey{KindRange, x.from}, x.stored)
	case left:
		s.spans[i-1].to++
		c.dirty(dkey{KindRange, s.spans[i-1].from})
	case right:
		c.dirtyGone(dkey{KindRange, o + 1}, s.spans[i].stored)
		s.spans[i].from, s.spans[i].stored = o, false
		c.dirty(dkey{KindRange, o})
	default:
		s.insert(i, span{from: o, to: o + 1})
		c.dirty(dkey{KindRange, o})
	}
}

// skipTo moves the cursor to base over whatever is there, and returns how many offsets below it were not finished.
func (c *Core) skipTo(base id.Offset) (skipped uint64) {
	s := &c.settled
	at := c.cursor
	for len(s.spans) > 0 && s.spans[0].from <= base {
		x := s.cut(0)
		skipped += x.from.Since(at)
		at = x.to
		base = max(base, at)
		if x.stored {
			c.sweepAway(LogCursors, dkey{KindRange, x.from})
		}
	}
	if at < base {
		skipped += base.Since(at)
	}
	c.cursor, c.next = base, max(c.next, base)
	c.dirty(dkey{KindPosition, 0})
	return skipped
}
