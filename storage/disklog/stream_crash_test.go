package disklog

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// images are what a kill, the worst power cut and some others would leave of a disk now.
func images(mem *vfs.Mem, rng *rand.Rand) []*vfs.Mem {
	list := []*vfs.Mem{mem.Clone(), mem.CrashHard()}
	for range 2 {
		list = append(list, mem.Crash(rng.IntN))
	}
	return list
}

// A kill or a power cut at any operation leaves the old snapshot whole or the new one, none of it ahead of the log; once it is kept, it is there.
//
// mission 61
func TestNoCrashWhileASnapshotIsStreamedTearsItOrPutsItAhead(t *testing.T) {
	modes := []FsyncMode{OnCommit, None, Periodic}
	if testing.Short() {
		modes = modes[:2] // the race detector makes each image ten times slower
	}
	for _, mode := range modes {
		mem := vfs.NewMem()
		quick := func(o *Options) { o.Fsync = mode }
		r := newRig(t, mem, quick)
		l, _ := r.open(testSpec)
		list := r.fill(l, 6, 300)
		bodies := map[id.Offset][]byte{}
		rng := rand.New(rand.NewPCG(3, uint64(mode)))
		var done, low id.Offset // the last that was kept, and whether another one is under way
		opened, ops := map[uint64]bool{}, 0
		check := func(image *vfs.Mem, what string) {
			key := image.Hash() ^ uint64(done)<<40
			if opened[key] {
				return
			}
			opened[key] = true
			r := newRig(t, image, quick)
			l, _ := r.open(testSpec)
			_, _, tail := l.Bounds()
			same(t, all(t, l), list[:tail])
			asOf, body, ok := kept(t, l, "cache")
			switch {
			case r.store.Counters().SnapshotsIgnored.Load() != 0:
				t.Fatalf("%s %s: one is ahead of a log that ends at %d", mode, what, tail)
			case !ok && done > 0:
				t.Fatalf("%s %s: the one as of %d is gone", mode, what, done)
			case ok && (asOf < low || !bytes.Equal(body, bodies[asOf])):
				t.Fatalf("%s %s: one as of %d, want %d or later", mode, what, asOf, low)
			case hasTemp(t, l):
				t.Fatalf("%s %s: a file is left", mode, what)
			}
		}
		mem.OnOp(func(op vfs.Op) {
			ops++
			for _, image := range images(mem, rng) {
				check(image, fmt.Sprintf("operation %d, %s %s", ops, op.Call, op.Name))
			}
		})
		for round := range uint64(3) {
			asOf, body := id.Offset(len(list)), stateOf(round)
			bodies[asOf] = body
			err := l.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) {
				w.Write(body[:70_000])
				more := r.queue(l, 2, 300)
				list = append(list, more...)
				r.exec.Step()
				_, err := w.Write(body[70_000:])
				return asOf, err
			})
			if err != nil {
				t.Fatal(err)
			}
			done, low = asOf, asOf
			r.exec.Run()
		}
		mem.OnOp(nil)
		if ops < 30 || len(opened) < 50 {
			t.Fatalf("%s: it proves little: %d operations, %d disks", mode, ops, len(opened))
		}
	}
}

// What retention up to an offset was asked to keep is there after a crash at any operation of it, without a gap, and the log opens.
//
// mission 61
func TestNoCrashOfRetentionUpToAnOffsetLosesMoreThanItWasAskedTo(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, _ := r.open(testSpec)
	list := r.fill(l, 60, 500)
	to := l.segments()[5].base + 2
	rng := rand.New(rand.NewPCG(5, 1))
	opened, ops, bases := map[uint64]bool{}, 0, map[id.Offset]bool{}
	removed := id.Offset(0)
	mem.OnOp(func(op vfs.Op) {
		ops++
		for _, image := range images(mem, rng) {
			key := image.Hash() ^ uint64(removed)<<40
			if opened[key] {
				continue
			}
			opened[key] = true
			r := newRig(t, image, nil)
			l, _ := r.open(testSpec)
			base, _, tail := l.Bounds()
			if base > to || base < removed || tail != 60 {
				t.Fatalf("operation %d, %s %s: the log is %d to %d, removed was up to %d of %d", ops, op.Call, op.Name, base, tail, removed, to)
			}
			bases[base] = true
			same(t, all(t, l), list[base:])
			if l.Size() != sizeOnDisk(t, l) {
				t.Fatalf("the size is %d, on disk it is %d", l.Size(), sizeOnDisk(t, l))
			}
		}
	})
	for more := true; more; {
		var err error
		if _, more, err = l.RetainTo(to, 60, 1); err != nil {
			t.Fatal(err)
		}
		removed, _, _ = l.Bounds()
	}
	mem.OnOp(nil)
	if len(bases) != 6 || removed != l.segments()[0].base || removed > to || to-removed > 8 {
		t.Fatalf("logs that begin at %v were seen; now it begins at %d", bases, removed)
	}
}

