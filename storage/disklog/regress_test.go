package disklog

import (
	"path"
	"syscall"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// Each of these is a fault that a crash campaign has found once.

// killAt returns the disk as a kill leaves it right after the first call that matches.
func killAt(mem *vfs.Mem, call vfs.Call, name string, do func()) (image *vfs.Mem) {
	mem.OnOp(func(op vfs.Op) {
		if image == nil && op.Phase == vfs.After && op.Call == call && path.Base(op.Name) == name {
			image = mem.Clone()
		}
	})
	do()
	mem.OnOp(nil)
	return image
}

// reopen opens the log on a disk after a kill, appends, cuts the power, and opens it again.
func reopenTwice(t *testing.T, image *vfs.Mem) (*rig, *Log) {
	t.Helper()
	if image == nil {
		t.Fatal("the operation did not come")
	}
	r := newRig(t, image, nil)
	l, n := r.open(testSpec)
	_, _, tail := l.Bounds()
	l.Append(1, []*batch.Batch{batchAt(tail, 1, 1)})
	r.exec.Run()
	if n.persisted != 1 {
		t.Fatal(n.order)
	}
	want := all(t, l)
	r = newRig(t, image.CrashHard(), nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), want)
	return r, l
}

// matrix B5
func TestAKillBeforeTheNameOfANewSegmentIsSyncedLosesNothing(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, _ := r.open(testSpec)
	reopenTwice(t, killAt(mem, vfs.CallSync, segment.FileName(2), func() { r.fill(l, 40, 500) }))
}

func TestAKillBeforeTheMarkOfRetentionIsSyncedLosesNoHead(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, _ := r.open(testSpec)
	r.fill(l, 40, 500)
	reopenTwice(t, killAt(mem, vfs.CallWrite, segment.MarkName, func() { r.retainAll(l) }))
}

func TestAKillBeforeTheFirstSegmentOfAResetIsSyncedLosesNothing(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, _ := r.open(testSpec)
	r.fill(l, 40, 500)
	next := l.segments()[len(l.segments())-1].id + 1
	reopenTwice(t, killAt(mem, vfs.CallWrite, segment.FileName(next), func() {
		l.ResetTo(99, 1000)
		r.exec.Run()
	}))
}

func TestARefusedBatchDoesNotComeBackAfterAPowerCut(t *testing.T) {
	r, fault, mem := faulty(t, nil)
	l, n := r.open(testSpec)
	first := r.append(l, 1, 0)
	r.exec.Run()
	// Half of what two appends write holds the first of them, whole.
	rule := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Times: 1, Err: syscall.ENOSPC, Short: true})
	r.append(l, 2, 2)
	r.append(l, 3, 4)
	r.exec.Run()
	if n.failed[2] == nil || rule.Hits() != 1 {
		t.Fatal(n.order)
	}
	other := batchAt(2, 1, 44) // takes as much room
	l.Append(4, []*batch.Batch{other})
	r.exec.Step() // written, and not synced
	for pick := range 64 {
		k := pick
		image := mem.Crash(func(n int) int { k = k*7 + 3; return k % n })
		crashed := newRig(t, image, nil)
		l, _ := crashed.open(testSpec)
		want := []*batch.Batch{first}
		if _, _, tail := l.Bounds(); tail > 2 {
			want = append(want, other)
		}
		same(t, all(t, l), want)
	}
}

func TestAKillBeforeACutIsSyncedBringsNothingBack(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, _ := r.open(testSpec)
	list := r.fill(l, 5, 40)
	image := killAt(mem, vfs.CallTruncate, segment.FileName(0), func() {
		l.TruncateTo(99, 2)
		r.exec.Run()
	})
	crashed := newRig(t, image, nil)
	l, _ = crashed.open(testSpec)
	same(t, all(t, l), list[:2])
	l.Append(1, []*batch.Batch{batchAt(2, 1, 39)}) // a little shorter than what was there
	crashed.exec.Step()
	for pick := range 64 {
		k := pick
		again := newRig(t, image.Crash(func(n int) int { k = k*7 + 3; return k % n }), nil)
		l, _ := again.open(testSpec)
		if _, _, tail := l.Bounds(); tail > 3 {
			t.Fatal("what was cut off came back")
		}
	}
}

func TestASegmentThatTheMarkMayNameIsNotRemoved(t *testing.T) {
	r, fault, mem := faulty(t, nil)
	l, n := r.open(testSpec)
	list := r.fill(l, 3, 100)
	rule := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: segment.MarkName, From: 2, Times: 1, Err: syscall.EIO})
	l.ResetTo(99, 1000)
	r.exec.Run()
	if rule.Hits() != 1 || len(n.poisoned) != 1 {
		t.Fatal(rule.Hits(), n.order)
	}
	for _, image := range []*vfs.Mem{mem.Clone(), mem.CrashHard()} {
		l, _ := newRig(t, image, nil).open(testSpec)
		if base, _, tail := l.Bounds(); base != 1000 || tail != 1000 {
			same(t, all(t, l), list)
		}
	}
}

func TestASegmentThatWasNotBegunDoesNotComeBack(t *testing.T) {
	r, fault, mem := faulty(t, nil)
	l, n := r.open(testSpec)
	big := batchAt(0, 1, 3900)
	l.Append(1, []*batch.Batch{big})
	r.exec.Run()
	rule := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: segment.MarkName, From: 2, Times: 1, Err: syscall.EIO})
	r.append(l, 2, 1) // the mark of its segment cannot be written
	r.exec.Run()
	if rule.Hits() != 1 || n.failed[2] == nil {
		t.Fatal(rule.Hits(), n.order)
	}
	l.ResetTo(3, 1000) // its only segment has the same number
	r.exec.Run()
	l, _ = newRig(t, mem.CrashHard(), nil).open(testSpec)
	if base, _, tail := l.Bounds(); base != 1000 || tail != 1000 {
		t.Fatal(base, tail)
	}
}
