package actors

// Settler is implemented by a data message that will be answered. Settled reports whether its one answer has been given.
// It is called from the actor's goroutine after each turn, so an answer given elsewhere must set it atomically.
// A message without it is a statement: it counts as done once the turn that stepped it has ended.
type Settler interface{ Settled() bool }

// ledgerScanMin is the size below which the ledger is not searched for settled entries behind an unsettled one.
const ledgerScanMin = 64

// ledger holds the data messages that were stepped and are not yet answered, in the order they were stepped. It belongs to
// the wrapper, so that a core in any state cannot forget a requester.
//
// Its bound: it holds at most max(ledgerScanMin, 2 x unanswered) + one turn, and what is unanswered is bounded by the permits
// the requesters hold until their answer. Settled entries leave at the end of the turn after which they are at the front;
// when the length reaches scanAt all others leave too, which costs O(1) per message over time.
type ledger struct {
	q      queue
	scanAt int
}

// add records a stepped message.
func (l *ledger) add(p *chunkPool, m any) { l.q.push(p, item{msg: m}) }

// sweep forgets what has been answered meanwhile.
func (l *ledger) sweep(p *chunkPool) {
	for l.q.n > 0 && settled(l.q.front().msg) {
		l.q.pop(p)
	}
	if l.q.n < max(l.scanAt, ledgerScanMin) {
		return
	}
	for range l.q.n {
		if it := l.q.pop(p); !settled(it.msg) {
			l.q.push(p, it)
		}
	}
	l.scanAt = 2 * l.q.n
}

// settled reports whether m needs no answer any more. A Settled that panics has told nothing: its message stays unanswered.
func settled(m any) (done bool) {
	s, ok := m.(Settler)
	if !ok {
		return false
	}
	defer func() {
		if recover() != nil {
			done = false
		}
	}()
	return s.Settled()
}
