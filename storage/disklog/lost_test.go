package disklog

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// What is kept of lost ends is on the device when that is told, and is there with the generation that was saved with it, or before, or after.
func TestLostEndsAreDurableWhenThatIsTold(t *testing.T) {
	first := []segment.LostEnd{{End: 5, Cursors: 60, DeadLetters: 9}}
	second := append(slices.Clone(first), segment.LostEnd{End: 8, Cursors: 1<<64 - 1, DeadLetters: 1<<64 - 1})
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, n := r.open(testSpec)
	if l.Lost() != nil {
		t.Fatalf("a new log has lost %v", l.Lost())
	}
	l.SaveBeginning(1, 4, first)
	r.exec.Run()
	is := func(mem *vfs.Mem, want []segment.LostEnd) {
		t.Helper()
		c := newRig(t, mem, nil)
		l, _ := c.open(testSpec)
		if !slices.Equal(l.Lost(), want) || l.Generation() != 4 {
			t.Fatalf("generation %d, lost %v, want %v", l.Generation(), l.Lost(), want)
		}
		c.close(l)
	}
	if n.persisted != 1 {
		t.Fatal(n.order)
	}
	is(mem.CrashHard(), first)
	told := false
	l.KeepLost(second, func(err error) { told = err == nil })
	r.append(l, 2, 0)
	r.exec.Run()
	if !told || n.persisted != 2 {
		t.Fatal(told, n.order)
	}
	is(mem.CrashHard(), second)
	l.SaveGeneration(3, 4)
	l.SaveBeginning(4, 4, nil)
	r.exec.Run()
	is(mem.CrashHard(), nil)
	r.close(l)
}

// What is kept on its own and cannot be written refuses nothing else, and a sync that fails for it ends the log like any other.
func TestLostEndsThatCannotBeKeptRefuseNothingElse(t *testing.T) {
	lost := []segment.LostEnd{{End: 5, Cursors: 60, DeadLetters: 9}}
	for _, call := range []vfs.Call{vfs.CallWrite, vfs.CallSync} {
		r, fault, _ := faulty(t, nil)
		l, n := r.open(testSpec)
		fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Name: "replica*", Times: 1, Err: syscall.EIO})
		var failed error
		l.KeepLost(lost, func(err error) { failed = err })
		r.append(l, 1, 0)
		r.exec.Run()
		_, poisoned := n.get()
		if failed == nil || l.Lost() != nil || (call == vfs.CallSync) != (poisoned == 1) || (call == vfs.CallWrite) != (n.persisted == 1) {
			t.Fatalf("%v: %v, %v, %v", call, failed, l.Lost(), n.order)
		}
		if call == vfs.CallSync {
			continue
		}
		l.KeepLost(lost, func(err error) { failed = err })
		r.exec.Run()
		if failed != nil || fmt.Sprint(l.Lost()) != fmt.Sprint(lost) {
			t.Fatal(failed, l.Lost())
		}
		r.close(l)
	}
}
