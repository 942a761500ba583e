package disklog

import (
	"strings"
	"syscall"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// forgetful is a disk like the real ones: after a sync that fails, what it should have written reads well and is held for written, so that
// a later sync passes over it and succeeds.
type forgetful struct {
	*vfs.Mem
	fail  bool           // the next sync
	dirty map[int64]bool // bytes of the segment since the last sync
	lost  map[int64]bool // bytes that are not on the device, whatever syncs come
}

func (d *forgetful) Create(name string) (vfs.File, error) { return d.wrap(d.Mem.Create(name)) }
func (d *forgetful) Open(name string, write bool) (vfs.File, error) {
	return d.wrap(d.Mem.Open(name, write))
}

func (d *forgetful) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &forgetfulFile{File: f, disk: d}, nil
}

type forgetfulFile struct {
	vfs.File
	disk *forgetful
}

func (f *forgetfulFile) WriteAt(p []byte, off int64) (int, error) {
	for i := range int64(len(p)) {
		f.disk.dirty[off+i] = true
		delete(f.disk.lost, off+i)
	}
	return f.File.WriteAt(p, off)
}

func (f *forgetfulFile) Sync() error {
	if f.disk.fail {
		f.disk.fail = false
		for at := range f.disk.dirty {
			f.disk.lost[at] = true
		}
		clear(f.disk.dirty)
		return syscall.EIO
	}
	clear(f.disk.dirty)
	return f.File.Sync()
}

// powerCut is what is on the device: nothing where bytes were lost.
func (d *forgetful) powerCut(t *testing.T, name string) *vfs.Mem {
	t.Helper()
	image := d.CrashHard()
	f, err := image.Open(name, true)
	if err != nil {
		t.Fatal(err)
	}
	for at := range d.lost {
		if _, err := f.WriteAt([]byte{0}, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return image
}

// What a failed sync left in the system's memory alone is written again by the next process before anything is acknowledged behind it.
//
// matrix E3, matrix L2, field case DUR-08
func TestWhatAFailedSyncDroppedIsWrittenAgainBeforeAnythingFollowsIt(t *testing.T) {
	disk := &forgetful{Mem: vfs.NewMem(), dirty: map[int64]bool{}, lost: map[int64]bool{}}
	r := newRig(t, disk, func(o *Options) { o.SegmentBytes = 1 << 20 })
	l, n := r.open(testSpec)
	l.Append(1, []*batch.Batch{batchAt(0, 1, 100)})
	r.exec.Run()
	disk.fail = true
	l.Append(2, []*batch.Batch{batchAt(1, 1, 100)})
	r.exec.Run()
	if n.persisted != 1 || len(n.poisoned) != 1 || len(disk.lost) == 0 {
		t.Fatalf("the fault did not take effect: %v, %d bytes lost", n.order, len(disk.lost))
	}
	// The process ends as it stands; the machine goes on, and so does what it holds in memory.
	disk.Mem = disk.Clone()
	r = newRig(t, disk, func(o *Options) { o.SegmentBytes = 1 << 20 })
	l, n = r.open(testSpec)
	_, _, tail := l.Bounds()
	l.Append(1, []*batch.Batch{batchAt(tail, 1, 100)})
	r.exec.Run()
	if n.persisted != 1 {
		t.Fatal(n.order)
	}
	want := all(t, l)
	image := disk.powerCut(t, strings.Join([]string{l.Dir(), segment.FileName(0)}, "/"))
	r = newRig(t, image, nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), want)
}
