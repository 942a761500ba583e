package shardcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// A producer may have as much on its way as the shard lets it; what is remembered of that takes no more room than it needs, and goes away.
func TestAProducerWithManyBatchesOnTheirWayLeavesNothingBehind(t *testing.T) {
	runs := newClaimedRuns()
	var batches []*batch.Batch
	for i := range uint64(10_000) {
		b := &batch.Batch{ProducerID: 7, Sequence: 5 + i}
		batches = append(batches, b)
		runs.push(b)
		if i >= 100 { // as many stay on their way
			runs.pop(batches[i-100])
		}
	}
	r := runs.byID[7]
	if cap(r.batches) > 1000 {
		t.Errorf("100 batches on their way take the room of %d", cap(r.batches))
	}
	if f := r.find(10_004); f == nil || f != batches[9999] || r.find(10_005) != nil || r.find(9904) != nil || r.find(9905) == nil {
		t.Errorf("the run has %d batches from %d on", r.len(), r.first)
	}
	for i := len(batches) - 1; i > 9900; i-- {
		runs.giveBack(batches[i])
	}
	runs.pop(batches[9900])
	if len(runs.byID) != 0 {
		t.Errorf("%d runs are left", len(runs.byID))
	}
}

func TestUsedRunsAreKeptUpToABound(t *testing.T) {
	runs := newClaimedRuns()
	var batches []*batch.Batch
	for i := range uint64(3 * runsKept) {
		batches = append(batches, &batch.Batch{ProducerID: 1 + i})
		runs.push(batches[i])
	}
	for _, b := range batches {
		runs.pop(b)
	}
	if len(runs.free) != runsKept || len(runs.byID) != 0 {
		t.Errorf("%d runs are kept, %d are in use", len(runs.free), len(runs.byID))
	}
}

func TestBatchesThatLeaveARunOutOfOrderPanic(t *testing.T) {
	a, b := &batch.Batch{ProducerID: 7}, &batch.Batch{ProducerID: 7, Sequence: 1}
	for name, broken := range map[string]func(*claimedRuns){
		"durable before an earlier one":   func(r *claimedRuns) { r.pop(b) },
		"given back before a later one":   func(r *claimedRuns) { r.giveBack(a) },
		"claimed with a number left out":  func(r *claimedRuns) { r.push(&batch.Batch{ProducerID: 7, Sequence: 3}) },
		"durable and not claimed at all":  func(r *claimedRuns) { r.pop(&batch.Batch{ProducerID: 8}) },
		"durable twice, nothing is there": func(r *claimedRuns) { r.pop(a); r.pop(b); r.pop(b) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			runs := newClaimedRuns()
			runs.push(a)
			runs.push(b)
			broken(runs)
		}()
	}
}

// allocations is what a turn of 64 writes costs that is taken and completed, once the core has the room it needs.
func allocations(prepare func(n uint64, b *batch.Batch, w *Write)) float64 {
	c := New(DefaultOptions())
	at := At{Wall: time.UnixMilli(0)}
	lead(c, at, 1, Recovered{})
	c.Take()
	writes, batches := make([]Write, 64), make([]batch.Batch, 64)
	body := make([]byte, 64)
	n := uint64(0)
	return testing.AllocsPerRun(500, func() {
		for i := range writes {
			batches[i] = batch.Batch{Count: 1, Kind: batch.Records, Body: body}
			writes[i] = Write{Batch: &batches[i]}
			prepare(n, &batches[i], &writes[i])
			n++
			c.Step(at, &writes[i])
		}
		for effects := c.Take(); len(effects) > 0; effects = c.Take() {
			for _, e := range effects {
				if a, ok := e.(Append); ok {
					c.Step(at, Persisted{Log: a.Log, Seq: a.Seq})
				}
			}
		}
	})
}

func TestATurnOf64WritesCostsNoMoreAllocationsWhateverTheyAskFor(t *testing.T) {
	plain := allocations(func(uint64, *batch.Batch, *Write) {})
	if plain > 10 { // the list of claims as it grows, the effects, and the completion
		t.Errorf("a turn of plain writes costs %v allocations, want at most 10", plain)
	}
	half := false // of the writes come to nothing, and wait for the one before
	judge := func(base id.Offset, _ uint64) Verdict {
		half = !half
		return Verdict{Append: half, Until: base}
	}
	for name, prepare := range map[string]func(uint64, *batch.Batch, *Write){
		"folded":            func(_ uint64, _ *batch.Batch, w *Write) { w.Fold = true },
		"judged":            func(_ uint64, _ *batch.Batch, w *Write) { w.Judge = judge },
		"of another log":    func(_ uint64, _ *batch.Batch, w *Write) { w.Log = LogCounters },
		"of one producer":   func(n uint64, b *batch.Batch, _ *Write) { b.ProducerID, b.Sequence = 5, n },
		"of many producers": func(n uint64, b *batch.Batch, _ *Write) { b.ProducerID, b.Sequence = 1+n%64, n/64 },
		"conditional":       func(n uint64, _ *batch.Batch, w *Write) { w.HasExpected, w.Expected = true, id.Offset(n) },
		"early":             func(_ uint64, _ *batch.Batch, w *Write) { w.AtClaim = true },
	} {
		if got := allocations(prepare); got > plain+1 {
			t.Errorf("a turn of writes %s costs %v allocations, and one of plain ones %v", name, got, plain)
		}
	}
}
