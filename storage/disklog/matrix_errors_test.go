package disklog_test

import (
	"context"
	"errors"
	iofs "io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// A sync in the background that fails ends the log: nobody waits for it, but the next append is not acknowledged.
//
// matrix E7
func TestE7_APeriodicSyncThatFailsPoisons(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem, func(o *disklog.Options) { o.Fsync, o.FsyncInterval = disklog.Periodic, 250*time.Millisecond })
	l, n := p.open(orders())
	p.write(l, 100)
	rule := p.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Times: 1, Err: syscall.EIO})
	p.exec.Advance(time.Second)
	p.exec.Run()
	if rule.Hits() != 1 || len(n.poisoned) != 1 {
		t.Fatalf("%d hits, %+v", rule.Hits(), n)
	}
	p.write(l, 100)
	if n.persisted != 1 {
		t.Fatal("acknowledged after a sync that failed")
	}
}

// A disk that says only at the sync that it is full has lost what was written: that is a failed sync, and no failed write.
//
// matrix E13
func TestE13_NoSpaceAtASyncPoisons(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, n := p.open(orders())
	list := p.write(l, 100)
	p.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Times: 1, Err: syscall.ENOSPC})
	p.write(l, 100)
	if len(n.poisoned) != 1 || len(n.failed) != 0 || n.persisted != 1 {
		t.Fatalf("%+v", n)
	}
	reopened(t, mem.CrashHard(), list)
}

// Room that cannot be reserved ahead, for want of space or because the file system knows no such thing, fails no append; and reserved room
// is never taken for records, also after a kill.
//
// matrix E14, B25, B26
func TestE14_ReservationsThatFailFailNoAppend(t *testing.T) {
	for what, err := range map[string]error{"full": syscall.ENOSPC, "unknown": errors.ErrUnsupported, "granted": nil} {
		t.Run(what, func(t *testing.T) {
			mem := vfs.NewMem()
			reserve := func(o *disklog.Options) { o.Preallocate, o.SegmentBytes, o.ReadBytes = true, 4<<20, 0 }
			p := boot(t, mem, reserve)
			l, n := p.open(orders())
			var rule *vfs.ActiveRule
			if err != nil {
				rule = p.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallPreallocate}, Err: err})
			}
			var list []*batch.Batch
			for range 300 {
				list = append(list, p.write(l, 20_000)...)
			}
			if n.persisted != 300 || len(n.failed)+len(n.poisoned) > 0 || rule != nil && rule.Hits() == 0 {
				t.Fatalf("%+v", n)
			}
			size := int64(0)
			for _, name := range files(t, mem, l.Dir()) {
				e, err := mem.Stat(l.Dir() + "/" + name)
				if err != nil {
					t.Fatal(err)
				}
				size += e.Size
			}
			if least := int64(300 * (segment.BatchHeaderSize + 20_004)); size < least || size > least+100<<10 {
				t.Errorf("the files are %d bytes long, batches %d", size, least)
			}
			reopened(t, mem.Clone(), list, reserve)
			if used := mem.Used(); (used > size+100<<10) != (err == nil) {
				t.Errorf("%d bytes are occupied by %d, so nothing was reserved, or what could not be", used, size)
			}
			p.stop(l)
			if used := mem.Used(); used > size+200<<10 {
				t.Errorf("%d bytes are occupied by %d after the end", used, size)
			}
			reopened(t, mem, list, reserve)
		})
	}
}

// What is derived is no reason to fail: a snapshot that finds no room is absent, and everything else goes on.
//
// matrix E15
func TestE15_ASnapshotWithoutRoomIsAbsentAndNothingElse(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, n := p.open(orders())
	list := p.write(l, repeat(3, 100)...)
	for _, call := range []vfs.Call{vfs.CallCreate, vfs.CallWrite, vfs.CallRename} {
		rule := p.fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Name: "producers*", Err: syscall.ENOSPC})
		if err := l.SaveSnapshot("producers", 3, []byte("state")); !vfs.IsNoSpace(err) || rule.Hits() == 0 {
			t.Fatalf("%s: %v", call, err)
		}
		rule.Remove()
		if _, _, ok := l.Snapshot("producers"); ok {
			t.Fatalf("%s: it is there", call)
		}
	}
	list = append(list, p.write(l, 100)...)
	if n.persisted != 4 || len(n.poisoned) > 0 {
		t.Fatalf("%+v", n)
	}
	p.stop(l)
	reopened(t, mem, list)
}

// A disk that became read-only refuses writes; what is there is read.
//
// matrix E20
func TestE20_AReadOnlyDiskRefusesWritesAndIsRead(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, n := p.open(orders())
	list := p.write(l, repeat(20, 300)...)
	rule := p.fault.Add(vfs.Rule{
		Calls: []vfs.Call{vfs.CallWrite, vfs.CallCreate, vfs.CallTruncate, vfs.CallRename, vfs.CallRemove}, Err: syscall.EROFS,
	})
	for seq := uint64(100); seq < 103; seq++ {
		l.Append(seq, []*batch.Batch{made(20, 10, 0)})
		p.exec.Run()
		if !errors.Is(n.failed[seq], syscall.EROFS) {
			t.Fatalf("append %d: %+v", seq, n)
		}
		holds(t, l, list)
	}
	rule.Remove()
	reopened(t, mem.Clone(), list)
}

