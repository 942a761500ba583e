package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// The tests' log: one directory, the root of a disk in memory.
const testKeyHash, testIncarnation = 0x0d3aed4b998d2798, id.Incarnation(7)

func testMeta() Meta {
	return Meta{Log: id.LogID{1, 2, 3}, Incarnation: testIncarnation, Generation: 1, NameHash: NameHash(testKeyHash, Stream), Kind: Stream, CreatedMicros: 5}
}

// promised is what somebody was told about one batch.
type promised struct {
	base id.Offset
	end  id.Offset
	sum  uint32
}

// writer writes a log as its doc asks for (see Mark), and knows what it has acknowledged. A test looks at its disk at any moment.
type writer struct {
	t    testing.TB
	disk vfs.FS
	rnd  *rand.Rand
	meta Meta
	salt Salt
	m    Mark

	f       vfs.File // the active segment
	h       Header
	got     Scanned // of the active segment, as written
	index   Index
	written []promised // batches of the log, acknowledged or not
	acked   []promised
	ever    []promised // what was written at any time, and what a cut took away again
	micros  uint64
	forget  func(from uint64) // told of cuts, if not nil
}

func newWriter(t testing.TB, disk vfs.FS, seed uint64) *writer {
	w := &writer{t: t, disk: disk, rnd: rand.New(rand.NewPCG(seed, 1)), meta: testMeta(), micros: 1000}
	w.salt = SaltOf(w.meta.Log)
	return w
}

func (w *writer) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// small writes a small file whole, by way of a temporary one.
func (w *writer) small(name string, data []byte) {
	f, err := w.disk.Create(name + TempSuffix)
	w.do(err)
	w.put(f, data, 0)
	w.do(f.Sync())
	w.do(f.Close())
	w.do(w.disk.Rename(name+TempSuffix, name))
	w.do(w.disk.SyncDir("."))
}

func (w *writer) put(f vfs.File, data []byte, at int64) {
	_, err := f.WriteAt(data, at)
	w.do(err)
}

// create makes the log.
func (w *writer) create(base id.Offset) {
	w.small(MetaName, AppendMeta(nil, &w.meta))
	w.segment(0, base)
	f, err := w.disk.Create(MarkName)
	w.do(err)
	w.do(f.Close())
	w.m = Mark{Segment: 0, Synced: HeaderSize, Base: base, Summed: true, Sum: w.got.FileSum}
	w.mark(true)
	w.do(w.disk.SyncDir("."))
}

// segment makes the next active segment.
func (w *writer) segment(segmentID uint64, base id.Offset) {
	w.h = Header{Log: w.meta.Log, NameHash: w.meta.NameHash, Base: base, CreatedMicros: 1, ID: segmentID}
	f, err := w.disk.Create(FileName(segmentID))
	w.do(err)
	head := AppendHeader(nil, &w.h)
	w.put(f, head, 0)
	w.do(f.Sync())
	w.do(w.disk.SyncDir("."))
	w.f, w.got, w.index = f, Scanned{End: HeaderSize, Next: base, FileSum: Sum(head)}, Index{ID: segmentID, Base: base}
}

// mark writes durable.mark.
func (w *writer) mark(sync bool) {
	f, err := w.disk.Open(MarkName, true)
	w.do(err)
	w.put(f, AppendMark(nil, w.salt, &w.m), 0)
	if sync {
		w.do(f.Sync())
	}
	w.do(f.Close())
}

// append writes one batch, without syncing it.
func (w *writer) append(size int) {
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(w.rnd.Uint32())
	}
	w.micros += uint64(w.rnd.IntN(10))
	b := batch.Batch{Base: w.got.Next, Count: 1 + w.rnd.Uint32N(3), Kind: batch.Records, Generation: 1, AppendMicros: w.micros, Body: body}
	if w.rnd.IntN(4) == 0 {
		b.Publisher = "somebody"
	}
	w.write(&b)
}

func (w *writer) write(b *batch.Batch) {
	h := Describe(b, Sum(b.Body))
	data := append(append(AppendBatchHeader(nil, w.salt, &h), b.Publisher...), b.Body...)
	w.written = append(w.written, promised{b.Base, b.End(), h.RawSum})
	w.ever = append(w.ever, w.written[len(w.written)-1])
	w.put(w.f, data, w.got.End)
	w.index.Note(w.got.End, &h, 0)
	w.got.take(&h, Extend(w.got.FileSum, data))
}

// commit syncs what was appended, moves the mark, and acknowledges.
func (w *writer) commit() {
	w.do(w.f.Sync())
	w.m.Segment, w.m.Synced, w.m.Base, w.m.Sum = w.h.ID, w.got.End, w.h.Base, w.got.FileSum
	w.mark(false)
	w.acked = slices.Clone(w.written)
}

