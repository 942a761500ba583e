package groupcore

import (
	"sort"
	"time"
)

// conn is a connection that polled, until it is gone and nothing in play remembers it.
type conn struct {
	id        Conn
	open      bool
	reclaimed bool    // its member took back what it held on older ones
	alone     *worker // as which it polls when it names no member
}

// worker is who polls are shared fairly among: a member, or a connection that names none.
type worker struct {
	member string
	// first and last are the polls that wait, in the order they came.
	first, last *poll
	// before and after are the neighbours in the ring of workers that wait.
	before, after *worker
	reserved      []*rec // for this member, ascending
	ready         bool   // it is in waiting.ready
}

// poll is one that waits or whose records are being read.
type poll struct {
	ask           Ask
	id            uint64
	conn          *conn
	worker        *worker
	most          int
	end           time.Duration
	visibility    time.Duration
	place         int // in the heap of those that wait, by their end
	before, after *poll
	recs          []*rec // that were chosen for it
}

// waiting is the ring of workers whose polls wait. The one at head is served next.
type waiting struct {
	head *worker
	// ready are the workers for whom something was reserved while they waited, or the other way round, since that was last served: whoever has
	// both is among them, so that a step needs not look at all who wait. Each is in it once at most.
	ready []*worker
}

// add puts a poll behind the others of its worker, or in front of them if it has waited already.
func (w *waiting) add(p *poll, front bool) {
	k := p.worker
	switch {
	case k.first == nil:
		k.first, k.last = p, p
		w.join(k)
		w.notice(k)
	case front:
		p.after, k.first.before = k.first, p
		k.first = p
	default:
		p.before, k.last.after = k.last, p
		k.last = p
	}
}

// notice puts a worker among those that are ready, if it is.
func (w *waiting) notice(k *worker) {
	if k.first != nil && len(k.reserved) > 0 && !k.ready {
		k.ready = true
		w.ready = append(w.ready, k)
	}
}

// remove takes a poll out.
func (w *waiting) remove(p *poll) {
	k := p.worker
	if p.before != nil {
		p.before.after = p.after
	} else {
		k.first = p.after
	}
	if p.after != nil {
		p.after.before = p.before
	} else {
		k.last = p.before
	}
	p.before, p.after = nil, nil
	if k.first == nil {
		w.part(k)
	}
}

// join makes a worker the last that is served.
func (w *waiting) join(k *worker) {
	if w.head == nil {
		k.before, k.after = k, k
		w.head = k
		return
	}
	k.before, k.after = w.head.before, w.head
	k.before.after, k.after.before = k, k
}

func (w *waiting) part(k *worker) {
	k.before.after, k.after.before = k.after, k.before
	if w.head == k {
		w.head = k.after
	}
	if w.head == k {
		w.head = nil
	}
	k.before, k.after = nil, nil
}

// served makes whoever comes after k the next.
func (w *waiting) served(k *worker) {
	if w.head == k {
		w.head = k.after
	}
}

func (k *worker) reserve(r *rec) {
	i := sort.Search(len(k.reserved), func(i int) bool { return k.reserved[i].offset > r.offset })
	k.reserved = append(k.reserved, nil)
	copy(k.reserved[i+1:], k.reserved[i:])
	k.reserved[i] = r
}

func (k *worker) unreserve(r *rec) {
	i := sort.Search(len(k.reserved), func(i int) bool { return k.reserved[i].offset >= r.offset })
	copy(k.reserved[i:], k.reserved[i+1:])
	k.reserved[len(k.reserved)-1] = nil
	k.reserved = k.reserved[:len(k.reserved)-1]
}

// connOf is the connection of that number.
func (c *Core) connOf(n Conn) *conn {
	k := c.conns[n]
	if k == nil {
		k = &conn{id: n, open: true}
		c.conns[n] = k
	}
	return k
}

// workerOf is who polls.
func (c *Core) workerOf(k *conn, member string) *worker {
	if member == "" {
		if k.alone == nil {
			k.alone = &worker{}
		}
		return k.alone
	}
	w := c.members[member]
	if w == nil {
		c.tidyMembers()
		w = &worker{member: member}
		c.members[member] = w
	}
	return w
}

// membersKept is how many members are remembered before those that hold nothing are looked for.
const membersKept = 1024

// tidyMembers forgets members that hold nothing and wait for nothing: what they are is made again when they poll.
func (c *Core) tidyMembers() {
	if len(c.members) < c.membersNext {
		return
	}
	used := make(map[string]*worker, len(c.members))
	for _, r := range c.play.all {
		if r.worker != nil && r.worker.member != "" {
			used[r.worker.member] = r.worker
		}
	}
	for k := c.waiting.head; k != nil; {
		if k.member != "" {
			used[k.member] = k
		}
		if k = k.after; k == c.waiting.head {
			break
		}
	}
	for p := c.reading.first; p != nil; p = p.after {
		if p.worker.member != "" {
			used[p.worker.member] = p.worker
		}
	}
	c.members, c.membersNext = used, 2*max(len(used), membersKept)
}

// gone closes a connection.
func (c *Core) gone(n Conn) {
	k := c.conns[n]
	if k == nil {
		return
	}
	k.open = false
	delete(c.conns, n)
	c.endWaits(func(p *poll) bool { return p.conn == k })
}

// endWaits answers polls that wait, with nothing.
func (c *Core) endWaits(of func(*poll) bool) {
	var theirs []*poll
	for _, p := range c.ends.items {
		if of(p) {
			theirs = append(theirs, p)
		}
	}
	sort.Slice(theirs, func(i, j int) bool { return theirs[i].id < theirs[j].id })
	for _, p := range theirs {
		c.unwait(p)
		c.deliver(p, 0, nil)
	}
}

// endReads answers polls whose records are being read, with nothing: those are owed.
func (c *Core) endReads(of func(*poll) bool) {
	for p := c.reading.first; p != nil; {
		next := p.after
		if of(p) {
			c.reading.remove(p)
			for _, r := range p.recs {
				if r.poll == p.id { // not finished, voided or chosen for somebody else meanwhile
					c.returnRec(r)
				}
			}
			c.deliver(p, 0, nil)
		}
		p = next
	}
}
