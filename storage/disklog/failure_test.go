package disklog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// faulty is a rig over a disk that can be made to fail.
func faulty(t *testing.T, edit func(*Options)) (*rig, *vfs.Fault, *vfs.Mem) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem, nil)
	return newRig(t, fault, edit), fault, mem
}

func (r *rig) append(l *Log, seq uint64, base id.Offset) *batch.Batch {
	b := batchAt(base, 2, 20)
	l.Append(seq, []*batch.Batch{b})
	return b
}

// matrix E1
func TestAFailedSyncPoisonsTheLogUntilARestart(t *testing.T) {
	r, fault, mem := faulty(t, nil)
	l, n := r.open(testSpec)
	first := r.append(l, 1, 0)
	r.exec.Run()
	rule := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Times: 1, Err: syscall.EIO})
	r.append(l, 2, 2)
	r.append(l, 3, 4)
	r.exec.Run()
	if rule.Hits() != 1 {
		t.Fatal("no sync failed")
	}
	if p, poisoned := n.get(); p != 1 || poisoned != 1 || !errors.Is(n.poisoned[0], syscall.EIO) || !is[*PoisonedError](n.poisoned[0]) {
		t.Fatal(n.order, n.poisoned)
	}
	syncs := r.store.Counters().Syncs.Load()
	r.append(l, 4, 6) // it is not refused twice, and never acknowledged
	l.SaveGeneration(5, 9)
	r.exec.Run()
	if p, poisoned := n.get(); p != 1 || poisoned != 1 || r.store.Counters().Syncs.Load() != syncs {
		t.Fatal("something went on after the failed sync:", n.order)
	}
	if _, durable, _ := l.Bounds(); durable != first.End() {
		t.Fatalf("durable is %d", durable)
	}
	if err := l.SaveSnapshot("producers", 1, nil); !is[*PoisonedError](err) {
		t.Fatal(err)
	}
	var closed error
	l.Close(func(err error) { closed = err })
	r.exec.Run()
	if !is[*PoisonedError](closed) {
		t.Fatal(closed)
	}
	if _, err := r.store.Open(testSpec, n, nil); !is[*PoisonedError](err) {
		t.Fatalf("opened again in the same process: %v", err)
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRig(t, mem.CrashHard(), nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), []*batch.Batch{first})
	r.close(l)
}

// field case DUR-08; matrix E5, E6
func TestAnySyncThatFailsPoisons(t *testing.T) {
	for what, c := range map[string]struct {
		rule vfs.Rule
		do   func(r *rig, l *Log)
	}{
		"the seal": {vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "00000000000000000000.log", Times: 1}, func(r *rig, l *Log) { l.Seal(2) }},
		"the new segment": {vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "00000000000000000001.log", Times: 1},
			func(r *rig, l *Log) { l.Seal(2) }},
		"the directory of the new segment": {vfs.Rule{Calls: []vfs.Call{vfs.CallSyncDir}, Times: 1}, func(r *rig, l *Log) { l.Seal(2) }},
		"the mark of the new segment": {vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "durable.mark", Times: 1},
			func(r *rig, l *Log) { l.Seal(2) }},
		"a generation":    {vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "replica*", Times: 1}, func(r *rig, l *Log) { l.SaveGeneration(2, 5) }},
		"a cut":           {vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Times: 1}, func(r *rig, l *Log) { l.TruncateTo(2, 0) }},
		"retention":       {vfs.Rule{Calls: []vfs.Call{vfs.CallSyncDir}, From: 2, Times: 1}, func(r *rig, l *Log) { l.Seal(2); r.exec.Run(); r.retainAll(l) }},
		"going to rest":   {vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "durable.mark", Times: 1}, func(r *rig, l *Log) { r.rest() }},
		"the name of one": {vfs.Rule{Calls: []vfs.Call{vfs.CallSyncDir}, Times: 1}, func(r *rig, l *Log) { l.SaveGeneration(2, 5) }},
	} {
		t.Run(what, func(t *testing.T) {
			r, fault, _ := faulty(t, nil)
			l, n := r.open(testSpec)
			r.append(l, 1, 0)
			r.exec.Run()
			c.rule.Err = syscall.EIO
			rule := fault.Add(c.rule)
			c.do(r, l)
			r.exec.Run()
			if _, poisoned := n.get(); rule.Hits() != 1 || poisoned != 1 {
				t.Fatal(rule.Hits(), n.order)
			}
			r.append(l, 9, 2)
			r.exec.Run()
			if p, _ := n.get(); p == 9 {
				t.Fatal("acknowledged after a failed sync")
			}
		})
	}
}

