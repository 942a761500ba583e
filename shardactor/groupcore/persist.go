package groupcore

import "slices"

// sweptAtOnce is how many keys without a meaning a Persist deletes besides what was changed: so many that they are gone before as many
// new ones can come, and so few that nobody waits longer for them.
const sweptAtOnce = 256

// persist sends everything that one log does not hold, unless a Persist of it is on its way, or failed a moment ago.
func (c *Core) persist(log Log) {
	b := &c.backlog
	l := &b.logs[log]
	sweeps := len(l.sweep) > 0 && c.maySweep(log)
	if l.seq != 0 || c.stopped != nil || b.retryAt > c.now && b.retryAt != never || len(l.changed) == 0 && !sweeps {
		return
	}
	p := &Persist{Log: log, Wait: len(l.next) > 0}
	l.flying = l.flying[:0]
	p.Body = make([]byte, 0, min(len(l.changed)+min(len(l.sweep), sweptAtOnce), 1024)*(lengthPrefix+3+keyBytes+len(c.opts.Group)+25))
	for _, k := range l.changed {
		c.write(p, l, k, l.onLog[k])
	}
	l.changed = l.changed[:0]
	clear(l.onLog)
	if sweeps {
		c.sweepSome(p, l)
	}
	l.now, l.next = l.next, l.now[:0]
	if log == LogCursors {
		b.epochFlying, b.cursorFlying = c.epoch, c.cursor
	} else {
		b.listingNow, b.listing = b.listing, nil
	}
	b.seq++
	l.seq, p.Seq = b.seq, b.seq
	if p.Count == 0 { // everything that changed is as it was
		c.persisted(l.seq)
		return
	}
	b.retryAt = never
	c.emit(p)
}

// write adds what is known of a key.
func (c *Core) write(p *Persist, l *logBacklog, k dkey, onLog bool) {
	r := Record{Op: Put}
	var keyRoom [keyBytes + MaxGroupBytes]byte
	r.Key = AppendKey(keyRoom[:0], c.opts.Group, k.kind, k.offset)
	e, ok := c.entry(k)
	switch {
	case ok:
		var valueRoom [32]byte
		r.Value = AppendValue(valueRoom[:0], &e)
	case onLog:
		r.Op = Delete
	default:
		return
	}
	p.Body = AppendRecord(p.Body, r)
	p.Count++
	l.flying = append(l.flying, k)
}

// entry is what is known of a key; false if it is to be gone. From here on the log may have it.
func (c *Core) entry(k dkey) (e Entry, ok bool) {
	e = Entry{Kind: k.kind, Offset: k.offset, Epoch: c.epoch}
	switch k.kind {
	case KindPosition:
		e.Born, e.Cursor, e.Deleted = c.born, c.cursor, !c.exists
		return e, c.exists || c.tombstone
	case KindRange:
		x := c.settled.find(k.offset)
		if x == nil {
			return e, false
		}
		x.stored = true
		e.End = x.to
	case KindRun:
		x := c.play.runs[k.offset]
		if x == nil {
			return e, false
		}
		x.stored = true
		e.Count = x.count
	case KindNumber:
		r := c.play.byOffset[k.offset]
		if r == nil || !r.single {
			return e, false
		}
		r.stored = true
		r.noted = r.failures
		e.Number, e.Failures = r.number, r.failures
	case KindDead:
		d := c.dead.find(k.offset)
		if d == nil {
			return e, false
		}
		d.stored = true
		e.Epoch, e.Owed = c.born, d.owed
		if r := c.play.byOffset[k.offset]; d.owed && r != nil {
			r.noted = r.failures
			e.Number, e.Failures = r.number, r.failures
		}
	}
	return e, true
}

// maySweep reports whether keys without a meaning may go: those of dead letters only once the position says so too.
func (c *Core) maySweep(log Log) bool { return log == LogCursors || c.backlog.safeEpoch == c.epoch }

// sweepSome deletes a few keys that mean nothing any more.
func (c *Core) sweepSome(p *Persist, l *logBacklog) {
	n := min(len(l.sweep), sweptAtOnce)
	for _, k := range l.sweep[:n] {
		if _, ok := c.entry(k); !ok {
			c.write(p, l, k, true)
		}
	}
	if l.sweep = slices.Delete(l.sweep, 0, n); len(l.sweep) == 0 {
		l.sweep = nil
	}
}
