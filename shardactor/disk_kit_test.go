package shardactor

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// eventLog keeps the names of events.
type eventLog struct {
	mu    sync.Mutex
	names []string
}

func (l *eventLog) Emit(e actors.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, e.EventName())
}

func (l *eventLog) count(name string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.names {
		if x == name {
			n++
		}
	}
	return n
}

// poolClock makes a manual clock one of a pool.
type poolClock struct{ *actors.ManualClock }

func (c poolClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return c.ManualClock.AfterFunc(d, f).Stop
}

// diskWorld is a world with durable streams, on a disk in memory whose calls can be made to fail.
type diskWorld struct {
	*world
	mem   *vfs.Mem
	fault *vfs.Fault
	pool  *diskpool.Pool
	store *disklog.Store
	disks *Disks
	logs  chan id.LogID
	ready chan struct{}
	bad   chan error
	stop  func()
}

// diskSetup is what a test may change.
type diskSetup struct {
	store disklog.Options
	disk  DiskOptions
	host  HostOptions
	fs    vfs.FS // nil: the disk in memory
	// stalls lets a job that was under way while the clock was moved on be one that stalls. Else none does: what runs beside a test must
	// not depend on whether it was done before the test moved the clock.
	stalls bool
}

// patient is an executor whose jobs never stall.
type patient struct{ *diskpool.Pool }

func (p patient) Go(j diskpool.Job) {
	j.Stalled, j.Back = nil, nil
	p.Pool.Go(j)
}

func newDiskWorld(t testing.TB, mem *vfs.Mem, change ...func(*diskSetup)) *diskWorld {
	t.Helper()
	return newDiskWorldOver(t, mem, newWorldWith, change...)
}

// newDiskWorldOver is a disk world of a world that is made by build.
func newDiskWorldOver(t testing.TB, mem *vfs.Mem, build func(testing.TB, func(*world, *HostOptions)) *world, change ...func(*diskSetup)) *diskWorld {
	t.Helper()
	d := &diskWorld{mem: mem, logs: make(chan id.LogID, 64), ready: make(chan struct{}), bad: make(chan error, 16)}
	d.fault = vfs.NewFault(mem, func(time.Duration) {})
	d.world = build(t, func(w *world, o *HostOptions) {
		d.pool = diskpool.New(diskpool.Options{Clock: poolClock{w.clock}})
		x := diskSetup{
			store: disklog.Options{Exec: d.pool, SegmentBytes: 16 << 10, Slots: diskpool.NewReadSlots(8)},
			disk: DiskOptions{
				StateBytes: 1 << 20, RetentionInterval: time.Minute, KeepDeleted: 24 * time.Hour, OnDamaged: func(err error) { d.bad <- err },
				CacheBase: func() id.Offset { return 0 }, // easier to read than the clock, where caches begin
				LogOpened: func(_ route.Name, _ id.Incarnation, _ uint32, log id.LogID) { d.logs <- log }, Ready: func() { close(d.ready) },
			},
			host: *o,
		}
		for _, f := range change {
			f(&x)
		}
		if !x.stalls {
			x.store.Exec = patient{d.pool}
		}
		var err error
		if x.fs == nil {
			x.fs = d.fault
		}
		if d.store, err = disklog.OpenStore(x.fs, x.store); err != nil {
			t.Fatal(err)
		}
		x.disk.Store, x.disk.Exec = d.store, d.pool
		d.disks = NewDisks(x.disk)
		x.host.Metrics.RegisterDisks(prometheus.NewRegistry(), d.disks)
		x.host.Disks = d.disks
		*o = x.host
		t.Cleanup(func() { d.stop() })
	})
	var once sync.Once
	d.stop = func() { once.Do(func() { d.close(t) }) }
	return d
}

// stall waits until one job is under way, and lets that one stall: if the clock were moved on until it is seen that the job stalls, others that come
// meanwhile, such as those of logs that go to rest, might as well.
func (d *diskWorld) stall() {
	d.t.Helper()
	d.await("one job is under way", func() bool {
		n := 0
		for _, c := range d.pool.Stats().Jobs {
			n += c.Running + c.Queued
		}
		return n == 1
	})
	d.clock.Advance(diskpool.StallAfter)
}

