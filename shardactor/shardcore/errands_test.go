package shardcore

import (
	"fmt"
	"slices"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// office is a core with a desk and two logs, and beside it a twin that knows what every errand must come to, by looking through the whole
// of its log each time.
type office struct {
	core     *Core
	desk     *desk
	at       At
	stored   [logCount][]record
	flying   [logCount][]record // claimed and not safe
	waiting  [logCount][]*errand
	held     []*errand
	asked    []*errand
	appends  []Append // taken and not completed
	seq      uint64   // of the newest append taken
	readable [logCount]id.Offset
	lost     uint64 // records answered at the claim that the core reported lost
	mustLose uint64
	saving   uint64
	n        int
	// refuses is what every write gets, holds whether they wait.
	refuses string
	holds   bool
	drained bool
}

// record is one in a log or on its way there.
type record struct {
	op, key byte
	base    id.Offset
	by      *errand
}

// errand is one judged write and what became of it.
type errand struct {
	n       int
	log     Log
	op, key byte
	early   bool
	answer  *Answer
	want    string
	offset  id.Offset // where it is written
	until   id.Offset // what it waits for
	ready   bool      // it must have its answer by now
}

var officeLogs = []Log{LogMain, LogCounters}

func newOffice() (*office, error) {
	o := &office{desk: newDesk([logCount][]record{})}
	opts := DefaultOptions()
	opts.Book = o // whatever desk there is
	o.core = New(opts)
	o.step(Open{Generation: 1})
	return o, o.lead()
}

func (o *office) Claimed(log Log, b *batch.Batch) { o.desk.Claimed(log, b) }
func (o *office) Void(log Log, from id.Offset)    { o.desk.Void(log, from) }

func (o *office) step(in Input) { o.core.Step(o.at, in) }

// lead brings an opening core to lead with what is stored.
func (o *office) lead() error {
	var in Recovered
	for _, log := range officeLogs {
		in.Tails[log] = id.Offset(len(o.stored[log]))
		o.readable[log] = 0
	}
	o.desk = newDesk(o.stored)
	o.step(in)
	if err := o.take(); err != nil {
		return err
	}
	o.refuses, o.holds = "", false
	o.letGo()
	o.step(Persisted{Seq: o.saving})
	if o.core.Role() != "leading" {
		return fmt.Errorf("it is %s, its generation is saved", o.core.Role())
	}
	return o.take()
}

// take performs a turn's effects. An error says what the core did wrong.
func (o *office) take() error {
	for _, e := range o.core.Take() {
		switch e := e.(type) {
		case Save:
			o.saving = e.Seq
		case Append:
			if e.Seq <= o.seq {
				return fmt.Errorf("append %d of log %d comes after %d", e.Seq, e.Log, o.seq)
			}
			if o.seq = e.Seq; len(e.Batches) > 0 {
				o.appends = append(o.appends, e)
			}
		case Fold:
			o.desk.fold(e)
		case Readable:
			if e.End < o.readable[e.Log] || e.End != o.desk.foldEnd[e.Log] {
				return fmt.Errorf("log %d is readable to %d after %d, and folded to %d", e.Log, e.End, o.readable[e.Log], o.desk.foldEnd[e.Log])
			}
			o.readable[e.Log] = e.End
		case AckedLost:
			o.lost += e.Records
		case Drained:
			o.drained = true
		case *Answers:
			for _, a := range e.List {
				x := a.Reply.(*errand)
				if x.answer != nil {
					return fmt.Errorf("errand %d is answered twice", x.n)
				}
				if a.Refusal != nil && (a.Unwritten || a.Again) {
					return fmt.Errorf("errand %d is refused, and answered as if it was not", x.n)
				}
				if written := told(&a) == "done"; written && a.Offset >= o.readable[x.log] || x.until > o.readable[x.log] && x.want == told(&a) {
					return fmt.Errorf("errand %d is answered %s at %d until %d; log %d is readable to %d", x.n, told(&a), a.Offset, x.until, x.log, o.readable[x.log])
				}
				copied := a
				x.answer = &copied
			}
		}
	}
	return o.compare()
}

// compare looks whether what was answered is what must have been.
func (o *office) compare() error {
	for _, x := range o.asked {
		if !x.ready && x.answer != nil {
			return fmt.Errorf("errand %d is answered %s before its outcome is known", x.n, told(x.answer))
		}
		if x.ready && (x.answer == nil || told(x.answer) != x.want || x.want == "done" && x.answer.Offset != x.offset) {
			return fmt.Errorf("errand %d is answered %s, want %s at %d", x.n, told(x.answer), x.want, x.offset)
		}
	}
	o.asked = slices.DeleteFunc(o.asked, func(x *errand) bool { return x.ready })
	if o.lost != o.mustLose {
		return fmt.Errorf("%d records are reported lost that were answered at their claim, want %d", o.lost, o.mustLose)
	}
	return o.desk.wrong
}

// ask steps one errand and says what has to come of it.
func (o *office) ask(log Log, op, key byte, early bool) {
	o.n++
	x := &errand{n: o.n, log: log, op: op, key: key, early: early}
	o.asked = append(o.asked, x)
	b := &batch.Batch{Kind: batch.Records}
	o.expect(x)
	o.step(&Write{Reply: x, Log: log, Batch: b, Fold: true, AtClaim: early, Judge: o.judge(log, op, key, b)})
}

// judge asks the desk there is then: it is another when the logs were opened anew.
func (o *office) judge(log Log, op, key byte, b *batch.Batch) func(id.Offset, uint64) Verdict {
	return func(base id.Offset, now uint64) Verdict { return o.desk.judge(log, op, key, b)(base, now) }
}

// end says that an errand has its outcome now, whatever it waited for.
func (x *errand) end(want string) { x.want, x.until, x.ready = want, 0, true }

// tail is where the next record of a log begins.
func (o *office) tail(log Log) id.Offset {
	return id.Offset(len(o.stored[log]) + len(o.flying[log]))
}

// expect works out what an errand comes to.
func (o *office) expect(x *errand) {
	x.until = 0
	switch {
	case o.refuses != "":
		x.end(o.refuses)
		return
	case o.holds:
		o.held = append(o.held, x)
		return
	}
	there, until := false, id.Offset(0)
	for _, r := range append(slices.Clone(o.stored[x.log]), o.flying[x.log]...) {
		if r.key == x.key {
			there, until = r.op == opSet, r.base+1
		}
	}
	switch {
	case x.op == opGiveBack && there:
		x.end("again")
	case x.op == opSetIfAbsent && there:
		o.rest(x, "limit_exceeded fatal", until)
	case x.op == opGiveBack, x.op == opClear && !there:
		o.rest(x, "unwritten", until)
	default:
		x.want, x.offset = "done", o.tail(x.log)
		if x.early {
			x.end("claimed")
		}
		op := opSet
		if x.op == opClear {
			op = opClear
		}
		o.flying[x.log] = append(o.flying[x.log], record{op: op, key: x.key, base: o.tail(x.log), by: x})
	}
}

// rest lets an errand wait until everything below until is safe.
func (o *office) rest(x *errand, want string, until id.Offset) {
	if x.want, x.until = want, until; until <= id.Offset(len(o.stored[x.log])) {
		x.ready = true
		return
	}
	o.waiting[x.log] = append(o.waiting[x.log], x)
}

// letGo is what becomes of held errands when nothing holds them any more.
func (o *office) letGo() {
	held := o.held
	o.held = nil
	for _, x := range held {
		o.expect(x)
	}
}

// complete makes the first n appends of a log safe, told one by one or as one.
func (o *office) complete(log Log, n int, asOne bool) error {
	var seqs []uint64
	o.appends = slices.DeleteFunc(o.appends, func(a Append) bool {
		if a.Log != log || len(seqs) == n {
			return false
		}
		seqs = append(seqs, a.Seq)
		o.land(log, len(a.Batches))
		return true
	})
	for i, seq := range seqs {
		if !asOne {
			o.step(Persisted{Log: log, Seq: seq})
		} else if i == len(seqs)-1 {
			o.step(PersistedTo{Log: log, Seq: seq})
		}
	}
	return o.take()
}

// land makes the oldest records on their way safe, and what waits for them ready.
func (o *office) land(log Log, n int) {
	for _, r := range o.flying[log][:n] {
		r.by.ready = true
	}
	o.stored[log] = append(o.stored[log], o.flying[log][:n]...)
	o.flying[log] = slices.Clone(o.flying[log][n:])
	o.waiting[log] = slices.DeleteFunc(o.waiting[log], func(x *errand) bool {
		x.ready = x.until <= id.Offset(len(o.stored[log]))
		return x.ready
	})
}

// void ends what is on its way in a log from the record number n on, and returns what waited for that.
func (o *office) void(log Log, n int, want string) (again []*errand) {
	for _, r := range o.flying[log][n:] {
		if r.by.early {
			o.mustLose++
			continue
		}
		r.by.end(want)
	}
	o.flying[log] = o.flying[log][:n:n]
	o.waiting[log] = slices.DeleteFunc(o.waiting[log], func(x *errand) bool {
		if x.until > o.tail(log) {
			again = append(again, x)
			return true
		}
		return false
	})
	return again
}

// failOne fails the append number i of those taken.
func (o *office) failOne(i int, full bool) error {
	failed := o.appends[i]
	n := 0
	for _, a := range o.appends[:i] {
		if a.Log == failed.Log {
			n += len(a.Batches)
		}
	}
	want := "storage outcome_unknown"
	if full {
		want = "storage retry_after"
	}
	o.appends = slices.DeleteFunc(o.appends, func(a Append) bool { return a.Log == failed.Log && a.Seq >= failed.Seq })
	for _, x := range o.void(failed.Log, n, want) {
		o.expect(x)
	}
	o.step(WriteFailed{Log: failed.Log, Seq: failed.Seq, Reason: "EIO", Full: full})
	return o.take()
}

// abandon ends all that is on its way or waits for it, in both logs.
func (o *office) abandon(unknown, nothingDone string) {
	for _, log := range officeLogs {
		for _, x := range o.void(log, 0, unknown) {
			x.end(nothingDone)
		}
	}
	o.appends = nil
}

// poison fails the core: of one log it is told, and both end. A core that drains refuses as before.
func (o *office) poison() error {
	o.abandon("storage outcome_unknown", "storage retry_after")
	if o.core.Role() != "draining" {
		o.refuses, o.holds = "storage retry_after", false
		o.letGo()
	}
	o.step(Poisoned{Reason: "EIO"})
	return o.take()
}

// open opens the logs anew, of whose unsafe ends as many records are there as survived says; lead follows.
func (o *office) open(survived func(most int) int) error {
	var kept [logCount][]record
	for _, log := range officeLogs {
		kept[log] = slices.Clone(o.flying[log][:survived(len(o.flying[log]))])
	}
	o.abandon("leadership_lost outcome_unknown", "shard_unavailable retry")
	for _, log := range officeLogs {
		o.stored[log] = append(o.stored[log], kept[log]...)
	}
	o.refuses, o.holds = "", true
	o.step(Open{Generation: id.Generation(o.core.seq + 1)})
	return o.take()
}

// finish drains whatever is going on. Meanwhile the oldest append may fail, or the logs may be poisoned.
func (o *office) finish(fail, poison bool) error {
	if err := o.take(); err != nil {
		return err
	}
	o.refuses, o.holds = "shard_unavailable retry", false
	o.letGo()
	o.step(Drain{})
	if err := o.take(); err != nil {
		return err
	}
	if fail && len(o.appends) > 0 {
		if err := o.failOne(0, false); err != nil {
			return err
		}
	}
	if poison {
		if err := o.poison(); err != nil {
			return err
		}
	}
	for _, log := range officeLogs {
		if err := o.complete(log, len(o.appends), false); err != nil {
			return err
		}
	}
	if !o.drained || len(o.asked) > 0 {
		return fmt.Errorf("drained %v, %d errands without an answer", o.drained, len(o.asked))
	}
	return o.effects()
}

// effects looks whether every record that clears a key found it there.
func (o *office) effects() error {
	for _, log := range officeLogs {
		there := map[byte]bool{}
		for _, r := range o.stored[log] {
			if r.op == opClear && !there[r.key] {
				return fmt.Errorf("log %d: the record at %d clears what was not there", log, r.base)
			}
			there[r.key] = r.op == opSet
		}
	}
	return nil
}
