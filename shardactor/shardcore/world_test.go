package shardcore

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// world is a core with the log it writes to, and beside it a twin that knows what every write must come to, by looking through
// everything there is each time. It keeps few producers and batches, so that they are forgotten often.
type world struct {
	core     *Core
	at       At
	stored   []entry  // what the log holds, safe
	flying   []entry  // claimed and not safe
	appends  []Append // taken and not completed
	base     id.Offset
	asked    []*asked
	lost     uint64 // records answered at the claim that the core reported lost
	mustLose uint64
	poisoned bool
	saving   uint64
	drained  bool
	// released is what readers have room for; forAll unless the world is blocking.
	blocking bool
	released id.Offset
}

// entry is a batch in the log or on its way there.
type entry struct {
	producer, sequence uint64
	base               id.Offset
	body               []byte
	by                 *asked
}

// asked is one write and what became of it.
type asked struct {
	n        int
	original *entry // of a duplicate
	answer   *Answer
	// want is how it must end: "done" at want offset, "fails", or a refusal.
	want   string
	offset id.Offset
	stored bool // it is in the log, and its answer waits for nothing but readers
	ready  bool // it must have its answer by now
	early  bool
}

const (
	worldProducers = 3
	worldBatches   = 4
)

func newWorld(blocking bool) *world {
	w := &world{blocking: blocking, released: forAll}
	opts := DefaultOptions()
	opts.Duplicates, opts.Blocking = 1000, blocking
	w.core = New(opts)
	if err := w.openWith(newProducers(worldProducers, worldBatches)); err != nil {
		panic(err)
	}
	return w
}

func (w *world) step(in Input) { w.core.Step(w.at, in) }

// take performs a turn's effects. An error says what the core did wrong.
func (w *world) take() error {
	for _, e := range w.core.Take() {
		switch e := e.(type) {
		case Save:
			w.saving = e.Seq
		case Append:
			if len(e.Batches) > 0 {
				w.appends = append(w.appends, e)
			}
		case AckedLost:
			w.lost += e.Records
		case Drained:
			w.drained = true
		case *Answers:
			for _, a := range e.List {
				x := a.Reply.(*asked)
				if x.answer != nil {
					return fmt.Errorf("write %d is answered twice", x.n)
				}
				copied := a
				x.answer = &copied
			}
		}
	}
	return w.judge()
}

// judge compares what was answered with what must have been.
func (w *world) judge() error {
	for _, x := range w.asked {
		x.ready = x.ready || x.stored && x.offset < w.released
		if !x.ready && x.answer != nil {
			return fmt.Errorf("write %d is answered %s before its outcome is known", x.n, told(x.answer))
		}
		if x.ready && (x.answer == nil || told(x.answer) != x.want || x.want == "done" && x.answer.Offset != x.offset) {
			return fmt.Errorf("write %d is answered %s, want %s at %d", x.n, told(x.answer), x.want, x.offset)
		}
	}
	w.asked = slices.DeleteFunc(w.asked, func(x *asked) bool { return x.ready })
	if w.lost != w.mustLose {
		return fmt.Errorf("%d records are reported lost that were answered at their claim, want %d", w.lost, w.mustLose)
	}
	return nil
}

func told(a *Answer) string {
	switch {
	case a == nil:
		return "nothing"
	case a.Refusal != nil:
		return a.Refusal.Code.String() + " " + a.Refusal.Retry.String()
	case a.Refused != nil && a.Refused.Kind == wire.RefusedSequenceGap:
		return fmt.Sprintf("sequence_gap %d", a.Refused.Expected)
	case a.Refused != nil && a.Refused.Kind == wire.RefusedOffsetMismatch:
		return fmt.Sprintf("offset_mismatch %d", a.Refused.Tail)
	case a.Refused != nil:
		return a.Refused.Kind.String()
	case a.NoOffset:
		return "claimed"
	case a.Again:
		return "again"
	case a.Unwritten:
		return "unwritten"
	}
	return "done"
}

func (w *world) tail() id.Offset {
	switch {
	case len(w.flying) > 0:
		e := w.flying[len(w.flying)-1]
		return e.base + 1
	case len(w.stored) > 0:
		e := w.stored[len(w.stored)-1]
		return e.base + 1
	}
	return w.base
}