// close is the end of a process that is stopped in good order.
func (d *diskWorld) close(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d.fault.Set(nil)
	if err := d.sys.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := d.disks.Closed(ctx); err != nil {
		t.Errorf("the files of shards are still open: %v", err)
	}
	if err := d.store.Close(); err != nil {
		t.Error(err)
	}
	if kept, claims := d.disks.kept.used(), d.disks.claims.used(); kept != 0 || claims != 0 {
		t.Errorf("when all is closed groups hold %d bytes for what they keep, and %d for what is in flight", kept, claims)
	}
	select {
	case <-d.pool.Close():
	case <-ctx.Done():
		t.Error("jobs are still running")
	}
}

// drain is the end of a broker that was asked to stop.
func (d *diskWorld) drain() {
	d.t.Helper()
	done := make(chan struct{})
	if err := d.host.TrySend(&DrainAll{Done: func() { close(done) }}, 0); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(patience):
		d.t.Fatal("not drained")
	}
	d.stop()
}

func durableStream(name string, incarnation id.Incarnation, shards uint32) route.Assignment {
	a := stream(name, incarnation, shards)
	a.Durable = true
	return a
}

// unlessRaced is n, or less under the race detector: for rounds that one goroutine makes, where there is nothing to be found by it.
func unlessRaced(n, raced int) int {
	if effort.Raced {
		return raced
	}
	return n
}

// patience bounds a wait for something that comes: no promise of how soon, but a test that says what it waited for.
const patience = time.Minute

// listed waits until the janitor's list has so many logs, and returns them: a log is put there a moment after its shard was told that it is
// open, and may serve before.
func (d *diskWorld) listed(n int) (list []*diskFiles) {
	d.t.Helper()
	d.await("the logs are in the janitor's list", func() bool {
		list = d.disks.after(turn{}, n+1)
		return len(list) == n
	})
	return list
}

// target waits until a shard resolves to that.
func (d *diskWorld) target(n route.Name, index uint32, ok func(Target) bool) Target {
	d.t.Helper()
	deadline := time.After(patience)
	for {
		var got Target
		if e := d.table.Get(n); e != nil {
			got, _ = e.Shard(index)
			if ok(got) {
				return got
			}
		}
		select {
		case <-deadline:
			d.t.Fatalf("shard %d of %s resolves to %+v", index, n, got)
		default:
			yield()
		}
	}
}

// await waits for a condition that has no event.
func (d *diskWorld) await(what string, ok func() bool) {
	d.t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			d.t.Fatalf("it never happened: %s", what)
		default:
			yield()
		}
	}
}

// body is the region of one record.
func body(text string) []byte { return wire.AppendPayload(nil, []byte(text)) }

// message is a publish of one record.
func message(text string) *Publish {
	return &Publish{Batch: batch.Batch{Count: 1, Kind: batch.Records, Body: body(text), PayloadBytes: len(text)}}
}

// send sends a publish and returns its answer.
func send(t *testing.T, h *Handle, m *Publish) Answer {
	t.Helper()
	r := newReplies()
	m.To(r, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	return r.wait(t, 1)
}

// written publishes texts one after the other and fails unless each is acknowledged at the offset after the one before.
func written(t *testing.T, h *Handle, from id.Offset, texts ...string) {
	t.Helper()
	r := newReplies()
	for i, s := range texts {
		m := message(s)
		m.To(r, shardcore.Token(i))
		if err := h.Ref.TrySend(m, Size(m)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range texts {
		if a := r.wait(t, shardcore.Token(i)); a.Refusal != nil || a.Refused != nil || a.Offset != from.Add(uint64(i)) {
			t.Fatalf("publish %d: %+v (%v), want offset %d", i, a, a.Refusal, from.Add(uint64(i)))
		}
	}
}

// stored reads everything that a shard shows.
func stored(t *testing.T, h *Handle) (texts []string) {
	t.Helper()
	oldest, end := h.History.Bounds()
	for from := oldest; from < end; {
		page, err := h.History.Read(context.Background(), from, end, 100, 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			t.Fatalf("nothing at %d, below the end %d", from, end)
		}
		for _, b := range page {
			rest := wire.Region(b.Region())
			for record, after, ok := rest.Next(); ok; record, after, ok = after.Next() {
				texts = append(texts, string(record))
			}
			from = b.End()
		}
	}
	return texts
}
