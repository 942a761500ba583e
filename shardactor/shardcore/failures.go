package shardcore

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// writeFailed answers everything from the failed append on and gives the offsets back: nothing of it was acknowledged, but for what
// was answered at its claim.
func (c *Core) writeFailed(at At, in WriteFailed) {
	if r, ok := c.role.(opening); ok && in.Log == LogMain && r.save != 0 && r.save == in.Seq {
		c.saveFailed(at, r)
		return
	}
	c.flushLog(in.Log)
	l := c.log(in.Log)
	if !l.failed(in.Seq) {
		return
	}
	c.voidClaims(in.Log, func() *wire.Refusal { return writeRefusal(in) })
	c.voidAppends(in.Log, in.Seq)
	if len(l.waiting) > 0 {
		c.judgeAgain(at, l)
	}
	c.settleDrain()
}

// voidClaims ends the claims of a log above its tail, which a failure has set back: each is refused, and its number may be used again.
func (c *Core) voidClaims(log Log, refusal func() *wire.Refusal) {
	l := c.log(log)
	kept := len(l.pending)
	for kept > 0 && l.pending[kept-1].batch.Base >= l.tail {
		kept--
		if b := l.pending[kept].batch; b.ProducerID != 0 {
			c.claimed.giveBack(b)
		}
	}
	if kept < len(l.pending) && c.opts.Book != nil {
		c.opts.Book.Void(log, l.tail)
	}
	lost := uint64(0)
	for _, p := range l.pending[kept:] {
		if p.acked {
			lost += uint64(p.batch.Count)
			continue
		}
		c.answer(Answer{Reply: p.reply, Token: p.token, Refusal: refusal()})
	}
	clear(l.pending[kept:])
	l.pending = l.pending[:kept]
	if log == LogMain {
		c.failDuplicates(l.tail, refusal)
	}
	if lost > 0 {
		c.emit(AckedLost{Records: lost})
	}
}

// voidAppends keeps what is in this turn's effects for void claims of a log, from the append seq on, from reaching it.
func (c *Core) voidAppends(log Log, seq uint64) {
	for i, e := range c.turn.list {
		if a, ok := e.(Append); ok && a.Log == log && a.Seq >= seq {
			c.turn.list[i] = Append{Seq: a.Seq, Log: a.Log}
		}
	}
}

// poisoned ends what is on its way without an outcome: a sync failed, and nobody can say what of it is stored.
func (c *Core) poisoned(at At, in Poisoned) {
	c.abandonClaims(func() *wire.Refusal {
		f := wire.Refuse(wire.CodeStorage, "the log failed, the write may or may not be stored: "+in.Reason)
		return &f
	}, failed{reason: in.Reason}.refusal)
	c.fail(at, failed{reason: in.Reason}, in.Reason)
	c.settleDrain()
}

// logFailed does the same to one log, which the others go on without.
func (c *Core) logFailed(in LogFailed) {
	l := c.log(in.Log)
	if in.Log == LogMain || in.Reason == "" {
		panic(fmt.Sprintf("shardcore: log %d failed alone, for the reason %q", in.Log, in.Reason))
	}
	c.flushLog(in.Log)
	c.abandon(in.Log, func() *wire.Refusal {
		f := wire.Refuse(wire.CodeStorage, "the log failed, the write may or may not be stored: "+in.Reason)
		return &f
	}, failed{reason: in.Reason}.refusal)
	l.broken = in.Reason
	c.settleDrain()
}

// abandonClaims ends everything claimed that is not committed, without an outcome: it may or may not be in the log, but for what did not
// leave in an Append yet. What is committed is done, whoever has no room for it; what waited for claims did nothing, and is told so.
// Completions that come later change nothing.
func (c *Core) abandonClaims(unknown, nothingDone func() *wire.Refusal) {
	c.flushClaims()
	c.release(forAll)
	for i, l := range c.logs {
		if l != nil {
			c.abandon(Log(i), unknown, nothingDone)
		}
	}
}

// abandon is abandonClaims of one log.
func (c *Core) abandon(log Log, unknown, nothingDone func() *wire.Refusal) {
	l := c.log(log)
	l.abandon()
	c.voidClaims(log, unknown)
	c.voidAppends(log, 0)
	if len(l.waiting) > 0 {
		c.refuseWaiting(l, nothingDone)
	}
}

// fail takes a role in which nothing is served, unless the shard ends anyway.
func (c *Core) fail(at At, next role, reason string) {
	if _, ok := c.role.(draining); !ok {
		c.become(at, next, reason)
	}
}

func (c *Core) drain(at At) {
	if _, ok := c.role.(draining); ok {
		return
	}
	c.flushClaims()
	c.become(at, draining{}, "asked to drain")
	c.release(forAll) // readers get what there is before the log closes: nothing more will fill their windows
}

func (c *Core) settleDrain() {
	r, ok := c.role.(draining)
	if !ok || r.done || len(c.duplicates) > 0 {
		return
	}
	for _, l := range c.logs {
		if l != nil && len(l.pending) > 0 { // what waits, waits for one of these
			return
		}
	}
	c.role = draining{done: true}
	c.emit(Drained{})
}

// reopened is what a write gets that was on its way when the shard was opened anew.
func reopened() *wire.Refusal {
	f := wire.Refuse(wire.CodeLeadershipLost, "the shard is opened anew; the write may or may not have been done")
	return &f
}

// writeRefusal is what a write gets whose append failed. A full disk took nothing, for certain; of another failure the log can only say
// that it cut back what it could.
func writeRefusal(in WriteFailed) *wire.Refusal {
	if !in.Full {
		f := wire.Refuse(wire.CodeStorage, "the write failed: "+in.Reason)
		return &f
	}
	f := wire.Refuse(wire.CodeStorage, "no space left on the broker's disk, nothing was written; repeat the request when there is room: "+in.Reason)
	f.Retry, f.RetryAfterMS = wire.RetryAfter, fullRetryMS
	return &f
}

// fullRetryMS is how long a client is asked to wait for a full disk: space is made by retention or by hand, which takes seconds.
const fullRetryMS = 1000
