package disklog

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// fill appends n batches of one record of size bytes each and returns them.
func (r *rig) fill(l *Log, n, size int) []*batch.Batch {
	_, _, next := l.Bounds()
	var list []*batch.Batch
	for range n {
		b := batchAt(next, 1, size)
		list = append(list, b)
		l.Append(uint64(next)+1, []*batch.Batch{b})
		next = b.End()
	}
	r.exec.Run()
	return list
}

func (l *Log) segments() []segmentMeta {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]segmentMeta(nil), l.segs...)
}

// matrix F10
func TestRetentionRemovesWholeSegmentsFromTheHeadBelowTheFloor(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	list := r.fill(l, 60, 500)
	segs := l.segments()
	if len(segs) < 6 {
		t.Fatal(len(segs))
	}
	l.SetRetention(Retention{Bytes: 1})
	floor := segs[3].base + 1 // inside the fourth segment
	removed, more, err := l.Retain(0, floor, 1)
	if err != nil || !more || removed.Segments != 1 {
		t.Fatal(removed, more, err)
	}
	removed, more, err = l.Retain(0, floor, 1<<20)
	if err != nil || more || removed.Segments != 2 || removed.Records == 0 {
		t.Fatal(removed, more, err)
	}
	base, _, tail := l.Bounds()
	if base != segs[3].base {
		t.Fatalf("the log begins at %d, want %d", base, segs[3].base)
	}
	_, err = l.Read(context.Background(), base-1, tail, 1, 1, nil)
	if e := new(TrimmedError); !is[*TrimmedError](err) {
		t.Fatal(err, e)
	}
	same(t, all(t, l), list[base:])
	l.Retain(0, tail, 1<<30)
	if segs := l.segments(); len(segs) != 1 {
		t.Fatalf("%d segments stay; the one that is written to must, and no other", len(segs))
	}
	if names, _ := r.fs.ReadDir(l.Dir()); len(names) > 4 {
		t.Fatal("files were left:", names)
	}
	rest := all(t, l)
	r.close(l)
	r = newRig(t, r.fs, nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), rest)
}

// matrix F8
func TestRetentionGoesByTheAgeOfRecords(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	r.fill(l, 40, 500)
	segs := l.segments()
	l.SetRetention(Retention{Age: time.Millisecond})
	for _, now := range []uint64{0, segs[0].greatest, segs[0].greatest + 1000} { // the clock was ahead, or stepped back
		if removed, _, _ := l.Retain(now, 1<<40, 1<<40); removed.Segments != 0 {
			t.Fatal("removed too early, at", now)
		}
	}
	if removed, _, _ := l.Retain(segs[0].greatest+1001, 1<<40, 1<<40); removed.Segments != 1 {
		t.Fatal(removed)
	}
}

// matrix F12, J8
func TestACutDropsWhatFollowsAndIsRefusedBelowTheCommitOffset(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, n := r.open(testSpec)
	list := r.fill(l, 40, 500)
	if err := l.SaveSnapshot("producers", 40, []byte("x")); err != nil {
		t.Fatal(err)
	}
	l.SaveCommit(100, 12)
	r.exec.Run()
	l.TruncateTo(101, 11)
	r.exec.Run()
	if !is[*BelowCommitError](n.failed[101]) {
		t.Fatal(n.order)
	}
	l.ResetTo(102, 99)
	r.exec.Run()
	if !is[*BelowCommitError](n.failed[102]) {
		t.Fatal(n.order)
	}
	same(t, all(t, l), list)
	for seq, to := range []id.Offset{33, l.segments()[3].base, 13} {
		l.TruncateTo(uint64(103+seq), to)
		r.exec.Run()
		if n.persisted != uint64(103+seq) {
			t.Fatal(n.order)
		}
		if _, durable, tail := l.Bounds(); durable != to || tail != to {
			t.Fatal(durable, tail)
		}
		same(t, all(t, l), list[:to])
		if _, _, ok := l.Snapshot("producers"); ok {
			t.Fatal("a snapshot survived the cut")
		}
	}
	more := r.fill(l, 20, 700)
	want := append(list[:13:13], more...)
	same(t, all(t, l), want)
	r.close(l)
	r = newRig(t, r.fs, nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), want)
}

func TestACutInsideABatchIsRefused(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, n := r.open(testSpec)
	l.Append(1, []*batch.Batch{batchAt(0, 3, 5), batchAt(3, 3, 5)})
	l.TruncateTo(2, 4)
	r.exec.Run()
	var e *NotBoundaryError
	if e, _ = n.failed[2].(*NotBoundaryError); e == nil || e.Boundary != 3 {
		t.Fatal(n.failed)
	}
	l.Append(3, []*batch.Batch{batchAt(6, 1, 1)})
	r.exec.Run()
	if n.persisted != 3 {
		t.Fatal(n.order)
	}
}