func (r *rig) retainAll(l *Log) {
	l.SetRetention(Retention{Bytes: 1})
	_, _, tail := l.Bounds()
	l.Retain(0, tail, 1<<30)
}

func (r *rig) rest() {
	r.exec.Advance(2 * r.store.opts.IdleAfter)
	r.exec.Run()
	r.exec.Advance(2 * r.store.opts.IdleAfter)
	r.exec.Run()
}

// matrix E9, E17
func TestAFailedWriteTakesNoOffsetsAndTheNextAppendLandsThere(t *testing.T) {
	for what, rule := range map[string]vfs.Rule{
		"no space": {Err: syscall.ENOSPC, Short: true}, "quota": {Err: syscall.EDQUOT}, "io": {Err: syscall.EIO, Short: true}, "short": {Short: true},
	} {
		t.Run(what, func(t *testing.T) {
			r, fault, _ := faulty(t, nil)
			l, n := r.open(testSpec)
			first := r.append(l, 1, 0)
			r.exec.Run()
			rule.Calls, rule.Name, rule.Times = []vfs.Call{vfs.CallWrite}, "*.log", 1
			hit := fault.Add(rule)
			r.append(l, 2, 2)
			r.append(l, 3, 4)
			r.exec.Run()
			r.append(l, 4, 6) // claimed before the core heard of it
			r.exec.Run()
			if hit.Hits() != 1 || len(n.failed) != 1 || n.failed[2] == nil || len(n.poisoned) != 0 {
				t.Fatal(hit.Hits(), n.order)
			}
			full := uint64(0)
			if vfs.IsNoSpace(n.failed[2]) {
				full = 1
			}
			if got := r.store.Counters().Full.Load(); got != full || (what == "no space") != errors.Is(n.failed[2], syscall.ENOSPC) {
				t.Fatal(got, n.failed)
			}
			next := r.append(l, 5, 2)
			r.exec.Run()
			if !slices.Equal(n.order, []string{"ok 1", "failed 2", "ok 5"}) {
				t.Fatal(n.order)
			}
			same(t, all(t, l), []*batch.Batch{first, next})
			r.close(l)
			r = newRig(t, fault, nil)
			l, _ = r.open(testSpec)
			if l.Recovery().TruncatedBytes != 0 {
				t.Fatal("the failed write was left in the file")
			}
			same(t, all(t, l), []*batch.Batch{first, next})
		})
	}
}

func TestAWriteThatFailsIsToldAfterWhatCameBeforeIt(t *testing.T) {
	r, fault, _ := faulty(t, nil)
	l, n := r.open(testSpec)
	r.append(l, 1, 0)
	r.exec.Step() // written; its sync is a job of its own
	fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Times: 1, Err: syscall.ENOSPC})
	r.append(l, 2, 2)
	r.exec.Hold(func(j diskpool.Job) bool { return j.Kind == diskpool.Sync })
	r.exec.Run()
	if len(n.order) != 0 {
		t.Fatal(n.order)
	}
	r.exec.Hold(nil)
	r.exec.Run()
	if !slices.Equal(n.order, []string{"ok 1", "failed 2"}) {
		t.Fatal(n.order)
	}
}

// matrix E10
func TestAWriteThatCannotBeCutOffStopsWritingUntilARestart(t *testing.T) {
	r, fault, mem := faulty(t, nil)
	l, n := r.open(testSpec)
	first := r.append(l, 1, 0)
	r.exec.Run()
	fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Times: 1, Err: syscall.EIO, Short: true})
	fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallTruncate}, Name: "*.log", Times: 1, Err: syscall.EIO})
	for seq := uint64(2); seq < 5; seq++ {
		r.append(l, seq, 2)
		r.exec.Run()
	}
	if !slices.Equal(n.order, []string{"ok 1", "failed 2", "failed 3", "failed 4"}) || !is[*StuckError](n.failed[4]) {
		t.Fatal(n.order, n.failed)
	}
	same(t, all(t, l), []*batch.Batch{first})
	l.Close(func(error) {})
	r.exec.Run()
	r.store.Close()
	r = newRig(t, mem.Clone(), nil)
	l, _ = r.open(testSpec)
	if l.Recovery().TruncatedBytes == 0 {
		t.Fatal("nothing was left to repair")
	}
	same(t, all(t, l), []*batch.Batch{first})
}