// An index that can't be written anew, for want of space, is no reason not to open.
//
// matrix C9
func TestC9_ALogOpensAlthoughNoIndexCanBeWritten(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, _ := p.open(orders())
	list := p.write(l, repeat(60, 300)...)
	dir := l.Dir()
	p.stop(l)
	for _, name := range files(t, mem, dir) {
		if name[len(name)-1] == 'x' {
			if err := mem.Remove(dir + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, call := range []vfs.Call{vfs.CallCreate, vfs.CallWrite} {
		p = boot(t, mem.Clone())
		rule := p.fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Name: "*.index*", Err: syscall.ENOSPC})
		l, n := p.open(orders())
		holds(t, l, list)
		more := p.write(l, repeat(20, 300)...)
		holds(t, l, append(list[:60:60], more...))
		if rule.Hits() == 0 || len(n.failed) > 0 {
			t.Fatalf("%d hits, %+v", rule.Hits(), n)
		}
		p.stop(l)
	}
}

// Opens, closes and uses of one log meet: there is one writer at any time, and whoever comes too late is told.
//
// matrix E23, E24
func TestE24_ALogThatIsClosedTellsWhoeverComesLate(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, n := p.open(orders())
	list := p.write(l, repeat(4, 100)...)
	var busy *disklog.BusyError
	if _, err := p.store.Open(orders(), &report{}, nil); !errors.As(err, &busy) {
		t.Fatalf("a second open: %v", err)
	}
	closed := false
	l.Close(func(err error) { closed = err == nil })
	if _, err := p.store.Open(orders(), &report{}, nil); !errors.Is(err, disklog.ErrClosing) {
		t.Fatalf("an open while it is closed: %v", err)
	}
	l.Append(50, []*batch.Batch{made(4, 10, 0)})
	p.exec.Run()
	var late *disklog.ClosedError
	if _, err := l.Read(context.Background(), 0, 4, 1, 1, nil); !closed || !errors.As(err, &late) || n.persisted == 50 {
		t.Fatalf("closed %v, a read says %v, %+v", closed, err, n)
	}
	if err := l.SaveSnapshot("x", 1, nil); !errors.As(err, &late) {
		t.Fatal(err)
	}
	l, _ = p.open(orders())
	holds(t, l, list)
	p.stop(l)
}

// What is not of the store is left as it is, at its root and in a log's directory, through writing, retention and restarts: it is named once,
// never counted as a segment, and a link is not followed.
//
// field case DUR-07; matrix B14
func TestDUR07_ForeignFilesAreLeftAlone(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	disk, err := vfs.NewOS(root)
	if err != nil {
		t.Fatal(err)
	}
	p := boot(t, disk)
	l, _ := p.open(orders())
	list := p.write(l, repeat(30, 300)...)
	dir := l.Dir()
	p.stop(l)
	foreign := litter(t, root, outside)
	foreign = append(foreign, litter(t, root+"/"+dir, outside)...)
	for range 2 {
		p = boot(t, disk)
		if names := p.store.Foreign(); len(names) < 4 {
			t.Errorf("named are %q", names)
		}
		l, _ = p.open(orders())
		base, _, _ := l.Bounds()
		holds(t, l, list[base:])
		list = append(list, p.write(l, repeat(30, 300)...)...)
		l.SetRetention(disklog.Retention{Bytes: 12 << 10})
		if removed, _, err := l.Retain(0, tailOf(l), 1<<30); err != nil || removed.Segments == 0 {
			t.Fatal(removed, err)
		}
		p.stop(l)
	}
	for _, f := range foreign {
		if why := f.changed(); why != "" {
			t.Errorf("%q: %s", f.name, why)
		}
	}
	if _, err := iofs.ReadFile(iofsOf(outside), "target"); err != nil {
		t.Error("what a link points to:", err)
	}
}

// A mark that cannot be written lags, which is only stricter: appends go on and are there after a kill and after a power cut. Where a step
// needs the mark first, such as the next segment, it is refused, and done once the mark can be written.
//
// matrix M6
func TestAMarkThatCannotBeWrittenLagsAndHarmsNothing(t *testing.T) {
	for _, short := range []bool{false, true} {
		mem := vfs.NewMem()
		p := boot(t, mem)
		l, n := p.open(orders())
		list := p.write(l, 100, 100)
		rule := p.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: segment.MarkName, Err: syscall.ENOSPC, Short: short})
		list = append(list, p.write(l, 100, 100)...)
		if n.persisted != 4 || rule.Hits() == 0 || p.store.Counters().MarkFailures.Load() == 0 || len(n.poisoned) > 0 {
			t.Fatalf("short %v: %d hits, %+v", short, rule.Hits(), n)
		}
		reopened(t, mem.Clone(), list)
		reopened(t, mem.CrashHard(), list)
		l.Append(50, []*batch.Batch{made(4, 3900, 0)}) // needs the next segment
		p.exec.Run()
		if n.failed[50] == nil || len(n.poisoned) > 0 {
			t.Fatalf("short %v: a new segment without a mark: %+v", short, n)
		}
		holds(t, l, list)
		reopened(t, mem.Clone(), list)
		reopened(t, mem.CrashHard(), list)
		rule.Remove()
		more := p.write(l, 3900)
		if n.persisted != uint64(more[0].Base)+1 {
			t.Fatalf("short %v: with room again: %+v", short, n)
		}
		list = append(list, more...)
		reopened(t, mem.CrashHard(), list)
		p.stop(l)
		reopened(t, mem, list)
	}
}