// life is what the stored part of the log tells of one producer.
type life struct {
	producer uint64
	batches  []*entry
}

// remembered folds the stored part of the log in the plainest way.
func (w *world) remembered() []life {
	var lives []life
	for i := range w.stored {
		e := &w.stored[i]
		if e.producer == 0 || e.base < w.base {
			continue
		}
		l := life{producer: e.producer}
		if at := slices.IndexFunc(lives, func(l life) bool { return l.producer == e.producer }); at >= 0 {
			if old := lives[at]; old.batches[len(old.batches)-1].sequence+1 == e.sequence {
				l.batches = old.batches
			}
			lives = slices.Delete(lives, at, at+1)
		} else if len(lives) == worldProducers {
			lives = lives[1:]
		}
		l.batches = append(slices.Clone(l.batches), e)
		l.batches = l.batches[max(0, len(l.batches)-worldBatches):]
		lives = append(lives, l)
	}
	return lives
}

// write asks for one record of a producer, 0 for none, and says what has to come of it.
func (w *world) write(producer, sequence uint64, body []byte, expected *id.Offset, early bool) {
	x := &asked{n: int(w.core.seq)*1000 + len(w.asked)}
	w.asked = append(w.asked, x)
	in := &Write{Reply: x, AtClaim: early, Batch: &batch.Batch{Count: 1, Kind: batch.Records, Body: bytes.Clone(body), ProducerID: producer, Sequence: sequence}}
	if expected != nil {
		in.HasExpected, in.Expected = true, *expected
	}
	w.expect(x, producer, sequence, body, expected, early)
	w.step(in)
}

func (x *asked) end(want string) { x.want, x.ready = want, true }

func (w *world) expect(x *asked, producer, sequence uint64, body []byte, expected *id.Offset, early bool) {
	if w.poisoned {
		x.end("storage retry_after")
		return
	}
	if producer != 0 {
		known, next, first := w.find(producer, sequence)
		switch {
		case first != nil && !bytes.Equal(first.body, body):
			x.end("sequence_reused")
			return
		case first != nil:
			x.original, x.want, x.offset = first, "done", first.base
			x.stored = !slices.ContainsFunc(w.flying, func(e entry) bool { return e.base == first.base })
			return
		case !known && sequence != 0:
			x.end("unknown_producer")
			return
		case known && sequence > next:
			x.end(fmt.Sprintf("sequence_gap %d", next))
			return
		case known && sequence < next:
			x.end("sequence_expired")
			return
		}
	}
	if expected != nil && *expected != w.tail() {
		x.end(fmt.Sprintf("offset_mismatch %d", w.tail()))
		return
	}
	x.want, x.offset = "done", w.tail()
	if x.early = early && producer == 0 && expected == nil && !w.blocking; x.early {
		x.end("claimed")
	}
	w.flying = append(w.flying, entry{producer: producer, sequence: sequence, base: w.tail(), body: body, by: x})
}

// find looks for a producer, first in what is on its way.
func (w *world) find(producer, sequence uint64) (known bool, next uint64, first *entry) {
	for _, l := range w.remembered() {
		if l.producer == producer {
			known, next = true, l.batches[len(l.batches)-1].sequence+1
			for _, e := range l.batches {
				if e.sequence == sequence {
					first = e
				}
			}
		}
	}
	for i := range w.flying {
		if e := &w.flying[i]; e.producer == producer {
			known, next = true, e.sequence+1
			if e.sequence == sequence {
				copied := *e
				first = &copied
			}
		}
	}
	return known, next, first
}

// complete makes the first n appends safe, told one by one or as one.
func (w *world) complete(n int, asOne bool) error {
	if n == 0 {
		return nil
	}
	done := w.appends[:n]
	w.appends = slices.Clone(w.appends[n:])
	for _, a := range done {
		w.land(len(a.Batches))
		if !asOne {
			w.step(Persisted{Seq: a.Seq})
		}
	}
	if asOne {
		w.step(PersistedTo{Seq: done[n-1].Seq})
	}
	return w.take()
}

