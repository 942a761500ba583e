package disklog_test

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// heard is told of persisted appends.
type heard struct {
	mu   sync.Mutex
	done uint64
	came *sync.Cond
	bad  error
}

func newHeard() *heard {
	h := &heard{}
	h.came = sync.NewCond(&h.mu)
	return h
}

func (h *heard) Persisted(seq uint64) {
	h.mu.Lock()
	h.done = seq
	h.mu.Unlock()
	h.came.Broadcast()
}
func (h *heard) WriteFailed(_ uint64, err error) { h.fail(err) }
func (h *heard) SealFailed(_ uint64, err error)  { h.fail(err) }
func (h *heard) Poisoned(err error)              { h.fail(err) }
func (h *heard) Stalled()                        {}
func (h *heard) Back()                           {}

func (h *heard) fail(err error) {
	h.mu.Lock()
	h.bad = err
	h.mu.Unlock()
	h.came.Broadcast()
}

// wait returns when everything up to seq is persisted.
func (h *heard) wait(b *testing.B, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.done < seq && h.bad == nil {
		h.came.Wait()
	}
	if h.bad != nil {
		b.Fatal(h.bad)
	}
}

// onDisk is a log in a folder of the test, on a real disk.
func onDisk(b *testing.B, change func(*disklog.Options)) (*disklog.Log, *heard, vfs.FS) {
	b.Helper()
	fs, err := vfs.NewOS(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	pool := diskpool.New(diskpool.Options{})
	o := disklog.Options{Preallocate: true, Exec: pool}
	change(&o)
	store, err := disklog.OpenStore(fs, o)
	if err != nil {
		b.Fatal(err)
	}
	h := newHeard()
	l, err := store.Open(disklog.Spec{Kind: disklog.Stream, Tenant: "t", Namespace: "n", Name: "s", Incarnation: 1, Generation: 1}, h, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		closed := make(chan error, 1)
		l.Close(func(err error) { closed <- err })
		if err := <-closed; err != nil {
			b.Error(err)
		}
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return l, h, fs
}

// one is a batch of one record of n bytes.
func one(base id.Offset, n int) *batch.Batch {
	body := make([]byte, 4+n)
	binary.BigEndian.PutUint32(body, uint32(n))
	_, _ = rand.Read(body[4:])
	return &batch.Batch{Base: base, Count: 1, Generation: 1, Kind: batch.Records, AppendMicros: 1, Body: body, PayloadBytes: n}
}

func p50(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// What a lone record of 256 bytes costs until it is on the device, beside a plain write and fdatasync of as many bytes, in turns.
func BenchmarkLoneAppendBesideBareWriteAndSync(b *testing.B) {
	l, h, fs := onDisk(b, func(*disklog.Options) {})
	bare, err := fs.Create("bare")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = bare.Close() }()
	if err := bare.Preallocate(1 << 20); err != nil {
		b.Fatal(err)
	}
	var plain, ours []time.Duration
	stored := make([]byte, 72+4+256)
	at := int64(0)
	var seq uint64
	for b.Loop() {
		began := time.Now()
		if _, err := bare.WriteAt(stored, at); err != nil {
			b.Fatal(err)
		}
		if err := bare.Sync(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(began))
		at += int64(len(stored))
		record := one(id.Offset(seq), 256)
		seq++
		began = time.Now()
		l.Append(seq, []*batch.Batch{record})
		h.wait(b, seq)
		ours = append(ours, time.Since(began))
	}
	b.ReportMetric(float64(p50(plain).Microseconds()), "bare-p50-us")
	b.ReportMetric(float64(p50(ours).Microseconds()), "ours-p50-us")
	b.ReportMetric(float64(p50(ours))/float64(p50(plain)), "ratio")
}

// The rate of 4 KiB records from 64 writers with syncs every 250 ms, beside one that writes the same bytes and syncs as often.
func BenchmarkPeriodicBesideABareWriter(b *testing.B) {
	const writers, size, stretch = 64, 4096, 2 * time.Second
	l, h, fs := onDisk(b, func(o *disklog.Options) { o.Fsync = disklog.Periodic })
	var ratios []float64
	var ours, plain float64
	var seq, offset uint64
	for b.Loop() {
		plain = bareRate(b, fs, 72+4+size, stretch)
		record := one(0, size)
		began, bytes := time.Now(), 0
		for time.Since(began) < stretch {
			var group []*batch.Batch
			for range writers {
				next := *record
				next.Base = id.Offset(offset)
				offset++
				group = append(group, &next)
			}
			seq++
			l.Append(seq, group)
			bytes += writers * (72 + 4 + size)
			if seq > 4 {
				h.wait(b, seq-4)
			}
		}
		h.wait(b, seq)
		ours = float64(bytes) / time.Since(began).Seconds()
		ratios = append(ratios, ours/plain)
	}
	slices.Sort(ratios)
	b.ReportMetric(ours/1e6, "ours-MB/s")
	b.ReportMetric(plain/1e6, "bare-MB/s")
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
}

// bareRate writes groups of 64 and syncs every 250 ms, from one goroutine, and removes the file.
func bareRate(b *testing.B, fs vfs.FS, size int, stretch time.Duration) float64 {
	f, err := fs.Create("bare")
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = f.Close()
		if err := fs.Remove("bare"); err != nil {
			b.Fatal(err)
		}
	}()
	group := make([]byte, 64*size)
	began, synced, at := time.Now(), time.Now(), int64(0)
	for time.Since(began) < stretch {
		if _, err := f.WriteAt(group, at); err != nil {
			b.Fatal(err)
		}
		at += int64(len(group))
		if time.Since(synced) > 250*time.Millisecond {
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			synced = time.Now()
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return float64(at) / time.Since(began).Seconds()
}
