package disklog

import (
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// A power cut at any step of an open that passes over offsets leaves a log that opens, has what was synced, and gives none of them.
func TestOffsetsThatWereToldAreNotGivenAgainWhereverAnOpenIsCutOff(t *testing.T) {
	spec := testSpec
	spec.Kind, spec.GivenOnce, spec.Base = Cache, true, 1000
	lossy := func(o *Options) { o.Fsync, o.FsyncInterval = None, time.Hour }
	mem := vfs.NewMem()
	r := newRig(t, mem, lossy)
	l, _ := r.open(spec)
	r.append(l, 1, 1000)
	r.exec.Run()
	l.Sync()
	r.exec.Run()
	r.append(l, 2, 1002)
	r.exec.Run()
	seen := id.Offset(1004)
	image := mem.CrashHard()
	r.close(l)
	whole := false
	for step := 1; !whole; step++ {
		cut := image.Clone()
		fault := vfs.NewFault(cut, nil)
		r := newRig(t, fault, lossy)
		fault.Add(vfs.Rule{From: step, Err: syscall.EIO})
		l, err := r.store.Open(spec, &told{}, nil)
		if whole = err == nil; whole {
			fault.Set(nil)
			r.close(l)
		}
		r = newRig(t, cut.CrashHard(), nil)
		l, _ = r.open(spec)
		base, _, tail := l.Bounds()
		if base != 1000 || tail <= seen {
			t.Errorf("cut off at step %d: the log goes on at %d", step, tail)
		}
		if _, yes := l.PassedOver(seen); !yes {
			t.Errorf("cut off at step %d: who was told of %d goes on", step, seen-1)
		}
		if got := all(t, l); got[0].Base != 1000 || got[1].Kind != batch.GenerationStart || got[len(got)-1].End() != tail {
			t.Errorf("cut off at step %d: %+v", step, got)
		}
		r.close(l)
	}
}

// An append whose offsets cannot be reserved is refused, and not told of.
func TestAnAppendWhoseOffsetsCannotBeReservedIsRefused(t *testing.T) {
	r, fault, _ := faulty(t, func(o *Options) { o.Fsync, o.FsyncInterval = Periodic, time.Hour })
	spec := testSpec
	spec.Kind, spec.GivenOnce = Cache, true
	l, n := r.open(spec)
	fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "replica*", Times: 1, Err: syscall.ENOSPC})
	large := func(seq uint64) {
		l.Append(seq, []*batch.Batch{{Base: 0, Count: tellAhead + 1, Generation: 3, Kind: batch.Checkpoint}})
		r.exec.Run()
	}
	large(1)
	if n.persisted != 0 || n.failed[1] == nil {
		t.Fatal(n.order)
	}
	large(2)
	if n.persisted != 2 || l.told != 2*tellAhead+1 {
		t.Fatal(n.order, l.told)
	}
	r.close(l)
}
