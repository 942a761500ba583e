package disklog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// rig is one store on one disk, with an executor that the test steps.
type rig struct {
	t     *testing.T
	fs    vfs.FS
	exec  *diskpool.Manual
	store *Store
	ids   uint32
}

func newRig(t *testing.T, fs vfs.FS, edit func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, fs: fs, exec: diskpool.NewManual(time.Unix(1_800_000_000, 0))}
	o := Options{Exec: r.exec, SegmentBytes: 4096, IndexSpacing: 128, ReadBytes: 1024, Rand: r.id}
	if edit != nil {
		edit(&o)
	}
	s, err := OpenStore(fs, o)
	if err != nil {
		t.Fatal(err)
	}
	r.store = s
	return r
}

func (r *rig) id() (b [16]byte) {
	r.ids++
	binary.BigEndian.PutUint32(b[:], r.ids)
	return b
}

var testSpec = Spec{Kind: Stream, Tenant: "acme", Namespace: "default", Name: "orders", Incarnation: 7}

func (r *rig) open(spec Spec) (*Log, *told) {
	r.t.Helper()
	n := &told{}
	l, err := r.store.Open(spec, n, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return l, n
}

// close closes a log and its store.
func (r *rig) close(l *Log) {
	r.t.Helper()
	called, failed := false, error(nil)
	l.Close(func(err error) { called, failed = true, err })
	r.exec.Run()
	if !called || failed != nil {
		r.t.Fatalf("close: called %v, %v", called, failed)
	}
	if err := r.store.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// told is what a log reported.
type told struct {
	mu        sync.Mutex
	persisted uint64
	failed    map[uint64]error
	poisoned  []error
	order     []string
	stalled   int
	back      int
}

func (n *told) Persisted(seq uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.persisted = seq
	n.order = append(n.order, fmt.Sprint("ok ", seq))
}

func (n *told) WriteFailed(seq uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == nil {
		n.failed = map[uint64]error{}
	}
	n.failed[seq] = err
	n.order = append(n.order, fmt.Sprint("failed ", seq))
}

func (n *told) SealFailed(seq uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == nil {
		n.failed = map[uint64]error{}
	}
	n.failed[seq] = err
	n.order = append(n.order, fmt.Sprint("no seal ", seq))
}

func (n *told) Poisoned(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.poisoned = append(n.poisoned, err)
	n.order = append(n.order, "poisoned")
}

func (n *told) Stalled() { n.mu.Lock(); n.stalled++; n.mu.Unlock() }
func (n *told) Back()    { n.mu.Lock(); n.back++; n.mu.Unlock() }

func (n *told) get() (persisted uint64, poisoned int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.persisted, len(n.poisoned)
}

// batchAt makes a batch of count records of size bytes, whose content follows from its offset.
func batchAt(base id.Offset, count, size int) *batch.Batch {
	b := &batch.Batch{Base: base, Count: uint32(count), Generation: 3, Kind: batch.Records, AppendMicros: 1000 * (uint64(base) + 1)}
	for i := range count {
		b.Body = binary.BigEndian.AppendUint32(b.Body, uint32(size))
		b.Body = append(b.Body, bytes.Repeat([]byte{byte(int(base) + i)}, size)...)
	}
	b.PayloadBytes = count * size
	return b
}

// all reads everything.
func all(t *testing.T, l *Log) []*batch.Batch {
	t.Helper()
	from, _, tail := l.Bounds()
	var list []*batch.Batch
	for from < tail {
		page, err := l.Read(context.Background(), from, tail, 3, 400, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			t.Fatalf("an empty page at %d below %d", from, tail)
		}
		list = append(list, page...)
		from = page[len(page)-1].End()
	}
	return list
}

// same compares what was read with what was written.
func same(t *testing.T, have, want []*batch.Batch) {
	t.Helper()
	if len(have) != len(want) {
		t.Fatalf("%d batches, want %d", len(have), len(want))
	}
	for i, w := range want {
		h := have[i]
		if h.Base != w.Base || h.Count != w.Count || h.Generation != w.Generation || h.Kind != w.Kind || h.AppendMicros != w.AppendMicros ||
			h.ProducerID != w.ProducerID || h.Sequence != w.Sequence || h.Publisher != w.Publisher || h.PayloadBytes != w.PayloadBytes ||
			!bytes.Equal(h.Body, w.Body) || !h.Summed || h.Sum != batch.Checksum(w.Body) {
			t.Fatalf("batch %d: have %+v, want %+v", i, h, w)
		}
	}
}

func is[T error](err error) bool {
	var e T
	return errors.As(err, &e)
}
