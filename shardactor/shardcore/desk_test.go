package shardcore

import (
	"fmt"
	"slices"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// desk is what a shell keeps for its judges: what is folded of two logs, and beside it what is claimed, as the book was told. A log says
// which keys are there: each record sets one or clears it.
type desk struct {
	folded  [logCount]map[byte]bool
	foldEnd [logCount]id.Offset
	claimed [logCount][]*batch.Batch
	wrong   error // the first thing the core did wrong
}

// The operations of errands. What a record says is one of the first two.
const (
	opSet         byte = iota // whatever is there
	opClear                   // only what is there: else it is done without a record
	opSetIfAbsent             // refused if it is there
	opGiveBack                // given back if it is there, else done without a record
)

func newDesk(logs [logCount][]record) *desk {
	d := &desk{}
	for log := range d.folded {
		d.folded[log] = map[byte]bool{}
		for _, r := range logs[log] {
			d.folded[log][r.key], d.foldEnd[log] = r.op == opSet, r.base+1
		}
	}
	return d
}

func (d *desk) fail(format string, args ...any) {
	if d.wrong == nil {
		d.wrong = fmt.Errorf(format, args...)
	}
}

func (d *desk) Claimed(log Log, b *batch.Batch) {
	end := d.foldEnd[log]
	if list := d.claimed[log]; len(list) > 0 {
		end = list[len(list)-1].End()
	}
	if b.Base != end || len(b.Body) != 2 {
		d.fail("log %d: the book is told of a claim at %d with a body of %d; all before ends at %d", log, b.Base, len(b.Body), end)
	}
	d.claimed[log] = append(d.claimed[log], b)
}

func (d *desk) Void(log Log, from id.Offset) {
	for n := len(d.claimed[log]); n > 0 && d.claimed[log][n-1].Base >= from; n-- {
		d.claimed[log] = d.claimed[log][:n-1]
	}
}

// fold takes what becomes readable.
func (d *desk) fold(f Fold) {
	for _, b := range f.Batches {
		if len(d.claimed[f.Log]) == 0 || d.claimed[f.Log][0] != b {
			d.fail("log %d: what is folded at %d is not the oldest claim", f.Log, b.Base)
			return
		}
		d.claimed[f.Log] = d.claimed[f.Log][1:]
		d.folded[f.Log][b.Body[1]], d.foldEnd[f.Log] = b.Body[0] == opSet, b.End()
	}
}

// newest is whether a key is there once all that is claimed is done, and the end of the claim that says so.
func (d *desk) newest(log Log, key byte) (there bool, until id.Offset) {
	for _, b := range slices.Backward(d.claimed[log]) {
		if b.Body[1] == key {
			return b.Body[0] == opSet, b.End()
		}
	}
	return d.folded[log][key], 0
}

// judge decides about an errand from the desk alone.
func (d *desk) judge(log Log, op, key byte, b *batch.Batch) func(id.Offset, uint64) Verdict {
	return func(id.Offset, uint64) Verdict {
		there, until := d.newest(log, key)
		write := op
		switch {
		case op == opSetIfAbsent && there:
			f := wire.Refuse(wire.CodeLimitExceeded, "it is there")
			return Verdict{Refusal: &f, Until: until}
		case op == opSetIfAbsent:
			write = opSet
		case op == opGiveBack && there:
			return Verdict{Again: true}
		case op == opGiveBack, op == opClear && !there:
			return Verdict{Until: until}
		}
		b.Body, b.Count = []byte{write, key}, 1
		return Verdict{Append: true}
	}
}
