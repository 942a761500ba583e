package disklog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// stateOf is a state of some chunks, that follows from a seed.
func stateOf(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 2*segment.StreamChunkMax+1000)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// save keeps a streamed snapshot.
func save(l *Log, name string, asOf id.Offset, body []byte) error {
	return l.SaveSnapshotFrom(name, func(w io.Writer) (id.Offset, error) {
		_, err := w.Write(body)
		return asOf, err
	})
}

// kept reads one whole; false if there is none that can be used.
func kept(t *testing.T, l *Log, name string) (asOf id.Offset, body []byte, ok bool) {
	t.Helper()
	asOf, r, ok := l.OpenSnapshot(name)
	if !ok {
		return 0, nil, false
	}
	body, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return asOf, body, true
}

func hasTemp(t *testing.T, l *Log) bool {
	t.Helper()
	list, err := l.store.fs.ReadDir(l.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name, segment.TempSuffix) {
			return true
		}
	}
	return false
}

func TestAStreamedSnapshotIsKeptWhileTheLogGoesOn(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, n := r.open(testSpec)
	r.fill(l, 5, 100)
	for round := range uint64(3) {
		_, _, asOf := l.Bounds()
		body := stateOf(round)
		err := l.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) {
			for part := range 8 {
				r.fill(l, 3, 400) // rolls among them
				if _, err := w.Write(body[len(body)*part/8 : len(body)*(part+1)/8]); err != nil {
					return 0, err
				}
			}
			_, _, asOf = l.Bounds()
			return asOf, nil
		})
		if err != nil || hasTemp(t, l) {
			t.Fatal(err)
		}
		if at, got, ok := kept(t, l, "cache"); !ok || at != asOf || !bytes.Equal(got, body) {
			t.Fatalf("round %d: %d bytes as of %d, %v, want as of %d", round, len(got), at, ok, asOf)
		}
	}
	if _, _, ok := l.Snapshot("cache"); ok {
		t.Fatal("it passes for one of the other form")
	}
	if len(n.failed) > 0 || l.saving != nil {
		t.Fatal(n.order)
	}
	asOf, _, _ := kept(t, l, "cache")
	r.close(l)
	r = newRig(t, r.fs, nil)
	l, _ = r.open(testSpec)
	if at, got, ok := kept(t, l, "cache"); !ok || at != asOf || !bytes.Equal(got, stateOf(2)) {
		t.Fatal(at, ok)
	}
	if err := l.SaveSnapshot("cache", asOf, []byte("small")); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := l.OpenSnapshot("cache"); ok {
		t.Fatal("a small one passes for a streamed one")
	}
}

// mission 61
func TestAStreamedSnapshotIsNeverAheadOfWhatIsDurable(t *testing.T) {
	for _, mode := range []FsyncMode{OnCommit, Periodic, None} {
		for _, queued := range []bool{false, true} {
			mem := vfs.NewMem()
			r := newRig(t, mem, func(o *Options) { o.Fsync = mode })
			l, _ := r.open(testSpec)
			list := r.fill(l, 5, 10)
			_, _, tail := l.Bounds()
			var err error
			r.exec.Go(diskpool.Job{Kind: diskpool.Work, Owner: r, Run: func() {
				if queued { // a sync stands in the queue behind this very job, and a roll behind that
					l.Sync()
					l.Seal(9)
				}
				err = save(l, "cache", tail, []byte("state"))
			}})
			r.exec.Run()
			if _, durable, _ := l.Bounds(); err != nil || durable < tail {
				t.Fatalf("%s: durable up to %d of %d: %v", mode, durable, tail, err)
			}
			r = newRig(t, mem.CrashHard(), nil)
			l, _ = r.open(testSpec)
			same(t, all(t, l), list)
			if at, _, ok := kept(t, l, "cache"); !ok || at != tail || r.store.Counters().SnapshotsIgnored.Load() != 0 {
				t.Fatalf("%s: as of %d, %v", mode, at, ok)
			}
		}
	}
}

