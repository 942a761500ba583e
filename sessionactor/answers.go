package sessionactor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Answers is a node's budget for answers that wait because clients do not read them. Two things keep it:
//
//   - once half of it is used, a stream that owes answers takes no further request until its own have left; streams whose clients
//     read owe nothing and notice nothing of it;
//   - when it is full, the connection that owes most loses the stream that owes most, until there is room: those who do not read pay,
//     and not those who come next.
//
// It can be exceeded by what streams owe that are being ended, and by one answer for each of the others, or small ones of gatherMost
// bytes together. Safe for concurrent use.
type Answers struct {
	limit int
	used  atomic.Int64 // changed under mu

	mu       sync.Mutex
	staying  int // what lanes owe that were not chosen to be ended
	sessions []*session
}

// owedStep is the grain of the books, in bytes: a stream that owes anything is booked with a multiple of it, so that every answer
// behind many others does not ask for the node's lock, and so that many small debts count for what they cost.
const owedStep = 4 << 10

// debts is what one connection owes, under Answers.mu.
//
//  1. bytes is the sum of what lanes owe, and lanes are exactly those that owe something and were not chosen to be ended;
//  2. a session is in Answers.sessions, at place, while it has such lanes.
type debts struct {
	bytes int
	place int
	lanes []*lane
}

// debt is what one lane owes, under Answers.mu; its own lock is held for a change, too.
type debt struct {
	bytes  int
	place  int // in debts.lanes
	chosen bool
}

// NewAnswers returns a budget of limit bytes, at least 64 KiB.
func NewAnswers(limit int) *Answers {
	if limit < 64<<10 {
		panic(fmt.Sprintf("sessionactor: a budget of %d bytes for answers is too small to answer at all", limit))
	}
	return &Answers{limit: limit}
}

// Used is what waits now, in bytes.
func (a *Answers) Used() int64 { return a.used.Load() }

// Limit is the size of the budget, in bytes.
func (a *Answers) Limit() int { return a.limit }

// tight reports whether streams that owe something have to wait.
func (a *Answers) tight() bool { return a.used.Load() > int64(a.limit/2) }

// book notes that a lane, whose lock is held, owes n bytes. It returns the lanes that have to be ended for it, if any.
func (a *Answers) book(l *lane, n int) (worst []*lane) {
	n = (n + owedStep - 1) / owedStep * owedStep
	if n == l.debt.bytes {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	more := n - l.debt.bytes
	a.used.Add(int64(more))
	if l.debt.chosen {
		l.debt.bytes = n
		return nil
	}
	if l.debt.bytes == 0 {
		a.add(l)
	}
	l.debt.bytes = n
	l.session.debts.bytes += more
	a.staying += more
	if n == 0 {
		a.remove(l)
	}
	for a.staying > a.limit {
		worst = append(worst, a.choose())
	}
	return worst
}

// choose takes the worst lane out of the books of those that stay.
func (a *Answers) choose() *lane {
	s := a.sessions[0]
	for _, x := range a.sessions {
		if x.debts.bytes > s.debts.bytes {
			s = x
		}
	}
	l := s.debts.lanes[0]
	for _, x := range s.debts.lanes {
		if x.debt.bytes > l.debt.bytes {
			l = x
		}
	}
	l.debt.chosen = true
	a.staying -= l.debt.bytes
	s.debts.bytes -= l.debt.bytes
	a.remove(l)
	return l
}

func (a *Answers) add(l *lane) {
	d := &l.session.debts
	if len(d.lanes) == 0 {
		d.place = len(a.sessions)
		a.sessions = append(a.sessions, l.session)
	}
	l.debt.place = len(d.lanes)
	d.lanes = append(d.lanes, l)
}

// remove lets the last of each list take the place that becomes free.
func (a *Answers) remove(l *lane) {
	d := &l.session.debts
	last := len(d.lanes) - 1
	d.lanes[l.debt.place], d.lanes[last].debt.place = d.lanes[last], l.debt.place
	d.lanes[last] = nil
	if d.lanes = d.lanes[:last]; last > 0 {
		return
	}
	d.lanes = nil
	last = len(a.sessions) - 1
	a.sessions[d.place], a.sessions[last].debts.place = a.sessions[last], d.place
	a.sessions[last] = nil
	a.sessions = a.sessions[:last]
}

// bookOwed books what the lane owes by now, and ends whoever has to go for it. mu is held.
func (l *lane) bookOwed() {
	for _, worst := range l.session.opts.Answers.book(l, l.core.Owed()) {
		// Not here: its lock must not be waited for with this one held. If its connection is gone already, so is what it owes.
		worst.session.pump("end unread", func(context.Context) { worst.endUnread() })
	}
}

// endUnread ends a stream whose client does not read its answers. What is open on it keeps its permits until its outcome.
func (l *lane) endUnread() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	owed := l.core.Owed()
	l.core.Unread()
	l.sample = sample{}
	l.reads.abandon()
	l.send.CancelWrite()
	l.session.opts.Events.Emit(answersUnread{session: l.session.number, client: l.session.conn.RemoteAddr(), bytes: owed})
	l.flush()
}
