package shardcore

import (
	"fmt"
	"slices"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func (c *Core) write(at At, w *Write) {
	w.verify()
	if f := c.role.refusal(); f != nil {
		c.refuse(w, f)
		return
	}
	if c.role.holds() {
		c.hold(at, w)
		return
	}
	if reason := c.log(w.Log).broken; reason != "" {
		c.refuse(w, failed{reason: reason}.refusal())
		return
	}
	if w.Batch.ProducerID != 0 && !c.numbered(w) {
		return
	}
	if tail := c.log(w.Log).tail; w.HasExpected && w.Expected != tail {
		c.refused(w, wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: tail})
		return
	}
	if w.Judge != nil && !c.judged(at, w) {
		return
	}
	c.claim(at, w)
}

// verify panics when a shell asks for what no shell should.
func (w *Write) verify() {
	if w.Log >= logCount || w.Batch.Kind == 0 || w.Batch.Count == 0 && w.Judge == nil {
		panic(fmt.Sprintf("shardcore: a write of %d records of kind %s to log %d", w.Batch.Count, w.Batch.Kind, w.Log))
	}
	if (w.Log != LogMain || w.Judge != nil) && (w.Batch.ProducerID != 0 || w.HasExpected) {
		panic(fmt.Sprintf("shardcore: a write to log %d is numbered or conditional, and judged: %v", w.Log, w.Judge != nil))
	}
}

// claim gives a write its offsets.
func (c *Core) claim(at At, w *Write) {
	l, size, ahead := c.log(w.Log), w.Batch.Size(), c.underway()
	if ahead+size > c.opts.UnsyncedBytes && ahead > 0 {
		c.refuse(w, overloaded("the shard has too much on its way to the log; repeat the request"))
		return
	}
	if w.Batch.Count == 0 {
		panic("shardcore: a judge appends no records")
	}
	w.Batch.Base, w.Batch.Generation = l.tail, l.generation
	w.Batch.AppendMicros = uint64(at.Wall.UnixMicro())
	l.tail = w.Batch.End()
	l.claims = append(l.claims, w.Batch)
	l.claimed += size
	if w.Batch.ProducerID != 0 {
		w.Batch.Summarize()
		c.claimed.push(w.Batch)
	}
	if w.Fold && c.opts.Book != nil {
		c.opts.Book.Claimed(w.Log, w.Batch)
	}
	p := pendingWrite{reply: w.Reply, token: w.Token, batch: w.Batch, fold: w.Fold || w.Batch.Kind == batch.Commit}
	if w.AtClaim && w.Batch.ProducerID == 0 && !w.HasExpected && (w.Log != LogMain || !c.opts.Blocking) {
		c.answer(Answer{Reply: p.reply, Token: p.token, NoOffset: true})
		p.reply, p.acked = nil, true
	}
	l.pending = append(l.pending, p)
}

// underway is how many bytes were claimed and are not durable, in all logs.
func (c *Core) underway() int {
	n := 0
	for _, l := range c.logs {
		if l != nil {
			n += l.unsynced + l.claimed
		}
	}
	return n
}

// flushClaims turns the claims of this turn into one Append for each log.
func (c *Core) flushClaims() {
	for i, l := range c.logs {
		if l != nil {
			c.flushLog(Log(i))
		}
	}
}

func (c *Core) flushLog(log Log) {
	l := c.log(log)
	if len(l.claims) == 0 {
		return
	}
	seq := c.Number()
	l.appends = append(l.appends, appendState{seq: seq, end: l.tail, bytes: l.claimed})
	l.unsynced += l.claimed
	c.emit(Append{Seq: seq, Log: log, Batches: l.claims})
	l.claims, l.claimed = nil, 0
}

// persisted completes the appends of a log and, if it is the main log, the save numbered from to to, both included.
func (c *Core) persisted(at At, log Log, from, to uint64) {
	if r, ok := c.role.(opening); ok && log == LogMain && r.save >= max(from, 1) && r.save <= to {
		c.lead(at, r)
	}
	l := c.log(log)
	if !l.persisted(from, to) {
		return // completes an append that a failure before it already voided
	}
	if l.commit == l.durable {
		return
	}
	c.settleDurable(log)
	l.commit = l.durable // one voter: durable here is durable on the majority
	c.emit(Readable{Log: log, End: l.commit})
	c.answerReleased(log)
}

// settleDurable takes note of the batches that became durable: those of pending at and above what is committed so far.
func (c *Core) settleDurable(log Log) {
	l := c.log(log)
	first, _ := slices.BinarySearchFunc(l.pending, l.commit, func(p pendingWrite, noted id.Offset) int {
		if p.batch.Base < noted {
			return -1
		}
		return 1
	})
	folds := len(c.turn.folds)
	for _, p := range l.pending[first:] {
		if p.batch.End() > l.durable {
			break
		}
		if log == LogMain {
			c.settleNumbers(p.batch)
		}
		if p.fold {
			c.turn.folds = append(c.turn.folds, p.batch)
		}
	}
	if list := c.turn.folds[folds:]; len(list) > 0 {
		c.emit(Fold{Log: log, Batches: list[:len(list):len(list)]})
	}
}

// release notes that readers of the main log have room up to end. It never falls: what was answered stays so.
func (c *Core) release(end id.Offset) {
	c.released = max(c.released, end)
	c.answerReleased(LogMain)
}

// answerable is the end of what may be answered of a log. Readers hold up the main log only.
func (c *Core) answerable(log Log) id.Offset {
	if log == LogMain {
		return min(c.log(log).commit, c.released)
	}
	return c.log(log).commit
}

// answerReleased answers, in claim order, the writes of a log that are committed and that no reader holds up, and what waited for them.
func (c *Core) answerReleased(log Log) {
	l, end := c.log(log), c.answerable(log)
	done := 0
	for done < len(l.pending) && l.pending[done].batch.End() <= end {
		p := &l.pending[done]
		done++
		if !p.acked {
			c.answer(Answer{Reply: p.reply, Token: p.token, Offset: p.batch.Base})
		}
	}
	l.dropPending(done)
	if log == LogMain && len(c.duplicates) > 0 {
		c.answerDuplicates(end)
	}
	if len(l.waiting) > 0 {
		c.answerWaiting(l)
	}
	c.settleDrain()
}

// trimmed notes what was removed. Only what is committed is removed, so claims are not touched.
func (c *Core) trimmed(in Trimmed) {
	l := c.log(in.Log)
	base := min(in.Base, l.commit)
	if base <= l.base {
		return
	}
	l.base = base
	if in.Log == LogMain {
		c.producers.Trim(base)
	}
}
