package shardcore

import (
	"fmt"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Verdict is what a Judge makes of a write: at most one of Append, Again and Refusal. With none of them the write is done without a
// record, and answered as Unwritten.
type Verdict struct {
	// Append claims the batch.
	Append bool
	// Again gives the write back at once: nothing was done.
	Again bool
	// Refusal refuses the write: nothing was done.
	Refusal *wire.Refusal
	// Until is the end of the claims that an Unwritten or a Refusal rests on: the answer leaves when everything of its log below Until is
	// committed; zero, or what is committed already, is at once. If a claim below Until is void before that, Judge is asked again. It is
	// not above the base that Judge was called with. Writes that wait are bounded by Options.Duplicates, and by Options.UnsyncedBytes
	// for what they keep in memory; one beyond that is refused as overloaded.
	Until id.Offset
}

// Book is told of the claims that will be folded, so that a Judge knows of them. Its methods are called within Step, and call nothing of
// the core.
type Book interface {
	// Claimed says that the batch of a write with Fold got its offsets.
	Claimed(log Log, b *batch.Batch)
	// Void says that the claims at from and above are void.
	Void(log Log, from id.Offset)
}

// waitingWrite is a write that will be answered without a record once everything of its log below until is committed.
type waitingWrite struct {
	write   *Write
	refusal *wire.Refusal
	until   id.Offset
	size    int
}

// judged asks a write's judge. It reports whether the write is to be claimed; otherwise it was answered, or waits.
func (c *Core) judged(at At, w *Write) (claim bool) {
	l := c.log(w.Log)
	v := w.Judge(l.tail, uint64(at.Wall.UnixMilli()))
	switch {
	case v.Append && (v.Again || v.Refusal != nil) || v.Again && v.Refusal != nil || v.Until > l.tail:
		panic(fmt.Sprintf("shardcore: a verdict of append %v, again %v, refusal %v, until %d; the log ends at %d", v.Append, v.Again, v.Refusal, v.Until, l.tail))
	case v.Append:
		return true
	case v.Again:
		c.answer(Answer{Reply: w.Reply, Token: w.Token, Again: true})
	case v.Until <= l.commit:
		c.unwritten(w, v.Refusal)
	default:
		c.wait(w, v)
	}
	return false
}

// unwritten answers a write that needs no record.
func (c *Core) unwritten(w *Write, refusal *wire.Refusal) {
	c.answer(Answer{Reply: w.Reply, Token: w.Token, Refusal: refusal, Unwritten: refusal == nil})
}

// wait keeps a write until the claims are committed that its verdict rests on.
func (c *Core) wait(w *Write, v Verdict) {
	size := kept(w)
	if c.patient() >= c.opts.Duplicates || c.waitingLen+size > c.opts.UnsyncedBytes && c.waitingLen > 0 {
		c.refuse(w, overloaded("too many requests wait for earlier ones to be safe; repeat the request"))
		return
	}
	l := c.log(w.Log)
	l.waiting = append(l.waiting, waitingWrite{write: w, refusal: v.Refusal, until: v.Until, size: size})
	c.waitingLen += size
}

// patient is how many writes wait for the outcome of others.
func (c *Core) patient() int {
	n := len(c.duplicates)
	for _, l := range c.logs {
		if l != nil {
			n += len(l.waiting)
		}
	}
	return n
}

// kept is what a write keeps in memory, in bytes, whether its batch was filled or not.
func kept(w *Write) int { return max(w.Batch.Size(), w.Batch.PayloadBytes+batch.Overhead) }

// answerWaiting answers those that wait for nothing any more; the others keep their order.
func (c *Core) answerWaiting(l *logState) {
	c.settleWaiting(l, func(x *waitingWrite) bool { return x.until <= l.commit }, func(x *waitingWrite) { c.unwritten(x.write, x.refusal) })
}

// judgeAgain steps the writes anew whose verdict rests on claims that are void.
func (c *Core) judgeAgain(at At, l *logState) {
	c.settleWaiting(l, func(x *waitingWrite) bool { return x.until > l.tail }, func(x *waitingWrite) { c.write(at, x.write) })
}

// refuseWaiting ends the waiting writes of a log that fails: none of them did anything.
func (c *Core) refuseWaiting(l *logState, refusal func() *wire.Refusal) {
	c.settleWaiting(l, func(*waitingWrite) bool { return true }, func(x *waitingWrite) { c.refuse(x.write, refusal()) })
}

// settleWaiting takes those out that are due, and then ends them in their order; some may come to wait again.
func (c *Core) settleWaiting(l *logState, due func(*waitingWrite) bool, end func(*waitingWrite)) {
	left := l.waiting[:0]
	for i := range l.waiting {
		x := &l.waiting[i]
		if due(x) {
			c.due = append(c.due, *x)
			c.waitingLen -= x.size
		} else {
			left = append(left, *x)
		}
	}
	clear(l.waiting[len(left):])
	l.waiting = left
	for i := range c.due {
		end(&c.due[i])
	}
	clear(c.due)
	c.due = c.due[:0]
}
