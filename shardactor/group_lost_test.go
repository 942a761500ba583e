package shardactor

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
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

// The sync fails by which a group's correction of its notes would have become durable: the stream takes no records in the place of the lost
// ones, since the next process would believe the notes of them.
func TestAStreamDoesNotGoOnWithoutTheNotesOfWhatItHasLost(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	h := d.streamShard("jobs")
	written(t, h, 0, "0", "1", "2", "3", "4")
	early := mem.Clone()
	written(t, h, 5, "5", "6")
	w := newWorker(t, h, "workers", 1)
	for acked := 0; acked < 7; {
		for _, r := range w.poll(100) {
			w.ack(r.Offset)
			acked++
		}
	}
	poisoned := 0
	for from := 1; from < 5; from++ {
		image := withStreamsOf(t, mem.Clone(), early)
		n := newDiskWorld(t, image)
		n.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Match: inGroups, From: from, Err: syscall.EIO})
		a := durableStream("jobs", 1, 1)
		n.desire(a)
		x := n.target(a.Name, 0, func(x Target) bool { return x.State == route.Local || x.Reason == ReasonPoisoned })
		n.await("a sync fails", func() bool { return n.events.count("shard_poisoned")+n.events.count("shard_open_failed") > 0 })
		if n.events.count("shard_open_failed") > 0 {
			n.stop()
			continue
		}
		poisoned++
		if x.State == route.Local { // it was seen before it failed
			if a := send(t, x.Shard, message("in the place of a lost one")); a.Refusal == nil {
				t.Fatalf("sync %d: a record is taken at %d, of which the next process would believe that it is finished", from, a.Offset)
			}
		}
		n.stop()

		next := newDiskWorld(t, image.Clone())
		h = next.streamShard("jobs")
		written(t, h, 5, "a", "b", "c")
		w := newWorker(t, h, "workers", 1)
		for want := id.Offset(5); want < 8; {
			for _, r := range w.poll(100) {
				if r.Offset != want {
					t.Fatalf("sync %d: %+v, want offset %d", from, r, want)
				}
				w.ack(r.Offset)
				want++
			}
		}
		next.stop()
	}
	if poisoned == 0 {
		t.Fatal("no log failed that was open")
	}
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
