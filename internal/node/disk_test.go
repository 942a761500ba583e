package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
)

// onDisk gives a broker durable streams on a disk, and returns what is closed when the broker is.
func onDisk(t *testing.T, files vfs.FS, ready chan<- struct{}, set ...func(*disklog.Options, *shardactor.DiskOptions)) (change func(*Options), done func()) {
	t.Helper()
	pool, slots := diskpool.New(diskpool.Options{}), diskpool.NewReadSlots(diskpool.DefaultReadSlots)
	log, d := disklog.Options{Exec: pool, Slots: slots}, shardactor.DefaultDiskOptions()
	for _, f := range set {
		f(&log, &d)
	}
	store, err := disklog.OpenStore(files, log)
	if err != nil {
		t.Fatal(err)
	}
	d.Store, d.Exec, d.Slots = store, pool, slots
	d.OnDamaged = func(err error) { t.Error(err) }
	d.Ready = func() { ready <- struct{}{} }
	done = func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		select {
		case <-pool.Close():
		case <-time.After(patience):
			t.Error("jobs are still running")
		}
	}
	return func(o *Options) { o.Disk = &d }, done
}

func durableOrders(b *broker) *shardactor.Handle {
	b.t.Helper()
	a := resource(route.Stream, "durable", 1)
	a.Durable = true
	b.node.Apply(route.Desired{Version: 2, Assignments: []route.Assignment{a, resource(route.Stream, "orders", 1)}})
	var h *shardactor.Handle
	eventually(b.t, "the durable stream is there", func() bool {
		if e := b.node.Table.Get(a.Name); e != nil {
			x, _ := e.Shard(0)
			h = x.Shard
		}
		return h != nil
	})
	return h
}

// What a client was told is stored survives the power cut of its broker; streams in memory live beside it.
func TestAcknowledgedPublishesSurviveAPowerCut(t *testing.T) {
	mem := vfs.NewMem()
	const records = 20
	serve := func(t *testing.T, mem *vfs.Mem, use func(*broker, *shardactor.Handle)) {
		ready := make(chan struct{}, 1)
		change, done := onDisk(t, mem, ready)
		t.Cleanup(done) // after the broker has stopped
		b := start(t, change)
		select {
		case <-ready:
		case <-within(t).Done():
			t.Fatal("the node is not ready")
		}
		use(b, durableOrders(b))
	}
	var cut *vfs.Mem
	t.Run("before", func(t *testing.T) {
		serve(t, mem, func(b *broker, _ *shardactor.Handle) {
			l, _ := b.dial().open(nothing())
			for i := range uint64(records) {
				l.raw(batchTo("durable", i, fmt.Sprint(i)))
			}
			for i := range records {
				if got := string(l.next().payload); got != fmt.Sprintf(`{"type":"publish_ok","request_id":%d}`, i) {
					t.Fatalf("publish %d was answered %s", i, got)
				}
			}
			cut = mem.CrashHard()
		})
	})
	if n := mem.OpenFiles(); n != 0 {
		t.Errorf("%d files are open after the end of the node", n)
	}
	t.Run("after", func(t *testing.T) {
		serve(t, cut, func(_ *broker, h *shardactor.Handle) {
			oldest, end := h.History.Bounds()
			if oldest != 0 || end != records {
				t.Fatalf("the log holds [%d, %d)", oldest, end)
			}
			got, err := h.History.Read(context.Background(), 0, end, records, 1<<20, nil)
			if err != nil || len(got) != records {
				t.Fatalf("read %d batches: %v", len(got), err)
			}
		})
	})
}

// Under catch_up a subscriber of a durable stream loses nothing however slow it is; without a disk there is nothing to catch up from.
func TestCatchUpNeedsADisk(t *testing.T) {
	var refused *storage.PolicyError
	o := Options{Clock: actors.RealClock(), Events: actors.DiscardEvents(), Registerer: prometheus.NewRegistry(), Limits: DefaultLimits()}
	o.Limits.Overflow = storage.CatchUp
	if _, err := New(o); !errors.As(err, &refused) {
		t.Fatalf("without a disk: %v", err)
	}
	ready := make(chan struct{}, 1)
	change, done := onDisk(t, vfs.NewMem(), ready)
	t.Cleanup(done)
	b := start(t, change, func(o *Options) { o.Limits.Overflow = storage.CatchUp })
	h := durableOrders(b)
	c, err := h.Log.Register(storage.CursorOptions{Capacity: 1, Ring: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	l, _ := b.dial().open(nothing())
	const records = 50
	for i := range uint64(records) {
		l.raw(batchTo("durable", i, fmt.Sprint(i)))
		l.next()
	}
	got := 0
	for got < records {
		page, err := c.Take(context.Background(), 10, 1<<20, nil)
		if err != nil || page.Lost > 0 || len(page.Batches) == 0 {
			t.Fatalf("after %d records: %+v, %v", got, page, err)
		}
		got += len(page.Batches)
	}
}