func TestAStreamedSnapshotThatCannotBeKeptLeavesTheOldOne(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	r.fill(l, 60, 500)
	l.RetainTo(20, 60, 1<<30)
	base, _, tail := l.Bounds()
	if err := save(l, "cache", tail, []byte("old")); err != nil || base == 0 {
		t.Fatal(err, base)
	}
	for _, asOf := range []id.Offset{base - 1, tail + 1, 1<<64 - 1} {
		if err := save(l, "cache", asOf, []byte("new")); err == nil {
			t.Fatalf("kept one as of %d of a log from %d to %d", asOf, base, tail)
		}
	}
	mine := errors.New("no more")
	err := l.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) {
		w.Write(stateOf(1))
		return tail, mine
	})
	if !errors.Is(err, mine) {
		t.Fatal(err)
	}
	err = l.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) {
		for _, again := range []error{save(l, "cache", tail, nil), l.SaveSnapshot("cache", tail, nil)} {
			if !is[*SnapshotBusyError](again) {
				t.Errorf("a second one under the same name: %v", again)
			}
		}
		return tail, save(l, "other", tail, []byte("beside"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := save(l, "cache", tail, []byte("old")); err != nil { // the name is free again
		t.Fatal(err)
	}
	err = l.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) { // retention goes past it
		l.RetainTo(tail, tail, 1<<30)
		return base, nil
	})
	if err == nil {
		t.Fatal("kept one of records that are gone")
	}
	if at, body, ok := kept(t, l, "cache"); !ok || at != tail || string(body) != "old" || hasTemp(t, l) {
		t.Fatalf("%q as of %d, %v", body, at, ok)
	}
}

func TestACutRemovesStreamedSnapshotsAndThoseThatAreBeingWritten(t *testing.T) {
	for what, cut := range map[string]func(l *Log){
		"truncate": func(l *Log) { l.TruncateTo(100, 35) },
		"reset":    func(l *Log) { l.ResetTo(100, 40) }, // where the log ends anyhow
	} {
		r := newRig(t, vfs.NewMem(), nil)
		l, _ := r.open(testSpec)
		r.fill(l, 40, 300)
		if err := save(l, "early", 30, nil); err != nil {
			t.Fatal(err)
		}
		err := l.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) {
			w.Write(stateOf(1))
			cut(l)
			r.exec.Run()
			r.fill(l, 9, 100)
			_, err := w.Write(stateOf(2))
			return 40, err
		})
		if !is[*SnapshotStaleError](err) {
			t.Fatalf("%s: %v", what, err)
		}
		for _, name := range []string{"early", "cache"} {
			if _, _, ok := l.OpenSnapshot(name); ok {
				t.Fatalf("%s: %s is still there", what, name)
			}
		}
		if hasTemp(t, l) {
			t.Fatal("a file is left")
		}
		_, _, tail := l.Bounds()
		if err := save(l, "cache", tail, nil); err != nil {
			t.Fatalf("%s: the next one: %v", what, err)
		}
	}
}

func TestAClosedLogTakesNoSnapshotAndItsDirectoryIsLeftAlone(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	r.fill(l, 5, 10)
	var next *Log
	err := l.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) {
		if _, err := w.Write(stateOf(1)); err != nil {
			return 0, err
		}
		l.Close(func(error) {})
		r.exec.Run()
		next, _ = r.open(testSpec)
		return 5, next.SaveSnapshotFrom("cache", func(w io.Writer) (id.Offset, error) {
			if _, err := w.Write([]byte("of the next")); err != nil {
				return 0, err
			}
			if err := save(l, "cache", 5, nil); !is[*SnapshotBusyError](err) {
				t.Error(err)
			}
			if err := save(l, "more", 5, nil); !is[*ClosedError](err) {
				t.Error(err)
			}
			return 5, nil
		})
	})
	if !is[*ClosedError](err) {
		t.Fatal(err)
	}
	if _, body, ok := kept(t, next, "cache"); !ok || string(body) != "of the next" || hasTemp(t, next) {
		t.Fatalf("%q, %v", body, ok)
	}
}