// land makes the oldest batches on their way safe.
func (w *world) land(batches int) {
	for _, e := range w.flying[:batches] {
		e.by.stored = true
		for _, x := range w.asked {
			x.stored = x.stored || x.original != nil && x.offset == e.base
		}
		w.stored = append(w.stored, e)
	}
	w.flying = slices.Clone(w.flying[batches:])
}

// void ends what is on its way from the entry number n on.
func (w *world) void(n int, want string) {
	for _, e := range w.flying[n:] {
		for _, x := range w.asked {
			if x.original != nil && !x.ready && x.offset == e.base {
				x.end(want)
			}
		}
		if e.by.early {
			w.mustLose++
			continue
		}
		e.by.end(want)
	}
	w.flying = w.flying[:n:n]
}

// failOne fails the append number i.
func (w *world) failOne(i int, full bool) error {
	n := 0
	for _, a := range w.appends[:i] {
		n += len(a.Batches)
	}
	want := "storage outcome_unknown"
	if full {
		want = "storage retry_after"
	}
	w.void(n, want)
	failed := w.appends[i].Seq
	w.appends = w.appends[:i]
	w.step(WriteFailed{Seq: failed, Reason: "EIO", Full: full})
	return w.take()
}

// poison ends what is on its way; of it, the first survived batches are in the log when it is opened again.
func (w *world) poison() error {
	w.void(0, "storage outcome_unknown")
	w.appends, w.poisoned, w.released = nil, true, forAll
	w.step(Poisoned{Reason: "EIO"})
	return w.take()
}

// reopen opens the log anew, of whose unsafe end the first survived batches are there, with a snapshot or without.
func (w *world) reopen(survived int, snapshot bool) error {
	found := newProducers(worldProducers, worldBatches)
	asOf, body := w.core.ProducersSnapshot()
	if snapshot {
		var err error
		if found, err = decodeProducers(found, body, asOf); err != nil {
			return err
		}
	}
	kept := slices.Clone(w.flying[:survived])
	w.void(0, "leadership_lost outcome_unknown")
	w.appends, w.released = nil, forAll
	if err := w.openAnew(); err != nil {
		return err
	}
	w.stored = append(w.stored, kept...)
	for _, e := range w.stored {
		if !snapshot || e.base >= asOf {
			found.Note(Numbered{Producer: e.producer, Sequence: e.sequence, Base: e.base, Count: 1, Sum: batch.Checksum(e.body), Length: uint32(len(e.body))})
		}
	}
	return w.openWith(found)
}

func (w *world) openAnew() error {
	w.step(Open{Generation: id.Generation(w.core.seq + 1)})
	return w.take()
}

func (w *world) openWith(found *Producers) error {
	if w.core.Role() != "opening" {
		if err := w.openAnew(); err != nil {
			return err
		}
	}
	w.step(Recovered{Tails: MainTail(w.tail()), Base: w.base, Producers: found})
	w.poisoned = false
	if w.blocking {
		w.released = w.tail()
	}
	if err := w.take(); err != nil {
		return err
	}
	w.step(Persisted{Seq: w.saving})
	if w.core.Role() != "leading" {
		return fmt.Errorf("it is %s, its generation is saved", w.core.Role())
	}
	return w.take()
}

// room lets readers have everything below an offset.
func (w *world) room(end id.Offset) error {
	if w.blocking {
		w.released = max(w.released, end)
	}
	w.step(Released{End: end})
	return w.take()
}

// trim removes what is stored below an offset.
func (w *world) trim(base id.Offset) {
	w.base = max(w.base, base)
	w.step(Trimmed{Base: base})
}

// checkMemory compares what the core would write into its snapshot with the log.
func (w *world) checkMemory() error {
	want := newProducers(worldProducers, worldBatches)
	for _, e := range w.stored {
		if e.base >= w.base {
			want.Note(Numbered{Producer: e.producer, Sequence: e.sequence, Base: e.base, Count: 1, Sum: batch.Checksum(e.body), Length: uint32(len(e.body))})
		}
	}
	asOf, got := w.core.ProducersSnapshot()
	if !bytes.Equal(got, want.Encode(nil)) {
		return fmt.Errorf("the memory of producers below %d is\n%x\nand the log says\n%x", asOf, got, want.Encode(nil))
	}
	return nil
}
