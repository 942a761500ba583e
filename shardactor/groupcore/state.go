package groupcore

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// State is what the logs say of one group, gathered entry by entry in any order.
type State struct {
	group                        string
	position                     *Entry
	ranges, runs, numbers, deads []Entry
	gone                         []Entry // that said nothing but of records which were lost
	cut                          []dkey  // that said something of such records, too
	until                        id.Offset
	before                       id.Offset // nothing at or past it was handed out that the logs do not tell of
}

// NewState begins to gather what the logs say of a group.
func NewState(group string) *State { return &State{group: group, until: Unread, before: Unread} }

// Before says that no earlier core has handed out anything at or past end that the logs do not tell of: whoever settles that by its offset has
// another record in mind, which was lost.
func (s *State) Before(end id.Offset) { s.before = end }

// Empty reports whether the logs say nothing of the group.
func (s *State) Empty() bool {
	return s.position == nil && len(s.ranges)+len(s.runs)+len(s.numbers)+len(s.deads) == 0
}

// Add takes the newest value of a key from either log. It keeps neither. The error is a *RecordError.
func (s *State) Add(key, value []byte) error { return s.AddUntil(key, value, Unread) }

// AddUntil is Add of a value that means nothing at and past until, see Lost.Until.
func (s *State) AddUntil(key, value []byte, until id.Offset) error {
	group, e, err := DecodeEntry(key, value)
	if err != nil {
		return err
	}
	if !bytes.Equal(group, []byte(s.group)) {
		return wrong("it is of group %q, not %q", group, s.group)
	}
	if e.Reach() > until {
		s.until = min(s.until, until)
		if !e.cut(until) {
			s.gone = append(s.gone, e)
			return nil
		}
		s.cut = append(s.cut, dkey{e.Kind, e.Offset})
	}
	switch e.Kind {
	case KindPosition:
		s.position = &e
	case KindRange:
		s.ranges = append(s.ranges, e)
	case KindRun:
		s.runs = append(s.runs, e)
	case KindNumber:
		s.numbers = append(s.numbers, e)
	case KindDead:
		s.deads = append(s.deads, e)
	}
	return nil
}

func sortEntries(list []Entry) {
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Offset, b.Offset) })
}

// load makes a group of what its logs say.
func (c *Core) load(s *State) {
	for _, list := range [][]Entry{s.ranges, s.runs, s.numbers, s.deads, s.gone} {
		sortEntries(list)
		for i := range list {
			c.seen = max(c.seen, list[i].Epoch)
		}
	}
	c.epoch = c.seen
	if p := s.position; p != nil {
		c.epoch, c.seen, c.born = p.Epoch, max(c.seen, p.Epoch), p.Born
		c.exists, c.tombstone = !p.Deleted, p.Deleted
		c.cursor, c.next, c.backlog.safeEpoch = p.Cursor, p.Cursor, p.Epoch
	}
	c.loadRanges(s)
	c.loadNumbers(s)
	c.loadDead(s)
	c.loadGone(s)
	for _, k := range s.cut { // as long as it was not written anew, each load cuts it again
		c.dirtyGone(k, true)
	}
	if n := len(c.settled.spans); c.exists && s.position != nil && (c.cursor > c.end || n > 0 && c.settled.spans[n-1].to > c.end) {
		c.rewrite()
	}
	c.bury()
}

// loadGone has swept away what speaks only of records that were lost. Nothing that came in their place was handed out by another core.
func (c *Core) loadGone(s *State) {
	for i := range s.gone {
		log := LogCursors
		if s.gone[i].Kind == KindDead {
			log = LogDeadLetters
		}
		c.sweepAway(log, dkey{s.gone[i].Kind, s.gone[i].Offset})
	}
	c.ackBelow = min(c.ackBelow, s.until, s.before)
}

// current reports whether an entry is of the epoch that the position names; if not it is swept away.
func (c *Core) current(s *State, e *Entry) bool {
	if p := s.position; p != nil && !p.Deleted && p.Epoch == e.Epoch {
		return true
	}
	c.sweepAway(LogCursors, dkey{e.Kind, e.Offset})
	return false
}

