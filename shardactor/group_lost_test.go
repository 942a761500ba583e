package shardactor

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// A power cut may take the end of a stream that is not synced before it is acknowledged, and leave what a group noted of it. The records that
// come there afterwards are new: the group hands them out, although it is asked only when they are there.
func TestRecordsInThePlaceOfLostOnesAreHandedOut(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	h := d.streamShard("jobs")
	written(t, h, 0, "0", "1", "2", "3", "4")
	early := mem.Clone()
	written(t, h, 5, "5", "6", "7", "8", "9")
	w := newWorker(t, h, "workers", 1)
	for acked := 0; acked < 10; {
		for _, r := range w.poll(100) {
			w.ack(r.Offset)
			acked++
		}
	}
	if a := w.do(groupcore.Describe{}); a.Info.Cursor != 10 {
		t.Fatalf("%+v", a.Info)
	}

	n := newDiskWorld(t, withStreamsOf(t, mem.Clone(), early))
	h = n.streamShard("jobs")
	written(t, h, 5, "a", "b", "c", "d", "e", "f", "g")
	w = newWorker(t, h, "workers", 1)
	next := id.Offset(5)
	for next < 12 {
		list := w.poll(100)
		if len(list) == 0 {
			t.Fatalf("offset %d is not handed out", next)
		}
		for _, r := range list {
			if r.Offset != next || r.Attempts != 1 {
				t.Fatalf("%+v, want offset %d for the first time", r, next)
			}
			w.ack(r.Offset)
			next++
		}
	}
	if a := w.do(groupcore.Describe{}); a.Info.Cursor != 12 || a.Info.Owed != 0 {
		t.Fatalf("%+v", a.Info)
	}
}

// What has to be known of a lost end cannot be written down, or its sync fails: the stream takes no records in the place of the lost ones, of which
// a later process would believe that they are finished.
func TestAStreamDoesNotGoOnBeforeItIsKeptWhatItHasLost(t *testing.T) {
	image := shortened(t, disklog.None, "workers")
	for _, rule := range []vfs.Rule{
		{Calls: []vfs.Call{vfs.CallWrite}, Err: syscall.ENOSPC},
		{Calls: []vfs.Call{vfs.CallSync}, Err: syscall.EIO},
		{Calls: []vfs.Call{vfs.CallRename}, Err: syscall.EIO},
	} {
		rule.Name = "*jobs*/replica*"
		d := afterCutOf(t, image.Clone(), disklog.None)
		active := d.fault.Add(rule)
		a := durableStream("jobs", 1, 1)
		d.version++
		d.host.Signal(actors.Cell{Kind: DesiredCell, Value: route.Desired{Version: d.version, Assignments: []route.Assignment{a}}})
		d.await("it is tried", func() bool { return active.Hits() > 0 })
		poisons := rule.Calls[0] == vfs.CallSync
		if poisons {
			d.target(a.Name, 0, func(x Target) bool { return x.Reason == ReasonPoisoned })
		} else if e := d.table.Get(a.Name); e != nil {
			if x, _ := e.Shard(0); x.State == route.Local {
				t.Fatalf("%v fails, and the shard serves", rule.Calls)
			}
		}
		mem := d.cut()
		if d.fault.Set(nil); !poisons { // it is tried again
			d.target(a.Name, 0, func(x Target) bool { d.clock.Advance(time.Second); return x.State == route.Local })
		}
		d.stop()

		n, h := afterCut(t, mem, disklog.None)
		written(t, h, 5, "a", "b", "c")
		takes(t, newWorker(t, h, "workers", 1), 5, 8)
		n.stop()
	}
}

// The same where the logs of the groups are opened late: the groups wait for it, and the stream does not.
func TestGroupsWaitUntilItIsKeptWhatTheStreamHasLostAndTheStreamDoesNot(t *testing.T) {
	d := afterCutOf(t, shortened(t, disklog.None, "workers"), disklog.None)
	d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallOpen, vfs.CallReadDir}, Match: inGroups, Err: syscall.EIO})
	h := d.streamShard("jobs")
	d.fault.Set(nil)
	full := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*jobs*/replica*", Err: syscall.ENOSPC})
	w := newWorker(t, h, "workers", 1)
	end := id.Offset(5)
	for full.Hits() < 2 {
		if a := w.do(groupcore.Describe{}); a.Refusal == nil {
			t.Fatalf("the group is brought up: %+v", a.Info)
		}
		written(t, h, end, "new")
		end++
		d.clock.Advance(groupcore.DefaultDoorOptions().MaxRetry)
	}
	d.fault.Set(nil)
	for _, o := range d.takesOnceOpen(t, w, 5, end) {
		w.ack(o)
	}
	d.stop()

	_, h = afterCut(t, d.mem, disklog.None)
	written(t, h, end, "newest")
	takes(t, newWorker(t, h, "workers", 1), end, end+1)
}

// withStreamsOf is a disk whose streams are as they were on another.
func withStreamsOf(t *testing.T, mem, early *vfs.Mem) *vfs.Mem {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := mem.ReadDir(".")
	must(err)
	for _, dir := range dirs {
		if !strings.HasPrefix(dir.Name, "t1_") {
			continue
		}
		files, err := mem.ReadDir(dir.Name)
		must(err)
		for _, f := range files {
			must(mem.Remove(fmt.Sprintf("%s/%s", dir.Name, f.Name)))
		}
		files, err = early.ReadDir(dir.Name)
		must(err)
		for _, f := range files {
			name := fmt.Sprintf("%s/%s", dir.Name, f.Name)
			from, err := early.Open(name, false)
			must(err)
			content := make([]byte, f.Size)
			if _, err := from.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			must(from.Close())
			to, err := mem.Create(name)
			must(err)
			_, err = to.WriteAt(content, 0)
			must(err)
			must(to.Close())
		}
	}
	return mem
}