func TestAResetGoesOnAtItsBase(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, n := r.open(testSpec)
	r.fill(l, 30, 500)
	l.ResetTo(50, 1000)
	r.exec.Run()
	if base, durable, tail := l.Bounds(); n.persisted != 50 || base != 1000 || durable != 1000 || tail != 1000 {
		t.Fatal(n.order, base, tail)
	}
	list := r.fill(l, 12, 500)
	same(t, all(t, l), list)
	r.close(l)
	r = newRig(t, r.fs, nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), list)
}

// field case OPS-11
func TestAnIdleLogHoldsNoFileAndNoTimer(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, _ := r.open(testSpec)
	before := mem.OpenFiles()
	list := r.fill(l, 20, 100)
	same(t, all(t, l), list)
	if mem.OpenFiles() == before || r.exec.Timers() != 1 || r.store.Counters().AwakeLogs.Load() != 1 {
		t.Fatal(mem.OpenFiles(), r.exec.Timers())
	}
	for range 4 {
		r.exec.Advance(r.store.opts.IdleAfter)
		r.exec.Run()
	}
	if mem.OpenFiles() != before || r.exec.Timers() != 0 || r.store.Counters().AwakeLogs.Load() != 0 {
		t.Fatal(mem.OpenFiles(), r.exec.Timers())
	}
	same(t, all(t, l), list)
	list = append(list, r.fill(l, 20, 100)...)
	same(t, all(t, l), list)
	r.close(l)
	r = newRig(t, mem, nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), list)
}

// matrix M12, L3
func TestSnapshotsAreKeptAndOnesOfLostRecordsAreNot(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, func(o *Options) { o.Fsync = None })
	l, _ := r.open(testSpec)
	r.fill(l, 5, 10)
	l.Sync()
	r.exec.Run()
	for _, s := range []struct {
		name string
		asOf id.Offset
	}{{"early", 5}, {"late", 7}} {
		if s.asOf == 7 {
			r.fill(l, 2, 10)
		}
		if err := l.SaveSnapshot(s.name, s.asOf, []byte(s.name)); err != nil {
			t.Fatal(err)
		}
		if asOf, body, ok := l.Snapshot(s.name); !ok || asOf != s.asOf || string(body) != s.name {
			t.Fatal(asOf, body, ok)
		}
	}
	if err := l.SaveSnapshot("ahead", 8, nil); err == nil {
		t.Fatal("kept a snapshot of records that do not exist")
	}
	r = newRig(t, mem.CrashHard(), nil)
	l, _ = r.open(testSpec)
	if _, _, tail := l.Bounds(); tail != 5 {
		t.Fatal(tail)
	}
	r.fill(l, 9, 10) // other records, at the offsets of the lost ones
	if _, _, ok := l.Snapshot("late"); ok {
		t.Fatal("a snapshot of lost records is used")
	}
	if asOf, _, ok := l.Snapshot("early"); !ok || asOf != 5 {
		t.Fatal("a good snapshot was lost")
	}
	if _, _, ok := l.Snapshot("none"); ok {
		t.Fatal("a snapshot that was never saved")
	}
}

func TestADeletedLogIsSetAsideAndSweptLater(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	spec := testSpec
	spec.Kind = Cache
	l, _ := r.open(spec)
	r.fill(l, 10, 100)
	l.SetAside(func(err error) {
		if !is[*BusyError](err) {
			t.Error(err)
		}
	})
	r.exec.Run()
	l.Close(func(error) {})
	r.exec.Run()
	aside := false
	l.SetAside(func(err error) { aside = err == nil })
	r.exec.Run()
	if _, err := r.fs.Stat(l.Dir()); err == nil || !aside {
		t.Fatal("it is still there")
	}
	fresh, _ := r.open(spec)
	if _, _, tail := fresh.Bounds(); tail != 0 || fresh.ID() == l.ID() {
		t.Fatal("the new log shows the old one's records")
	}
	left := func(now time.Time) int {
		if err := r.store.SweepDeleted(now, time.Hour); err != nil {
			t.Fatal(err)
		}
		list, _ := r.fs.ReadDir("deleted")
		return len(list)
	}
	if now := r.exec.Now(); left(now.Add(59*time.Minute)) != 1 || left(now.Add(time.Hour)) != 0 {
		t.Fatal("swept at another time")
	}
}

