package disklog

import (
	"context"
	"errors"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// flip changes one byte of a file.
func (r *rig) flip(name string, at int64) {
	r.t.Helper()
	f, err := r.fs.Open(name, true)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		r.t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, at); err != nil {
		r.t.Fatal(err)
	}
}

// field case DUR-03; matrix B16
func TestDamageInASealedSegmentIsRefusedAtOpenAndNamedByAReader(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	list := r.fill(l, 30, 500)
	second := l.segments()[1]
	name := l.path(segment.FileName(second.id))
	at := int64(segment.HeaderSize + segment.BatchHeaderSize + 100)
	r.flip(name, at)
	_, err := l.Read(context.Background(), second.base, 30, 5, 1<<20, nil)
	var c *CorruptionError
	if !errors.As(err, &c) || c.Segment != second.id || c.Position != segment.HeaderSize || c.Kind != segment.BatchChecksum || c.Expected == c.Found {
		t.Fatalf("%+v", err)
	}
	page, err := l.Read(context.Background(), 0, 30, 99, 1<<20, nil) // up to the damage
	if err != nil || len(page) != int(second.base) {
		t.Fatal("the rest of the log cannot be read:", err)
	}
	if n := r.store.Counters().ReadsCorrupt.Load(); n != 2 { // the page before ended there
		t.Fatal(n)
	}
	r.close(l)
	r = newRig(t, r.fs, nil)
	_, err = r.store.Open(testSpec, &told{}, nil)
	if !errors.As(err, &c) || c.Segment != second.id {
		t.Fatal(err)
	}
	if err := r.store.Close(); err != nil { // a refusal holds nothing
		t.Fatal(err)
	}
	r = newRig(t, r.fs, func(o *Options) { o.Verify = VerifyLazy })
	l, _ = r.open(testSpec)
	r.close(l)
	r = newRig(t, r.fs, nil)
	r.flip(name, at) // as it was
	l, _ = r.open(testSpec)
	same(t, all(t, l), list)
}

// matrix C5
func TestAnIndexIsNeverTrusted(t *testing.T) {
	for what, spoil := range map[string]func(r *rig, l *Log, index string){
		"missing": func(r *rig, l *Log, index string) { r.fs.Remove(index) },
		"damaged": func(r *rig, l *Log, index string) { r.flip(index, 60) },
		"torn": func(r *rig, l *Log, index string) {
			f, _ := r.fs.Open(index, true)
			f.Truncate(70)
			f.Close()
		},
		"wrong, with a checksum that fits": func(r *rig, l *Log, index string) {
			m := l.segments()[0]
			x := segment.Index{ID: m.id, Base: m.base, Entries: []segment.IndexEntry{{Offset: m.base, Position: 64}, {Offset: 1, Position: 200},
				{Offset: 2, Position: 300}}}
			f, _ := r.fs.Open(index, true)
			b := segment.AppendIndex(nil, l.spec.salt, &x)
			f.Truncate(int64(len(b)))
			f.WriteAt(b, 0)
			f.Close()
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, vfs.NewMem(), nil)
			l, _ := r.open(testSpec)
			list := r.fill(l, 12, 500)
			spoil(r, l, l.path(segment.IndexName(0)))
			for _, b := range list {
				page, err := l.Read(context.Background(), b.Base, 12, 1, 1, nil)
				if err != nil {
					t.Fatal(err)
				}
				same(t, page, []*batch.Batch{b})
			}
		})
	}
}

// matrix C10
func TestOpenSegmentsAreBoundedAndNoneIsClosedUnderARead(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, func(o *Options) { o.OpenSealed = 2 })
	l, _ := r.open(testSpec)
	list := r.fill(l, 60, 500)
	before := mem.OpenFiles()
	held, err := r.store.files.acquire(l, 0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, all(t, l), list)
	if open := mem.OpenFiles() - before; open > 3 { // two, and the one in use
		t.Fatalf("%d files are open for readers", open)
	}
	if _, err := held.file.ReadAt(make([]byte, 1), 0); err != nil {
		t.Fatal("a file was closed under its reader:", err)
	}
	r.store.files.release(held)
	if open := mem.OpenFiles() - before; open > 2 {
		t.Fatalf("%d files are open for readers", open)
	}
}

// matrix A25
func TestAPageHoldsWholeBatchesWithinItsBounds(t *testing.T) {
	r := newRig(t, vfs.NewMem(), func(o *Options) { o.SegmentBytes = 1 << 20 })
	l, _ := r.open(testSpec)
	var list []*batch.Batch
	for _, size := range []int{10, 10, 5000, 10, 70_000, 10, 10} { // some larger than a read, one written from its own bytes
		_, _, next := l.Bounds()
		b := batchAt(next, 2, size)
		list = append(list, b)
		l.Append(uint64(len(list)), []*batch.Batch{b})
		r.exec.Run()
	}
	_, _, tail := l.Bounds()
	read := func(from, end id.Offset, batches, bytes int) []*batch.Batch {
		page, err := l.Read(context.Background(), from, end, batches, bytes, nil)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	same(t, read(0, tail, 100, 1<<30), list)
	same(t, read(0, tail, 2, 1<<30), list[:2])
	same(t, read(0, tail, 0, 0), list[:1])
	same(t, read(5, tail, 9, 100), list[2:3]) // alone above the bound
	same(t, read(3, 6, 9, 1<<30), list[1:3])
	same(t, read(3, 5, 9, 1<<30), list[1:2]) // not the one that reaches past the end
	same(t, read(4, 5, 9, 1<<30), nil)
	same(t, read(tail, tail+5, 9, 1<<30), nil)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Read(canceled, 0, tail, 1, 1, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// matrix A24
func TestALargeAppendGetsASegmentOfItsOwn(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	list := r.fill(l, 2, 100)
	list = append(list, r.fill(l, 1, 40_000)...)
	list = append(list, r.fill(l, 2, 100)...)
	same(t, all(t, l), list)
	if n := len(l.segments()); n != 3 {
		t.Fatalf("%d segments", n)
	}
	r.close(l)
	r = newRig(t, r.fs, nil)
	l, _ = r.open(testSpec)
	same(t, all(t, l), list)
}

// matrix M7
func TestAGenerationIsThereAfterItWasReported(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	l, n := r.open(testSpec)
	l.SaveGeneration(1, 8)
	l.Append(2, []*batch.Batch{batchAt(0, 1, 1)})
	r.exec.Run()
	if n.persisted != 2 || l.Generation() != 8 {
		t.Fatal(n.order)
	}
	r = newRig(t, mem.CrashHard(), nil)
	l, _ = r.open(testSpec)
	if l.Generation() != 8 {
		t.Fatal(l.Generation())
	}
	r.close(l)
	r.flip(testSpec.Dir()+"/replica", 9)
	r = newRig(t, r.fs, nil)
	if _, err := r.store.Open(testSpec, &told{}, nil); !is[*CorruptionError](err) {
		t.Fatal("opened with promises that cannot be read:", err)
	}
}

func TestAnAppendThatDoesNotContinueTheLogIsABrokenInvariant(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	defer func() {
		if recover() == nil {
			t.Fatal("taken")
		}
	}()
	l.Append(1, []*batch.Batch{batchAt(5, 1, 1)})
}