func TestAFullDiskRefusesAppendsUntilThereIsRoom(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, func(o *Options) { o.SegmentBytes = 64 << 10 })
	l, n := r.open(testSpec)
	mem.SetCapacity(mem.Used() + 20<<10)
	var want []*batch.Batch
	next, seq, refused := id.Offset(0), uint64(0), 0
	for i := range 400 {
		seq++
		b := batchAt(next, 1, 300)
		l.Append(seq, []*batch.Batch{b})
		r.exec.Run()
		if n.failed[seq] != nil {
			if !vfs.IsNoSpace(n.failed[seq]) {
				t.Fatal(n.failed[seq])
			}
			refused++
			if refused == 3 {
				mem.SetCapacity(vfs.Unlimited)
			}
			continue
		}
		if n.persisted != seq {
			t.Fatalf("append %d: %v", i, n.order[len(n.order)-1])
		}
		want, next = append(want, b), b.End()
	}
	if refused != 3 || len(n.poisoned) != 0 || r.store.Counters().Full.Load() != 3 {
		t.Fatal(refused, n.poisoned)
	}
	same(t, all(t, l), want)
	r.close(l)
	r = newRig(t, mem, func(o *Options) { o.SegmentBytes = 64 << 10 })
	l, _ = r.open(testSpec)
	same(t, all(t, l), want)
}

// matrix E11
func TestARollWithoutSpaceRefusesTheAppendAndLeavesNoStrayFile(t *testing.T) {
	for _, call := range []vfs.Call{vfs.CallCreate, vfs.CallWrite} {
		r, fault, mem := faulty(t, nil)
		l, n := r.open(testSpec)
		big := batchAt(0, 1, 3900)
		l.Append(1, []*batch.Batch{big})
		r.exec.Run()
		rule := fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Name: "00000000000000000001.log", Err: syscall.ENOSPC})
		for seq := uint64(2); seq < 4; seq++ {
			r.append(l, seq, 1)
			r.exec.Run()
			if n.failed[seq] == nil {
				t.Fatal(n.order)
			}
		}
		if _, err := mem.Stat(l.Dir() + "/00000000000000000001.log"); err == nil {
			t.Fatal("a stray segment was left")
		}
		same(t, all(t, l), []*batch.Batch{big})
		rule.Remove()
		b := r.append(l, 4, 1)
		r.exec.Run()
		if n.persisted != 4 || len(n.poisoned) != 0 {
			t.Fatal(n.order)
		}
		same(t, all(t, l), []*batch.Batch{big, b})
		r.close(l)
		r = newRig(t, mem, nil)
		l, _ = r.open(testSpec)
		same(t, all(t, l), []*batch.Batch{big, b})
	}
}

// matrix E12
func TestALogIsMadeOnceThereIsRoom(t *testing.T) {
	for i := 1; i <= 4; i++ {
		r, fault, _ := faulty(t, nil)
		rule := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite, vfs.CallCreate}, From: i, Times: 1, Err: syscall.ENOSPC})
		if _, err := r.store.Open(testSpec, &told{}, nil); !vfs.IsNoSpace(err) || rule.Hits() != 1 {
			t.Fatal(i, err)
		}
		l, n := r.open(testSpec)
		b := r.append(l, 1, 0)
		r.exec.Run()
		if n.persisted != 1 {
			t.Fatal(n.order)
		}
		same(t, all(t, l), []*batch.Batch{b})
		r.close(l)
	}
}

// matrix E8
func TestASyncThatHangsStopsNoWritesUpToABound(t *testing.T) {
	r, _, _ := faulty(t, func(o *Options) {
		o.Fsync, o.UnsyncedBytes, o.SegmentBytes = Periodic, 4000, 1<<20
	})
	l, n := r.open(testSpec)
	r.append(l, 1, 0)
	r.exec.Run()
	r.exec.Advance(time.Second) // the interval is over
	r.exec.Hold(func(j diskpool.Job) bool { return j.Kind == diskpool.Sync })
	for seq := uint64(2); seq < 100; seq++ {
		r.append(l, seq, id.Offset(2*(seq-1)))
		r.exec.Run()
	}
	p, _ := n.get()
	if p < 20 || p > 40 { // 4000 bytes of 120 each
		t.Fatalf("persisted %d", p)
	}
	if bytes := r.store.Counters().UnsyncedBytes.Load(); bytes < 4000 || bytes > 4200 {
		t.Fatalf("%d bytes are unsynced", bytes)
	}
	r.exec.Advance(10 * time.Second)
	if n.stalled == 0 {
		t.Fatal("nobody heard of the stall")
	}
	r.exec.Hold(nil)
	r.exec.Run()
	if p, _ := n.get(); p != 99 || n.back != n.stalled {
		t.Fatal(p, n.back, n.stalled)
	}
}

