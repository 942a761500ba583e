package shardcore

import (
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// turnEffects is what a turn asks for. Two of them take turns, so that a busy shard allocates nothing for its lists.
type turnEffects struct {
	list    []Effect
	answers []*Answers // answers[:used] are in list
	used    int
	folds   []*batch.Batch // what the Folds in list hand over
}

func (t *turnEffects) reset() {
	clear(t.list)
	t.list = t.list[:0]
	for _, a := range t.answers[:t.used] {
		clear(a.List)
		a.List = a.List[:0]
	}
	t.used = 0
	clear(t.folds)
	if t.folds = t.folds[:0]; cap(t.folds) > foldsKept {
		t.folds = nil
	}
	if len(t.answers) > answersKept {
		t.answers = t.answers[:answersKept:answersKept]
	}
}

// answersKept is how many lists of answers a core keeps for its next turns.
const answersKept = 4

// foldsKept is how much room for batches that are folded a core keeps for its next turns: more than a turn's mailbox holds.
const foldsKept = 4096

// Take returns what must be done for all that was stepped since the last Take. The slice, and the lists of answers in it,
// are valid until the next Take; Step may be called meanwhile.
func (c *Core) Take() []Effect {
	c.flushClaims()
	c.turn, c.spare = c.spare, c.turn
	c.turn.reset()
	return c.spare.list
}

func (c *Core) emit(e Effect) { c.turn.list = append(c.turn.list, e) }

func (c *Core) refuse(w *Write, f *wire.Refusal) {
	c.answer(Answer{Reply: w.Reply, Token: w.Token, Refusal: f})
}

// answer adds to the answers that leave next; those that follow each other leave as one effect.
func (c *Core) answer(a Answer) {
	t := c.turn
	if n := len(t.list); n > 0 {
		if last, ok := t.list[n-1].(*Answers); ok {
			last.List = append(last.List, a)
			return
		}
	}
	if t.used == len(t.answers) {
		t.answers = append(t.answers, &Answers{})
	}
	next := t.answers[t.used]
	t.used++
	next.List = append(next.List, a)
	c.emit(next)
}
