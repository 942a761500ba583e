package shardcore

import (
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// duplicate is a numbered write whose batch is in the log or on its way there. It waits for that one's outcome.
type duplicate struct {
	reply     Reply
	token     Token
	base, end id.Offset
}

// numbered judges a write by its producer's numbers. It reports whether the write is to be claimed; otherwise it was answered, or waits
// as a duplicate.
func (c *Core) numbered(w *Write) (claim bool) {
	b := w.Batch
	run := c.claimed.byID[b.ProducerID]
	if run != nil {
		if first := run.find(b.Sequence); first != nil {
			c.repeat(w, numberedOf(first))
			return false
		}
	}
	s, found, known, next := c.producers.find(b.ProducerID, b.Sequence)
	if run != nil {
		known, next = true, run.next()
	}
	switch {
	case found:
		c.repeat(w, Numbered{Base: s.base, Count: s.count, Sum: s.sum, Length: s.length})
	case b.Sequence == next: // also the first of a producer that is not known
		return true
	case !known:
		c.refused(w, wire.RefusedReason{Kind: wire.RefusedUnknownProducer})
	case b.Sequence > next:
		c.refused(w, wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: next})
	default:
		c.refused(w, wire.RefusedReason{Kind: wire.RefusedSequenceExpired})
	}
	return false
}

// repeat answers a write whose batch, first, was claimed before, with that one's outcome.
func (c *Core) repeat(w *Write, first Numbered) {
	if w.Batch.Summarize() != first.Sum || uint64(len(w.Batch.Body)) != uint64(first.Length) || w.Batch.Count != first.Count {
		c.refused(w, wire.RefusedReason{Kind: wire.RefusedSequenceReused})
		return
	}
	end := first.Base.Add(uint64(first.Count))
	if end <= c.answerable(LogMain) {
		c.answer(Answer{Reply: w.Reply, Token: w.Token, Offset: first.Base})
		return
	}
	if c.patient() >= c.opts.Duplicates {
		c.refuse(w, overloaded("too many repeated publishes wait for their first ones; repeat the request"))
		return
	}
	c.duplicates = append(c.duplicates, duplicate{reply: w.Reply, token: w.Token, base: first.Base, end: end})
}

// refused answers a write that was not appended, for a reason its producer has to know.
func (c *Core) refused(w *Write, reason wire.RefusedReason) {
	c.answer(Answer{Reply: w.Reply, Token: w.Token, Refused: &reason})
}

// answerDuplicates answers those whose batch may be answered; the others keep their order.
func (c *Core) answerDuplicates(end id.Offset) {
	c.settleDuplicates(func(d *duplicate) *Answer {
		if d.end > end {
			return nil
		}
		return &Answer{Offset: d.base}
	})
}

// failDuplicates answers those whose batch is void: it begins at from or above.
func (c *Core) failDuplicates(from id.Offset, f func() *wire.Refusal) {
	c.settleDuplicates(func(d *duplicate) *Answer {
		if d.base < from {
			return nil
		}
		return &Answer{Refusal: f()}
	})
}

// settleDuplicates answers those for which outcome has one.
func (c *Core) settleDuplicates(outcome func(*duplicate) *Answer) {
	kept := c.duplicates[:0]
	for i := range c.duplicates {
		d := &c.duplicates[i]
		a := outcome(d)
		if a == nil {
			kept = append(kept, *d)
			continue
		}
		a.Reply, a.Token = d.reply, d.token
		c.answer(*a)
	}
	clear(c.duplicates[len(kept):])
	c.duplicates = kept
}

// settleNumbers moves a batch that became durable from what is claimed to what is remembered.
func (c *Core) settleNumbers(b *batch.Batch) {
	if b.ProducerID == 0 {
		c.producers.Note(Numbered{Base: b.Base, Count: b.Count})
		return
	}
	c.claimed.pop(b)
	c.producers.Note(numberedOf(b))
}
