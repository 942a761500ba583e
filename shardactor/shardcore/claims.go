package shardcore

import (
	"fmt"
	"slices"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func (c *Core) write(at At, w *Write) {
	if w.Batch.Count == 0 || w.Batch.Kind == 0 {
		panic(fmt.Sprintf("shardcore: a write of %d records of kind %s", w.Batch.Count, w.Batch.Kind))
	}
	if f := c.role.refusal(); f != nil {
		c.refuse(w, f)
		return
	}
	if c.role.holds() {
		c.hold(at, w)
		return
	}
	if w.Batch.ProducerID != 0 && !c.numbered(w) {
		return
	}
	if tail := c.logs[LogMain].tail; w.HasExpected && w.Expected != tail {
		c.refused(w, wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: tail})
		return
	}
	c.claim(at, w)
}

// claim gives a write its offsets.
func (c *Core) claim(at At, w *Write) {
	l := &c.logs[LogMain]
	size := w.Batch.Size()
	if l.unsynced+c.bytes+size > c.opts.UnsyncedBytes && l.unsynced+c.bytes > 0 {
		c.refuse(w, overloaded("the shard has too much on its way to the log; repeat the request"))
		return
	}
	w.Batch.Base, w.Batch.Generation = l.tail, l.generation
	w.Batch.AppendMicros = uint64(at.Wall.UnixMicro())
	if w.Stamp != nil {
		w.Stamp(w.Batch, uint64(at.Wall.UnixMilli()))
	}
	l.tail = w.Batch.End()
	c.claims = append(c.claims, w.Batch)
	c.bytes += size
	if w.Batch.ProducerID != 0 {
		w.Batch.Summarize()
		c.claimed.push(w.Batch, c.seq+1)
	}
	p := pendingWrite{reply: w.Reply, token: w.Token, batch: w.Batch, apply: w.Apply, seq: c.seq + 1}
	if w.AtClaim && w.Batch.ProducerID == 0 && !w.HasExpected && !c.opts.Blocking {
		c.answer(Answer{Reply: p.reply, Token: p.token, NoOffset: true})
		p.reply, p.acked = nil, true
	}
	c.pending = append(c.pending, p)
}

// flushClaims turns the claims of this turn into one Append.
func (c *Core) flushClaims() {
	if len(c.claims) == 0 {
		return
	}
	c.seq++
	l := &c.logs[LogMain]
	l.appends = append(l.appends, appendState{seq: c.seq, end: l.tail, bytes: c.bytes})
	l.unsynced += c.bytes
	c.emit(Append{Seq: c.seq, Log: LogMain, Batches: c.claims})
	c.claims, c.bytes = nil, 0
}

// persisted completes the appends and the save numbered from to to, both included.
func (c *Core) persisted(at At, from, to uint64) {
	if r, ok := c.role.(opening); ok && r.save >= max(from, 1) && r.save <= to {
		c.lead(at, r)
	}
	l := &c.logs[LogMain]
	if !l.persisted(from, to) {
		return // completes an append that a failure before it already voided
	}
	if l.commit == l.durable {
		return
	}
	c.settleDurable()
	l.commit = l.durable // one voter: durable here is durable on the majority
	c.emit(Readable{Log: LogMain, End: l.commit})
	c.answerReleased()
}

// settleDurable takes note of the batches that became durable: those of pending that producers has not noted.
func (c *Core) settleDurable() {
	l := &c.logs[LogMain]
	first, _ := slices.BinarySearchFunc(c.pending, c.producers.end, func(p pendingWrite, noted id.Offset) int {
		if p.batch.Base < noted {
			return -1
		}
		return 1
	})
	var commits []*batch.Batch
	for _, p := range c.pending[first:] {
		if p.batch.End() > l.durable {
			break
		}
		c.settleNumbers(p.batch)
		if p.batch.Kind == batch.Commit {
			commits = append(commits, p.batch)
		}
	}
	if len(commits) > 0 {
		c.emit(Fold{Batches: commits})
	}
}

// release notes that readers have room up to end. It never falls: what was answered stays so.
func (c *Core) release(end id.Offset) {
	c.released = max(c.released, end)
	c.answerReleased()
}

// answerable is the end of what may be answered.
func (c *Core) answerable() id.Offset { return min(c.logs[LogMain].commit, c.released) }

// answerReleased answers, in claim order, the writes that are committed and that no reader holds up.
func (c *Core) answerReleased() {
	end := c.answerable()
	done := 0
	for done < len(c.pending) && c.pending[done].batch.End() <= end {
		p := &c.pending[done]
		done++
		if p.acked {
			continue
		}
		a := Answer{Reply: p.reply, Token: p.token, Offset: p.batch.Base}
		if p.apply {
			a.Apply = p.batch
		}
		c.answer(a)
	}
	c.dropPending(done)
	if len(c.duplicates) > 0 {
		c.answerDuplicates(end)
	}
	c.settleDrain()
}

func (c *Core) dropPending(done int) {
	if done == 0 {
		return
	}
	n := copy(c.pending, c.pending[done:])
	clear(c.pending[n:])
	c.pending = c.pending[:n]
}

// trimmed notes what retention removed. Only what is committed is removed, so claims are not touched.
func (c *Core) trimmed(base id.Offset) {
	if base = min(base, c.logs[LogMain].commit); base > c.base {
		c.base = base
		c.producers.Trim(base)
	}
}