// loadRanges takes over the settled ranges. Those that others or the cursor cover are left over from a change that was cut off.
func (c *Core) loadRanges(s *State) {
	for i := range s.ranges {
		e := &s.ranges[i]
		if !c.current(s, e) {
			continue
		}
		n := len(c.settled.spans)
		switch {
		case e.Offset <= c.cursor:
			c.sweepAway(LogCursors, dkey{KindRange, e.Offset})
			if e.End > c.cursor {
				c.cursor, c.next = e.End, e.End
				c.dirty(dkey{KindPosition, 0})
			}
		case n > 0 && e.Offset <= c.settled.spans[n-1].to:
			c.sweepAway(LogCursors, dkey{KindRange, e.Offset})
			if x := &c.settled.spans[n-1]; e.End > x.to {
				x.to = e.End
				c.dirty(dkey{KindRange, x.from})
			}
		default:
			c.settled.spans = append(c.settled.spans, span{from: e.Offset, to: e.End, stored: true})
		}
	}
}

// loadNumbers makes owed again what was handed out and not finished.
func (c *Core) loadNumbers(s *State) {
	for i := range s.numbers {
		e := &s.numbers[i]
		if !c.current(s, e) {
			continue
		}
		if c.finished(e.Offset) || e.Offset >= c.end {
			c.sweepAway(LogCursors, dkey{KindNumber, e.Offset})
			continue
		}
		r := c.play.add(e.Offset, fetching)
		r.number, r.failures, r.stored = max(1, e.Number), e.Failures, true
		c.play.number(r)
		c.play.become(r, owed, 0)
	}
	for i := range s.runs {
		if e := &s.runs[i]; c.current(s, e) {
			c.loadRun(e)
		}
	}
}

func (c *Core) loadRun(e *Entry) {
	x := &run{start: e.Offset, count: e.Count, stored: true}
	for o := e.Offset; o < e.Offset.Add(uint64(e.Count)) && o < c.end; o++ {
		if c.finished(o) {
			continue
		}
		r := c.play.byOffset[o]
		if r == nil {
			r = c.play.add(o, fetching)
			r.number = 1
			c.play.become(r, owed, 0)
		}
		if r.run == nil {
			r.run = x
			x.live++
		}
	}
	if x.live == 0 {
		c.sweepAway(LogCursors, dkey{KindRun, e.Offset})
		return
	}
	c.play.runs[x.start] = x
}

// loadDead takes over the dead letters. Those of a group that was deleted since are swept away; those without a position are of a group
// whose beginning was lost, and which therefore begins again.
func (c *Core) loadDead(s *State) {
	born := uint64(0)
	for i := range s.deads {
		e := &s.deads[i]
		p := s.position
		if e.Offset >= c.end || p != nil && (e.Epoch < p.Born || p.Deleted && e.Epoch == p.Born) {
			c.sweepAway(LogDeadLetters, dkey{KindDead, e.Offset})
			continue
		}
		if born == 0 || e.Epoch < born {
			born = e.Epoch
		}
		c.dead.list = append(c.dead.list, deadLetter{offset: e.Offset, stored: true})
	}
	if len(c.dead.list) > 0 && !c.exists {
		c.create(c.base)
		c.born, c.ackBelow = born, c.end
	}
	for i := range s.deads {
		e := &s.deads[i]
		d := c.dead.find(e.Offset)
		if d == nil || !e.Owed {
			continue
		}
		if r := c.play.byOffset[e.Offset]; r != nil {
			r.redriven, d.owed = true, true
			r.number, r.failures, r.again = e.Number, e.Failures, true // what the cursors say is from before the redrive
			c.dead.owed++
			c.play.redriven++
			continue
		}
		c.owe(d, e.Number, e.Failures)
	}
}

// begin begins an epoch that no entry has.
func (c *Core) begin() {
	c.seen = max(c.seen, c.epoch) + 1
	c.epoch = c.seen
}

// rewrite begins an epoch with what is left when notes speak of records that are not there, and nobody has said that those were lost.
func (c *Core) rewrite() {
	c.begin()
	c.cursor = min(c.cursor, c.end)
	c.next = c.cursor
	for n := len(c.settled.spans); n > 0 && c.settled.spans[n-1].to > c.end; n = len(c.settled.spans) {
		x := c.settled.cut(n - 1)
		if x.from < c.end && x.from > c.cursor {
			c.settled.spans = append(c.settled.spans, span{from: x.from, to: c.end, stored: x.stored})
			break
		}
		c.sweepAway(LogCursors, dkey{KindRange, x.from})
	}
	c.dirty(dkey{KindPosition, 0})
	for i := range c.settled.spans {
		c.dirty(dkey{KindRange, c.settled.spans[i].from})
	}
	for _, r := range c.play.below(id.Offset(1<<64 - 1)) {
		if r.single {
			c.dirty(dkey{KindNumber, r.offset})
		}
		if r.run != nil {
			c.dirty(dkey{KindRun, r.run.start})
		}
	}
}
