package shardactor

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/felixd/felixd/shardactor/groupcore"
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
