package groupcore

import "github.com/felixd/felixd/wire/id"

// turn is what one turn asks for. Two of them take turns, so that a busy group allocates nothing for its lists.
type turn struct {
	list     []Effect
	answers  pool[Answers]
	delivers pool[Deliver]
	fetches  pool[Fetch]
	handed   []Handed
	offsets  []id.Offset
}

// pool hands out things that are used again in a later turn.
type pool[T any] struct {
	items []*T
	used  int
}

// poolKept is how many things a pool keeps: more than a turn of 64 requests needs.
const poolKept = 256

func (p *pool[T]) next() *T {
	if p.used == len(p.items) {
		p.items = append(p.items, new(T))
	}
	p.used++
	return p.items[p.used-1]
}

func (p *pool[T]) reset(empty func(*T)) {
	for _, x := range p.items[:p.used] {
		empty(x)
	}
	p.used = 0
	if len(p.items) > poolKept {
		clear(p.items[poolKept:])
		p.items = p.items[:poolKept]
	}
}

// handedKept is how much room for records and offsets a turn keeps: what a full poll hands out. chosenKept is that of a poll that is used
// again, of which there may be poolKept: two ordinary ones.
const (
	handedKept = 1024
	chosenKept = 128
)

func (t *turn) reset() {
	clear(t.list)
	t.list = t.list[:0]
	t.answers.reset(func(a *Answers) { clear(a.List); a.List = a.List[:0] })
	t.delivers.reset(func(d *Deliver) { *d = Deliver{} })
	t.fetches.reset(func(f *Fetch) { *f = Fetch{} })
	if t.handed = t.handed[:0]; cap(t.handed) > handedKept {
		t.handed = nil
	}
	if t.offsets = t.offsets[:0]; cap(t.offsets) > handedKept {
		t.offsets = nil
	}
}

// Take returns what must be done for all that was stepped since the last Take. The slice, and what it points to except the Body of a
// Persist, are valid until the next Take; Step may be called meanwhile.
func (c *Core) Take() []Effect {
	c.persist(LogDeadLetters)
	c.persist(LogCursors)
	c.turn, c.spare = c.spare, c.turn
	c.turn.reset()
	return c.spare.list
}

func (c *Core) emit(e Effect) { c.turn.list = append(c.turn.list, e) }

// answer adds to the answers that leave next; those that follow each other leave as one effect.
func (c *Core) answer(a Answer) {
	t := c.turn
	if n := len(t.list); n > 0 {
		if last, ok := t.list[n-1].(*Answers); ok {
			last.List = append(last.List, a)
			return
		}
	}
	next := t.answers.next()
	next.List = append(next.List, a)
	c.emit(next)
}

// deliver answers a poll and lets go of it.
func (c *Core) deliver(p *poll, fetched uint64, records []Handed) {
	d := c.turn.delivers.next()
	*d = Deliver{Ask: p.ask, Fetched: fetched, Records: records}
	c.emit(d)
	c.forget(p)
}

// forget lets go of a poll that is answered.
func (c *Core) forget(p *poll) {
	c.polls--
	clear(p.recs)
	*p = poll{recs: p.recs[:0]}
	if len(c.freePolls) < poolKept && cap(p.recs) <= chosenKept {
		c.freePolls = append(c.freePolls, p)
	}
}
