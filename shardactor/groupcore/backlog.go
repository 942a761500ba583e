package groupcore

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// dkey is what a key is about; with the group it is the key.
type dkey struct {
	kind   Kind
	offset id.Offset
}

// waiter is an answer that waits until what it says is durable.
type waiter struct {
	ask     Ask
	offset  id.Offset // of a seek
	moved   bool
	existed bool
}

// logBacklog is what one log does not hold yet. Nothing says how a key changed: what is written is what the core knows of it then.
type logBacklog struct {
	changed []dkey
	onLog   map[dkey]bool // the changed keys; true: the log may have a record of it
	sweep   []dkey        // that mean nothing any more, to be deleted in time
	seq     uint64        // of the Persist on its way, 0: none
	flying  []dkey        // its keys
	bad     bool          // the last one failed
	// now wait for the Persist on its way, next for the one after it.
	now, next []waiter
}

// backlog is what the logs do not hold yet, and who waits for that.
type backlog struct {
	logs                [logCount]logBacklog
	seq                 uint64
	retryAt             time.Duration // never, unless a Persist failed and is to be sent again
	reason              string
	listing, listingNow []id.Offset // dead letters whose records are finished when they are durable
	epochFlying         uint64      // of the position that is on its way
	cursorFlying        id.Offset
	safeEpoch           uint64 // of the position that is durable
}

func (b *backlog) begin() {
	b.retryAt = never
	for i := range b.logs {
		b.logs[i].onLog = make(map[dkey]bool)
	}
}

// mark notes that a key changed.
func (l *logBacklog) mark(k dkey, onLog bool) {
	had, ok := l.onLog[k]
	if !ok {
		l.changed = append(l.changed, k)
	}
	l.onLog[k] = had || onLog
}

func (l *logBacklog) busy() bool { return len(l.changed) > 0 || l.seq != 0 }

func (c *Core) dirty(k dkey) { c.backlog.logs[LogCursors].mark(k, false) }

// dirtyGone notes that a key is gone; stored if the log may have it.
func (c *Core) dirtyGone(k dkey, stored bool) { c.backlog.logs[LogCursors].mark(k, stored) }

// sweepAway has a key deleted in time that means nothing any more once the position is durable.
func (c *Core) sweepAway(log Log, k dkey) {
	l := &c.backlog.logs[log]
	l.sweep = append(l.sweep, k)
}

func (b *backlog) failing() bool { return b.logs[LogCursors].bad || b.logs[LogDeadLetters].bad }

func (b *backlog) full(most int) bool {
	return len(b.logs[LogCursors].changed) >= most || len(b.logs[LogDeadLetters].changed) >= most
}

func (b *backlog) waiters() (n int) {
	for i := range b.logs {
		n += len(b.logs[i].now) + len(b.logs[i].next)
	}
	return n
}

// empty reports whether the logs hold everything.
func (b *backlog) empty() bool {
	for i := range b.logs {
		if b.logs[i].busy() || len(b.logs[i].sweep) > 0 {
			return false
		}
	}
	return true
}

// blocked reports whether nothing is to be handed out, because it could not be noted.
func (c *Core) blocked() bool { return c.backlog.failing() || c.backlog.full(c.opts.MaxUnwritten) }

// wait answers when everything that was changed so far is durable: first the dead letters, then the cursors.
func (b *backlog) wait(c *Core, w waiter) {
	for i := int(logCount) - 1; i >= 0; i-- {
		switch l := &b.logs[i]; {
		case len(l.changed) > 0:
			l.next = append(l.next, w)
			return
		case l.seq != 0:
			l.now = append(l.now, w)
			return
		}
	}
	c.settleWaiter(w)
}

// settleWaiter answers what is durable.
func (c *Core) settleWaiter(w waiter) {
	c.answer(Answer{Ask: w.ask, Offset: w.offset, Moved: w.moved, Existed: w.existed})
}

// persisted completes the Persist of that number.
func (c *Core) persisted(seq uint64) {
	b := &c.backlog
	for i := range b.logs {
		l := &b.logs[i]
		if l.seq != seq || seq == 0 {
			continue
		}
		done := l.now
		l.seq, l.bad, l.flying, l.now = 0, false, l.flying[:0], nil
		if Log(i) == LogCursors {
			b.safeEpoch, c.safeCursor = b.epochFlying, b.cursorFlying
			for _, w := range done {
				c.settleWaiter(w)
			}
		} else {
			listed := b.listingNow
			b.listingNow = nil
			c.listed(listed)
			cursors := &b.logs[LogCursors]
			for _, w := range done {
				b.waitCursors(c, cursors, w)
			}
		}
		if cap(done) <= poolKept {
			clear(done)
			l.now = done[:0]
		}
	}
	c.bury()
}

func (b *backlog) waitCursors(c *Core, l *logBacklog, w waiter) {
	switch {
	case len(l.changed) > 0:
		l.next = append(l.next, w)
	case l.seq != 0:
		l.now = append(l.now, w)
	default:
		c.settleWaiter(w)
	}
}

// failed has a Persist written again, and tells whoever waits for it or for what comes after it that the outcome is not known.
func (c *Core) failed(seq uint64, reason string) {
	b := &c.backlog
	for i := range b.logs {
		l := &b.logs[i]
		if l.seq != seq || seq == 0 {
			continue
		}
		for _, k := range l.flying {
			l.mark(k, true)
		}
		l.seq, l.bad, l.flying = 0, true, l.flying[:0]
		b.reason = reason
		if c.stopped == nil {
			b.retryAt = c.now + c.opts.WriteRetry
		}
		if Log(i) == LogDeadLetters {
			b.listing = append(b.listingNow, b.listing...)
			b.listingNow = nil
		}
		f := wire.Refuse(wire.CodeStorage, "the group's log could not be written: "+reason+"; whether this is done is not known, and it can be repeated")
		for _, w := range append(l.now, l.next...) {
			c.answer(Answer{Ask: w.ask, Refusal: &f})
		}
		l.now, l.next = nil, nil
	}
}

// refuseAll refuses whoever waits.
func (b *backlog) refuseAll(c *Core, f *wire.Refusal) {
	for i := range b.logs {
		l := &b.logs[i]
		for _, w := range append(l.now, l.next...) {
			c.answer(Answer{Ask: w.ask, Refusal: f})
		}
		l.now, l.next = nil, nil
	}
}

// bury removes the position of a deleted group once nothing else of it is left.
func (c *Core) bury() {
	b := &c.backlog
	if c.tombstone && !c.exists && b.empty() && b.safeEpoch == c.epoch {
		c.tombstone = false
		c.dirtyGone(dkey{KindPosition, 0}, true)
	}
}
