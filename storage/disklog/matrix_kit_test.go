package disklog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// process is a store as one process has it, on a disk whose calls can be made to fail.
type process struct {
	t     testing.TB
	fault *vfs.Fault
	exec  *diskpool.Manual
	store *disklog.Store
}

// orders is the log that most tests write.
func orders() disklog.Spec {
	return disklog.Spec{Kind: disklog.Stream, Tenant: "acme", Namespace: "default", Name: "orders", Incarnation: 7}
}

// boot starts a process over a disk. Segments are small, so that there are many.
func boot(t testing.TB, disk vfs.FS, edit ...func(*disklog.Options)) *process {
	t.Helper()
	p := &process{t: t, fault: vfs.NewFault(disk, nil), exec: diskpool.NewManual(time.Unix(1_800_000_000, 0))}
	ids := byte(0)
	o := disklog.Options{
		Exec: p.exec, SegmentBytes: 4096, IndexSpacing: 256, ReadBytes: 2048,
		Rand: func() (b [16]byte) { ids++; b[0], b[15] = 0xaa, ids; return b },
	}
	for _, f := range edit {
		f(&o)
	}
	var err error
	if p.store, err = disklog.OpenStore(p.fault, o); err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens a log that must open.
func (p *process) open(spec disklog.Spec) (*disklog.Log, *report) {
	p.t.Helper()
	n := &report{failed: map[uint64]error{}}
	l, err := p.store.Open(spec, n, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return l, n
}

// stop ends the process in good order.
func (p *process) stop(logs ...*disklog.Log) {
	p.t.Helper()
	for _, l := range logs {
		closed := errors.New("the log was not closed")
		l.Close(func(err error) { closed = err })
		p.exec.Run()
		if closed != nil {
			p.t.Fatal(closed)
		}
	}
	if err := p.store.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// rest lets a log go idle.
func (p *process) rest() {
	for range 4 {
		p.exec.Advance(10 * time.Second)
		p.exec.Run()
	}
}

// report is what a log reported.
type report struct {
	persisted uint64
	failed    map[uint64]error
	poisoned  []error
}

func (n *report) Persisted(seq uint64)              { n.persisted = seq }
func (n *report) WriteFailed(seq uint64, err error) { n.failed[seq] = err }
func (n *report) SealFailed(seq uint64, err error)  { n.failed[seq] = err }
func (n *report) Poisoned(err error)                { n.poisoned = append(n.poisoned, err) }
func (n *report) Stalled()                          {}
func (n *report) Back()                             {}

// made is a batch of one record of so many bytes, whose content follows from its offset and a salt.
func made(base id.Offset, size int, salt byte) *batch.Batch {
	b := &batch.Batch{Base: base, Count: 1, Generation: 3, Kind: batch.Records, AppendMicros: 1000 * (uint64(base) + 1)}
	b.Body = binary.BigEndian.AppendUint32(nil, uint32(size))
	for i := range size {
		b.Body = append(b.Body, byte(uint64(base)*31)^byte(i*7)^salt)
	}
	b.PayloadBytes = size
	return b
}

// write appends batches of these sizes, one append each, and runs what there is to do.
func (p *process) write(l *disklog.Log, sizes ...int) (list []*batch.Batch) {
	list = p.queue(l, sizes...)
	p.exec.Run()
	return list
}

// queue is write without doing anything.
func (p *process) queue(l *disklog.Log, sizes ...int) (list []*batch.Batch) {
	_, _, next := l.Bounds()
	for _, size := range sizes {
		b := made(next, size, 0)
		l.Append(uint64(next)+1, []*batch.Batch{b})
		list = append(list, b)
		next = b.End()
	}
	return list
}

// repeat is n times a size.
func repeat(n, size int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = size
	}
	return s
}

// everything reads a whole log.
func everything(l *disklog.Log) (list []*batch.Batch, err error) {
	from, _, tail := l.Bounds()
	for from < tail {
		page, err := l.Read(context.Background(), from, tail, 7, 4096, nil)
		if err != nil {
			return list, err
		}
		if len(page) == 0 {
			return list, fmt.Errorf("an empty page at %d, and the log ends at %d", from, tail)
		}
		list = append(list, page...)
		from = page[len(page)-1].End()
	}
	return list, nil
}

// differ says how what was read differs from what was written; "" if it does not.
func differ(have, want []*batch.Batch) string {
	for i, w := range want {
		if i >= len(have) {
			return fmt.Sprintf("%d of %d batches", len(have), len(want))
		}
		if h := have[i]; h.Base != w.Base || h.Count != w.Count || h.Kind != w.Kind || h.AppendMicros != w.AppendMicros || !bytes.Equal(h.Body, w.Body) {
			return fmt.Sprintf("the batch at %d is another one, at %d, of %d bytes", w.Base, h.Base, len(h.Body))
		}
	}
	if len(have) > len(want) {
		return fmt.Sprintf("%d batches more than were written, from %d on", len(have)-len(want), have[len(want)].Base)
	}
	return ""
}

// holds fails the test if a log does not hold exactly that.
func holds(t testing.TB, l *disklog.Log, want []*batch.Batch) {
	t.Helper()
	have, err := everything(l)
	if err != nil {
		t.Fatal(err)
	}
	if why := differ(have, want); why != "" {
		t.Fatal(why)
	}
}

// reopened starts a process on a disk, and the log must hold that, twice, and take the next append where it ends.
func reopened(t testing.TB, disk *vfs.Mem, want []*batch.Batch, edit ...func(*disklog.Options)) {
	t.Helper()
	p := boot(t, disk, edit...)
	l, n := p.open(orders())
	holds(t, l, want)
	more := p.write(l, 10)
	if n.persisted != uint64(more[0].Base)+1 {
		t.Fatalf("an append after the restart: %+v", n)
	}
	p.stop(l)
	p = boot(t, disk, edit...)
	l, _ = p.open(orders())
	holds(t, l, append(want[:len(want):len(want)], more...))
	p.stop(l)
}

// load and store read and replace a file.
func load(t testing.TB, disk vfs.FS, name string) []byte {
	t.Helper()
	f, err := disk.Open(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		t.Fatal(err)
	}
	return b
}

func store(t testing.TB, disk vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := disk.Create(name)
	if err != nil {
		if f, err = disk.Open(name, true); err != nil {
			t.Fatal(err)
		}
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// files are the names in a directory, sorted.
func files(t testing.TB, disk vfs.FS, dir string) (names []string) {
	t.Helper()
	list, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Kind == vfs.Regular {
			names = append(names, e.Name)
		}
	}
	return names
}