// mission 62
func TestAStreamedSnapshotThatADiskRefusesIsAbsentAndNothingElse(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem, nil)
	r := newRig(t, fault, nil)
	l, n := r.open(testSpec)
	list := r.fill(l, 5, 100)
	if err := save(l, "cache", 4, []byte("old")); err != nil {
		t.Fatal(err)
	}
	for _, call := range []vfs.Call{vfs.CallCreate, vfs.CallWrite, vfs.CallClose, vfs.CallRename} {
		for from := 1; ; from++ {
			rule := fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Name: "cache.snap*", From: from, Err: syscall.ENOSPC, Short: call == vfs.CallWrite})
			err := save(l, "cache", 5, stateOf(1))
			hits := rule.Hits()
			rule.Remove()
			if hits == 0 {
				if err != nil || from == 1 {
					t.Fatalf("%s, call %d: %v", call, from, err)
				}
				break
			}
			if !vfs.IsNoSpace(err) || hasTemp(t, l) {
				t.Fatalf("%s, call %d: %v", call, from, err)
			}
			if at, body, ok := kept(t, l, "cache"); !ok || at == 4 && string(body) != "old" || at == 5 && !bytes.Equal(body, stateOf(1)) {
				t.Fatalf("%s, call %d: %d, %v", call, from, at, ok)
			}
		}
	}
	list = append(list, r.fill(l, 1, 100)...)
	if len(n.failed)+len(n.poisoned) > 0 {
		t.Fatal(n.order)
	}
	same(t, all(t, l), list)
	for _, name := range []string{"cache.snap*", l.Dir()} { // of the file, and of the directory
		r := newRig(t, vfs.NewFault(mem.Clone(), nil), nil)
		l, n := r.open(testSpec)
		r.fs.(*vfs.Fault).Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync, vfs.CallSyncDir}, Name: name, Err: syscall.EIO})
		if err := save(l, "cache", 5, nil); err == nil || len(n.poisoned) != 1 {
			t.Fatalf("a sync of %s failed: %v, %v", name, err, n.order)
		}
		if err := save(l, "cache", 5, nil); !is[*PoisonedError](err) {
			t.Fatal(err)
		}
	}
}

func TestASyncThatFailsForASnapshotEndsTheLogAndTheOldOneStays(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem, nil)
	r := newRig(t, fault, func(o *Options) { o.Fsync = None })
	l, n := r.open(testSpec)
	r.fill(l, 5, 100)
	if err := save(l, "cache", 5, []byte("old")); err != nil {
		t.Fatal(err)
	}
	r.fill(l, 5, 100)
	fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Err: syscall.EIO})
	if err := save(l, "cache", 10, []byte("new")); !is[*PoisonedError](err) || len(n.poisoned) != 1 {
		t.Fatal(err, n.order)
	}
	r = newRig(t, mem.CrashHard(), nil)
	l, _ = r.open(testSpec)
	if at, body, ok := kept(t, l, "cache"); !ok || at != 5 || string(body) != "old" {
		t.Fatalf("%q as of %d, %v", body, at, ok)
	}
}

// counting counts the bytes that are read of snapshots.
type counting struct {
	vfs.FS
	read atomic.Int64
}

func (c *counting) Open(name string, write bool) (vfs.File, error) {
	f, err := c.FS.Open(name, write)
	if err != nil || !strings.HasSuffix(name, segment.SnapshotName("")) {
		return f, err
	}
	return countedFile{f, c}, nil
}

type countedFile struct {
	vfs.File
	c *counting
}

func (f countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.c.read.Add(int64(n))
	return n, err
}

func TestAnOpenDropsSnapshotsThatAreAheadByTheirEndsAlone(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, func(o *Options) { o.Fsync = None })
	l, _ := r.open(testSpec)
	r.fill(l, 5, 10)
	big := bytes.Repeat(stateOf(1), 10)
	if err := save(l, "early", 5, big); err != nil {
		t.Fatal(err)
	}
	r.fill(l, 5, 10)
	for _, name := range []string{"late", "torn", "foreign", "junk", "short"} {
		salt := l.spec.salt
		if name == "foreign" {
			salt = segment.SaltOf(id.LogID{77})
		}
		var b bytes.Buffer
		w := segment.NewStreamWriter(&b, salt)
		w.Write(big)
		w.Finish(id.Offset(map[string]int{"late": 6}[name]))
		content := b.Bytes()
		switch name {
		case "torn":
			content = content[:len(content)-1]
		case "junk":
			copy(content, "junk")
		case "short":
			content = content[:2]
		}
		if _, err := writeSmall(mem, l.Dir(), segment.SnapshotName(name), content); err != nil { // by another program, it does not look at the log
			t.Fatal(err)
		}
	}
	disk := &counting{FS: mem.CrashHard()}
	r = newRig(t, disk, nil)
	l, _ = r.open(testSpec)
	if _, _, tail := l.Bounds(); tail != 5 {
		t.Fatal(tail)
	}
	if n := disk.read.Load(); n > 1000 || n < 2*(segment.StreamHeaderSize+segment.StreamTrailerSize) {
		t.Fatalf("%d bytes were read of snapshots of %d", n, len(big))
	}
	r.fill(l, 9, 10)
	for _, name := range []string{"late", "torn", "foreign", "junk", "short"} {
		if _, err := disk.Stat(l.path(segment.SnapshotName(name))); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if at, body, ok := kept(t, l, "early"); !ok || at != 5 || !bytes.Equal(body, big) {
		t.Fatal("a good one was lost")
	}
	if n := r.store.Counters().SnapshotsIgnored.Load(); n != 5 {
		t.Fatalf("%d are counted", n)
	}
}
