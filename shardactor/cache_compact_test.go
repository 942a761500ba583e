package shardactor

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
)

// A write fails in the same moment in which a compaction is told what came of its job: it hears of both, or it would wait for its job for ever,
// and this log would never be compacted again.
func TestACompactionHearsOfItsJobAlsoWhenAWriteFails(t *testing.T) {
	cache := reading.NewKeyedCache(keyed.Options{Budget: keyed.NewBudget(1 << 20), InlineMax: 1}, 0)
	b := &batch.Batch{Count: 1, Kind: batch.Records, Body: reading.AppendRecord(nil, reading.Record{Op: reading.OpPut, Key: []byte("k"), Value: []byte("cold")})}
	if err := cache.Apply(b, nil); err != nil {
		t.Fatal(err)
	}
	l := keysLog{compactor: reading.NewCompactor(reading.CompactorOptions{Index: cache.Index(), Policy: keyed.Policy{Ratio: 2}, Encode: reading.EncodeMove})}
	next := func() keyed.Effect {
		e, _ := l.compactor.Next(time.UnixMilli(0), reading.LogLook{Bytes: 1000, Folded: 1, Turn: keyed.Turn{Tail: 1, Staged: func([]byte) bool { return false }}})
		return e
	}
	if _, ok := next().(keyed.SealLog); !ok {
		t.Fatal("no compaction began")
	}
	l.compactor.Sealing(1, 1)
	l.compactionNews(&told{before: 1})
	e := next()
	for ; e != nil; e = next() {
		if _, ok := e.(keyed.ReadValues); ok {
			break
		}
		if _, ok := e.(keyed.Pause); ok {
			l.compactionNews(&told{turned: true})
		}
	}
	if e == nil {
		t.Fatal("no value is asked for")
	}
	damaged := errors.New("the disk is gone")
	l.compactionNews(&told{failed: &failedWrite{2, syscall.ENOSPC}, compacted: &compacted{err: damaged}})
	if f, ok := next().(keyed.Finished); !ok || !errors.Is(f.Result.Err, damaged) || l.compactor.Running() {
		t.Fatalf("%+v", f)
	}
}

// A compaction that was given up has an event of its own: nobody takes it for one that was done.
func TestAFailedCompactionIsNotCalledCompacted(t *testing.T) {
	if name := (logCompacted{result: keyed.Result{Err: syscall.ENOSPC}}).EventName(); name != "log_compaction_failed" {
		t.Error(name)
	}
	if name := (logCompacted{}).EventName(); name != "log_compacted" {
		t.Error(name)
	}
}