func TestALogThatMustBeThereIsNotStartedAnew(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	spec := testSpec
	spec.Log = id.LogID{99}
	if _, err := r.store.Open(spec, &told{}, nil); !is[*MissingError](err) {
		t.Fatal(err)
	}
	if _, err := r.fs.Stat(spec.Dir()); err == nil {
		t.Fatal("something was made")
	}
	l, _ := r.open(testSpec)
	if _, err := r.store.Open(testSpec, &told{}, nil); !is[*BusyError](err) {
		t.Fatal(err)
	}
	l.Close(func(error) {})
	if _, err := r.store.Open(testSpec, &told{}, nil); err != ErrClosing && !strings.Contains(err.Error(), ErrClosing.Error()) {
		t.Fatal(err)
	}
	r.exec.Run()
	if _, err := r.store.Open(spec, &told{}, nil); !is[*MissingError](err) {
		t.Fatal(err)
	}
	if _, err := l.Read(context.Background(), 0, 1, 1, 1, nil); !is[*ClosedError](err) {
		t.Fatal(err)
	}
}

// matrix E21
func TestAStoreHasOneOwner(t *testing.T) {
	mem := vfs.NewMem()
	mem.Mkdir("photos")
	r := newRig(t, mem, func(o *Options) { o.Holder = "pid 7" })
	_, err := OpenStore(mem, Options{Exec: r.exec})
	if !is[*vfs.LockedError](err) || !strings.Contains(err.Error(), "pid 7") {
		t.Fatal(err)
	}
	if f := r.store.Foreign(); len(f) != 1 || f[0] != "photos" {
		t.Fatal(f)
	}
	l, _ := r.open(testSpec)
	if err := r.store.Close(); err == nil {
		t.Fatal("closed under an open log")
	}
	r.close(l)
	newRig(t, mem, nil)
}

func TestCompressionKeepsWhatReadersGet(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	spec := testSpec
	spec.Compress = true
	l, _ := r.open(spec)
	list := r.fill(l, 60, 500)
	list[0].Publisher = "" // written without one
	segs := l.segments()
	same(t, all(t, l), list) // files are open for reading
	more, err := l.CompressSealed(context.Background(), 1)
	if err != nil || !more {
		t.Fatal(more, err)
	}
	more, err = l.CompressSealed(context.Background(), 1<<30)
	if err != nil || more {
		t.Fatal(more, err)
	}
	c := r.store.Counters()
	if in, out := c.CompressedIn.Load(), c.CompressedOut.Load(); in == 0 || out > in/2 {
		t.Fatal(in, out)
	}
	if now := l.segments(); now[0].bytes >= segs[0].bytes || now[0].end != segs[0].end {
		t.Fatal(now[0], segs[0])
	}
	same(t, all(t, l), list)
	r.close(l)
	r = newRig(t, r.fs, nil)
	l, _ = r.open(spec)
	same(t, all(t, l), list)
	count := 0
	err = l.Headers(5, func(h *segment.BatchHeader, body func() ([]byte, error)) error {
		b, err := body()
		if err == nil && (!bytes.Equal(b, list[h.Base].Body) || h.RawSum != batch.Checksum(b)) {
			err = fmt.Errorf("batch %d is another one", h.Base)
		}
		count++
		return err
	})
	if err != nil || count != 55 {
		t.Fatal(count, err)
	}
	in := r.store.Counters().CompressedIn.Load()
	l.TruncateTo(1, 3) // into a compressed segment, which is written to again
	r.exec.Run()
	list = append(list[:3:3], r.fill(l, 30, 400)...)
	same(t, all(t, l), list)
	if r.store.Counters().CompressedIn.Load() != in {
		t.Fatal("compressed by itself")
	}
}

func TestOffsetForTimeFindsTheFirstBatchOfThatTime(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	list := r.fill(l, 50, 300) // each has 1000 * (offset + 1)
	for _, b := range list {
		for _, micros := range []uint64{b.AppendMicros - 999, b.AppendMicros} {
			o, ok, err := l.OffsetForTime(context.Background(), micros, 50)
			if err != nil || !ok || o != b.Base {
				t.Fatalf("time %d: %d %v %v, want %d", micros, o, ok, err, b.Base)
			}
		}
	}
	for _, c := range []struct {
		micros uint64
		end    id.Offset
		want   id.Offset
		ok     bool
	}{{0, 50, 0, true}, {50_001, 50, 0, false}, {40_000, 20, 0, false}, {20_000, 20, 19, true}, {21_000, 20, 0, false}} {
		o, ok, err := l.OffsetForTime(context.Background(), c.micros, c.end)
		if err != nil || ok != c.ok || ok && o != c.want {
			t.Fatalf("time %d below %d: %d %v %v", c.micros, c.end, o, ok, err)
		}
	}
	l.SetRetention(Retention{Bytes: 1})
	l.Retain(0, 30, 1<<30)
	base, _, _ := l.Bounds()
	if o, ok, err := l.OffsetForTime(context.Background(), 0, 50); err != nil || !ok || o != base || base == 0 {
		t.Fatal(o, ok, err)
	}
}