// seal ends the active segment.
func (w *writer) seal() {
	w.commit()
	f := Footer{Length: w.got.End, FileSum: w.got.FileSum, Batches: w.got.Batches, End: w.got.Next, MinMicros: w.got.MinMicros, MaxMicros: w.got.MaxMicros, ID: w.h.ID}
	foot := AppendFooter(nil, w.salt, &f)
	w.put(w.f, foot, w.got.End)
	w.do(w.f.Sync())
	w.m.Synced, w.m.Sum = w.m.Synced+FooterSize, Extend(w.m.Sum, foot)
	w.mark(false)
	x, err := w.disk.Create(IndexName(w.h.ID))
	if errors.Is(err, fs.ErrExist) {
		x, err = w.disk.Open(IndexName(w.h.ID), true)
	}
	w.do(err)
	w.do(x.Truncate(0))
	w.put(x, AppendIndex(nil, w.salt, &w.index), 0)
	w.do(x.Close())
	w.do(w.f.Close())
}

// roll seals the active segment and makes the next one.
func (w *writer) roll() {
	w.seal()
	w.segment(w.h.ID+1, w.got.Next)
	w.m.Segment, w.m.Synced, w.m.Base, w.m.Sum = w.h.ID, HeaderSize, w.h.Base, w.got.FileSum
	w.mark(true)
}