func TestOneSyncCoversAllThatIsWrittenWhenItBegins(t *testing.T) {
	r, _, _ := faulty(t, nil)
	l, n := r.open(testSpec)
	r.append(l, 1, 0)
	r.exec.Hold(func(j diskpool.Job) bool { return j.Kind == diskpool.Sync })
	r.exec.Run()
	for seq := uint64(2); seq <= 9; seq++ {
		r.append(l, seq, id.Offset(2*(seq-1)))
		r.exec.Run()
		if waiting := r.exec.Waiting(); len(waiting) != 1 {
			t.Fatalf("%d jobs wait", len(waiting))
		}
	}
	before := r.store.Counters().Syncs.Load()
	r.exec.Hold(nil)
	r.exec.Run()
	if got := r.store.Counters().Syncs.Load() - before; got != 1 || n.persisted != 9 || len(n.order) != 1 {
		t.Fatal(got, n.order)
	}
}

// matrix E18, E19
func TestReadsThatFailLeaveTheLogAsItIs(t *testing.T) {
	r, fault, _ := faulty(t, nil)
	l, n := r.open(testSpec)
	b := r.append(l, 1, 0)
	r.exec.Run()
	for _, rule := range []vfs.Rule{{Calls: []vfs.Call{vfs.CallOpen}, Name: "*.log"}, {Calls: []vfs.Call{vfs.CallRead}, Name: "*.log"}} {
		rule.Err, rule.Times = syscall.EMFILE, 1
		hit := fault.Add(rule)
		if _, err := l.Read(context.Background(), 0, 2, 1, 1, nil); !errors.Is(err, syscall.EMFILE) || hit.Hits() != 1 {
			t.Fatal(err)
		}
		same(t, all(t, l), []*batch.Batch{b})
	}
	r.append(l, 2, 2)
	r.exec.Run()
	if n.persisted != 2 || len(n.poisoned) > 0 {
		t.Fatal(n.order)
	}
}

// A seal is asked for beside what clients write. It may fail where they do not, and nobody who writes knows of it.
func TestASealThatFailsDropsNothingOfWhatIsQueuedBehindIt(t *testing.T) {
	for what, rule := range map[string]vfs.Rule{
		"the footer": {Calls: []vfs.Call{vfs.CallWrite}, Name: "00000000000000000000.log"},
		"half of it": {Calls: []vfs.Call{vfs.CallWrite}, Name: "00000000000000000000.log", Short: true},
		"the file":   {Calls: []vfs.Call{vfs.CallCreate}, Name: "*.log"},
		"its header": {Calls: []vfs.Call{vfs.CallWrite}, Name: "00000000000000000001.log"},
	} {
		t.Run(what, func(t *testing.T) {
			r, fault, mem := faulty(t, nil)
			l, n := r.open(testSpec)
			want := []*batch.Batch{r.append(l, 1, 0)}
			r.exec.Run()
			rule.Err, rule.Times = syscall.ENOSPC, 1
			hit := fault.Add(rule)
			l.Seal(2)
			want = append(want, r.append(l, 3, 2), r.append(l, 4, 4))
			r.exec.Run()
			if hit.Hits() != 1 || fmt.Sprint(n.order) != "[ok 1 no seal 2 ok 4]" {
				t.Fatal(hit.Hits(), n.order)
			}
			same(t, all(t, l), want)
			l.Seal(5)
			want = append(want, r.append(l, 6, 6))
			r.exec.Run()
			if p, _ := n.get(); p != 6 {
				t.Fatal(n.order)
			}
			image := mem.CrashHard()
			r.close(l)
			for _, m := range []*vfs.Mem{image, mem} {
				r = newRig(t, m, nil)
				l, _ = r.open(testSpec)
				same(t, all(t, l), want)
				r.close(l)
			}
		})
	}
}

func TestALogThatAlwaysSyncsAcknowledgesWhatIsOnTheDeviceInEveryMode(t *testing.T) {
	for _, mode := range []FsyncMode{OnCommit, Periodic, None} {
		t.Run(mode.String(), func(t *testing.T) {
			spec := testSpec
			spec.AlwaysSync = true
			r, fault, _ := faulty(t, func(o *Options) { o.Fsync = mode })
			l, n := r.open(spec)
			fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Times: 1, Err: syscall.EIO})
			r.append(l, 1, 0)
			r.exec.Run()
			if p, poisoned := n.get(); p != 0 || poisoned != 1 {
				t.Fatal("acknowledged before it was synced", n.order)
			}

			mem := vfs.NewMem()
			r = newRig(t, mem, func(o *Options) { o.Fsync = mode })
			l, n = r.open(spec)
			b := r.append(l, 1, 0)
			r.exec.Run()
			if p, _ := n.get(); p != 1 {
				t.Fatal("not acknowledged", n.order)
			}
			r = newRig(t, mem.CrashHard(), nil)
			l, _ = r.open(spec)
			same(t, all(t, l), []*batch.Batch{b})
			r.close(l)
		})
	}
}