func TestADamagedStreamedSnapshotFailsItsReaderAndIsCounted(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, _ := r.open(testSpec)
	r.fill(l, 5, 10)
	body := stateOf(1)
	if err := save(l, "cache", 5, body); err != nil {
		t.Fatal(err)
	}
	name := l.path(segment.SnapshotName("cache"))
	f, err := mem.Open(name, true)
	if err != nil {
		t.Fatal(err)
	}
	size, _ := f.Size()
	fails, ignored := 0, uint64(0)
	look := func(what string) {
		t.Helper()
		_, rd, ok := l.OpenSnapshot("cache")
		if ok {
			got, err := io.ReadAll(rd)
			_, again := rd.Read(make([]byte, 1))
			var c *CorruptionError
			if !errors.As(err, &c) || c.Kind != segment.SnapshotDamaged || c.File != segment.SnapshotName("cache") || c.Shard != l.Dir() || again != err {
				t.Fatalf("%s: %v, then %v", what, err, again)
			}
			if !bytes.HasPrefix(body, got) {
				t.Fatalf("%s: other bytes came out", what)
			}
			fails++
			if err := rd.Close(); err != nil {
				t.Fatal(err)
			}
		}
		ignored++
		if n := r.store.Counters().SnapshotsIgnored.Load(); n != ignored {
			t.Fatalf("%s: %d are counted, want %d", what, n, ignored)
		}
	}
	for at := int64(0); at < size; at += 1 + size/200 {
		flip(t, f, at)
		look(fmt.Sprintf("byte %d", at))
		flip(t, f, at)
	}
	for at := size - segment.StreamTrailerSize; at < size; at++ {
		flip(t, f, at)
		look(fmt.Sprintf("byte %d", at))
		flip(t, f, at)
	}
	if _, got, ok := kept(t, l, "cache"); !ok || !bytes.Equal(got, body) || fails < 150 {
		t.Fatalf("whole again: %v; %d readers failed", ok, fails)
	}
	_, rd, _ := l.OpenSnapshot("cache")
	if _, err := rd.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size / 2); err != nil { // under a reader
		t.Fatal(err)
	}
	if _, err := io.ReadAll(rd); !is[*CorruptionError](err) {
		t.Fatal(err)
	}
	ignored++
	look("half of it")
}

func flip(t *testing.T, f vfs.File, at int64) {
	t.Helper()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

func TestALargeStreamedSnapshotIsSyncedAsItGrows(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem(), nil)
	r := newRig(t, fault, nil)
	l, n := r.open(testSpec)
	r.fill(l, 5, 10)
	piece := make([]byte, 1<<20)
	large := func(w io.Writer) (id.Offset, error) {
		for range 2*streamSyncBytes/len(piece) + 1 {
			w.Write(piece) // what it answers is passed over
		}
		return 5, nil
	}
	syncs := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "cache.snap*", Delay: 1})
	if err := l.SaveSnapshotFrom("cache", large); err != nil || syncs.Hits() != 3 {
		t.Fatalf("%d syncs: %v", syncs.Hits(), err)
	}
	fault.Set([]vfs.Rule{{Calls: []vfs.Call{vfs.CallSync}, Name: "cache.snap*", Times: 1, Err: syscall.EIO}})
	if err := l.SaveSnapshotFrom("cache", large); !errors.Is(err, syscall.EIO) || len(n.poisoned) != 1 {
		t.Fatal(err, n.order)
	}
}

func TestAStreamedSnapshotThatTheDiskDoesNotReadIsNotUsed(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem(), nil)
	r := newRig(t, fault, nil)
	l, _ := r.open(testSpec)
	r.fill(l, 5, 10)
	if err := save(l, "cache", 5, stateOf(1)); err != nil {
		t.Fatal(err)
	}
	for from := 1; from <= 5; from++ { // two ends, and then the chunks
		rule := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Name: "cache.snap", From: from, Err: syscall.EIO})
		_, rd, ok := l.OpenSnapshot("cache")
		if ok != (from > 2) {
			t.Fatalf("read %d fails: %v", from, ok)
		}
		if ok {
			if _, err := io.ReadAll(rd); !errors.Is(err, syscall.EIO) || is[*CorruptionError](err) {
				t.Fatalf("read %d fails: %v", from, err)
			}
			rd.Close()
		}
		rule.Remove()
		if n := r.store.Counters().SnapshotsIgnored.Load(); n != uint64(from) {
			t.Fatalf("read %d fails: %d are counted", from, n)
		}
	}
	if _, got, ok := kept(t, l, "cache"); !ok || !bytes.Equal(got, stateOf(1)) {
		t.Fatal("it is not there any more")
	}
}