// remove unlinks a segment, and then its index.
func (w *writer) remove(segmentID uint64) {
	w.do(w.disk.Remove(FileName(segmentID)))
	w.do(w.disk.SyncDir("."))
	if err := w.disk.Remove(IndexName(segmentID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
}

// retain lets the oldest segments go, up to one.
func (w *writer) retain(first uint64) {
	base := w.baseOf(first)
	w.acked = slices.DeleteFunc(w.acked, func(p promised) bool { return p.base < base })
	w.written = slices.DeleteFunc(w.written, func(p promised) bool { return p.base < base })
	was := w.m.Oldest
	w.m.Oldest = first
	w.mark(true)
	for k := was; k < first; k++ {
		w.remove(k)
	}
}

func (w *writer) baseOf(segmentID uint64) id.Offset {
	f, err := w.disk.Open(FileName(segmentID), false)
	w.do(err)
	b := make([]byte, HeaderSize)
	_, err = f.ReadAt(b, 0)
	w.do(err)
	w.do(f.Close())
	h, err := DecodeHeader(b)
	w.do(err)
	return h.Base
}

// truncate cuts the log at the first batch of a segment that is before the active one, or is it.
func (w *writer) truncate(segmentID uint64, batches int) {
	if w.forget != nil {
		w.forget(segmentID)
	}
	w.do(w.f.Sync())
	w.do(w.f.Close())
	f, err := w.disk.Open(FileName(segmentID), true)
	w.do(err)
	h := Header{Log: w.meta.Log, NameHash: w.meta.NameHash, Base: w.baseOf(segmentID), CreatedMicros: 1, ID: segmentID}
	size, err := f.Size()
	w.do(err)
	enough := errors.New("enough")
	index := Index{ID: segmentID, Base: h.Base}
	got, err := Scan(f, size, &h, func(position int64, b *BatchHeader) error {
		if batches--; batches < 0 {
			return enough
		}
		index.Note(position, b, 0)
		return nil
	})
	if err != nil && err != enough {
		w.t.Fatal(err)
	}
	got.Sealed = false
	cut := func(p promised) bool { return p.base >= got.Next }
	w.acked, w.written = slices.DeleteFunc(w.acked, cut), slices.DeleteFunc(w.written, cut)
	w.m.Segment, w.m.Synced, w.m.Base, w.m.Sum = segmentID, got.End, h.Base, got.FileSum
	w.mark(true)
	for k := w.h.ID; k > segmentID; k-- {
		w.remove(k)
	}
	w.do(f.Truncate(got.End))
	w.do(f.Sync())
	w.f, w.h, w.got, w.index = f, h, got, index
}

// resetTo throws everything away and begins at an offset.
func (w *writer) resetTo(base id.Offset) {
	w.do(w.f.Close())
	w.acked, w.written = nil, nil
	oldest, next := w.m.Oldest, w.h.ID+1
	w.m = Mark{Segment: next, Synced: HeaderSize, Oldest: next, Base: base, Reset: true}
	w.mark(true)
	for k := w.h.ID + 1; k > oldest; k-- {
		w.remove(k - 1)
	}
	w.segment(next, base)
	w.m.Reset, w.m.Summed, w.m.Sum = false, true, w.got.FileSum
	w.mark(true)
}

// step does one thing that a writer does.
func (w *writer) step() {
	switch n := w.rnd.IntN(20); {
	case n < 9:
		w.append(w.rnd.IntN(3000))
	case n < 15:
		w.commit()
	case n < 17:
		w.roll()
	case n < 18 && w.m.Oldest < w.h.ID:
		w.retain(w.m.Oldest + 1 + w.rnd.Uint64N(w.h.ID-w.m.Oldest))
	case n < 19:
		w.truncate(w.m.Oldest+w.rnd.Uint64N(w.h.ID-w.m.Oldest+1), w.rnd.IntN(4))
	case w.rnd.IntN(4) == 0:
		w.resetTo(w.got.Next.Add(10))
	}
}

// input is what a plan is made of, from a disk.
func (w *writer) input(disk vfs.FS) *PlanInput {
	names, err := disk.ReadDir(".")
	w.do(err)
	in := &PlanInput{Shard: "shard", Log: w.meta.Log, NameHash: w.meta.NameHash, Incarnation: w.meta.Incarnation, Kind: w.meta.Kind,
		Open: func(name string) (Reader, error) { return disk.Open(name, false) }}
	for _, e := range names {
		in.Entries = append(in.Entries, Entry{e.Name, e.Size, e.Kind == vfs.Regular})
	}
	return in
}

// apply carries a plan out.
func (w *writer) apply(disk vfs.FS, p *Plan) {
	on := &writer{t: w.t, disk: disk, meta: w.meta, salt: w.salt}
	if f, err := disk.Open(MarkName, true); err == nil {
		w.do(f.Sync())
		w.do(f.Close())
	} else if !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	w.do(disk.SyncDir("."))
	for _, name := range p.Delete {
		w.do(disk.Remove(name))
		w.do(disk.SyncDir("."))
	}
	if n := len(p.Segments); n > 0 {
		last := p.Segments[n-1]
		f, err := disk.Open(last.Name, true)
		w.do(err)
		if p.Cut != nil {
			w.do(f.Truncate(p.Cut.Size))
		}
		w.do(f.Sync())
		w.do(f.Close())
		on.m = Mark{Segment: last.ID, Synced: last.Size, Oldest: p.Segments[0].ID, Base: last.Base}
	}
	if p.Create != nil {
		on.segment(p.Create.ID, p.Create.Base)
		on.m.Segment, on.m.Synced, on.m.Base = p.Create.ID, HeaderSize, p.Create.Base
		if len(p.Segments) == 0 {
			on.m.Oldest = p.Create.ID
		}
	}
	if f, err := disk.Create(MarkName); err == nil {
		w.do(f.Close())
	} else if !errors.Is(err, fs.ErrExist) {
		w.t.Fatal(err)
	}
	f, err := disk.Open(MarkName, true)
	w.do(err)
	w.do(f.Truncate(MarkSize))
	w.do(f.Close())
	on.mark(true)
	w.do(disk.SyncDir("."))
}

// notWhole begins what lost says of a log that breaks while it is read.
const notWhole = "the opened log is not whole"

// lost compares what a disk holds after its plan was carried out with what was promised. It says what is wrong, or "".
func (w *writer) lost(disk vfs.FS, p *Plan, acked, written []promised) string {
	var held []promised
	next := p.Base
	for _, f := range p.Segments {
		file, err := disk.Open(f.Name, false)
		w.do(err)
		size, err := file.Size()
		w.do(err)
		got, err := Scan(file, size, &f.Header, func(_ int64, b *BatchHeader) error {
			held = append(held, promised{b.Base, b.End(), b.RawSum})
			return nil
		})
		w.do(file.Close())
		switch {
		case err != nil:
			return fmt.Sprintf("%s: %v", notWhole, err)
		case f.Base != next || got.Next != f.End || got.Size() != f.Size || got.FileSum != f.FileSum || got.Batches != f.Batches || got.Sealed != f.Sealed:
			return fmt.Sprintf("segment %d is %+v, and the plan says %+v", f.ID, got, f)
		}
		next = got.Next
	}
	if next != p.Next && len(p.Segments) > 0 {
		return fmt.Sprintf("the log ends at %d, and the plan says %d", next, p.Next)
	}
	for _, a := range acked {
		if !slices.Contains(held, a) {
			return fmt.Sprintf("the record at %d was acknowledged and is not there; the log holds [%d, %d)", a.base, p.Base, p.Next)
		}
	}
	for _, h := range held {
		if !slices.Contains(written, h) {
			return fmt.Sprintf("the record at %d was never written", h.base)
		}
	}
	return ""
}

// rounds is how many lives of a log a test looks at.
func rounds(short, full uint64) uint64 {
	switch {
	case effort.Full():
		return full
	case testing.Short():
		return max(short/4, 1)
	}
	return short
}
