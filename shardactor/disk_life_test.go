package shardactor

import (
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// want tells the host what to host, and does not wait.
func (d *diskWorld) want(list ...route.Assignment) {
	d.version++
	d.host.Signal(actors.Cell{Kind: DesiredCell, Value: route.Desired{Version: d.version, Assignments: list}})
}

// A log that takes long to open holds up nobody: other streams come and go, and what is desired is told as applied after a while.
func TestALogThatHangsInItsOpenHoldsUpNoOther(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*", Block: true})
	slow, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.want(slow)
	<-hang.Reached()
	d.want(slow, other)
	written(t, d.shard(other.Name, 0, nil), 0, "one")
	if x, _ := d.table.Get(slow.Name).Shard(0); x.State != route.Refused || x.Reason != wire.ReasonNotReady {
		t.Fatalf("a shard whose log is opened resolves to %+v", x)
	}
	select {
	case v := <-d.applied:
		t.Fatalf("version %d is applied at once", v)
	default:
	}
	d.clock.Advance(settleMax)
	for v := range d.version {
		if got := <-d.applied; got != v+1 {
			t.Fatalf("version %d is applied, want %d", got, v+1)
		}
	}
	select {
	case <-d.ready:
		t.Fatal("ready without a log")
	default:
	}
	hang.Release()
	hang.Remove()
	written(t, d.shard(slow.Name, 0, nil), 0, "one")
	<-d.ready
}

func TestAStreamThatIsDeletedWhileItsLogIsOpenedIsSetAside(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*", Times: 1, Block: true})
	d.want(durableStream("orders", 7, 1))
	<-hang.Reached()
	again := durableStream("orders", 8, 1)
	d.desire(again)
	written(t, d.shard(again.Name, 0, nil), 0, "one")
	hang.Release()
	d.await("its files are set aside", func() bool {
		deleted, err := mem.ReadDir("deleted")
		return err == nil && len(deleted) == 1
	})
	d.drain()
	if n := mem.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open after the end", n)
	}
}

func TestADrainWhileALogIsOpenedEndsWithIt(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*", Times: 1, Block: true})
	d.want(durableStream("orders", 7, 1))
	<-hang.Reached()
	done := make(chan struct{})
	if err := d.host.TrySend(&DrainAll{Done: func() { close(done) }}, 0); err != nil {
		t.Fatal(err)
	}
	d.await("the shard has ended", func() bool {
		list, _, err := d.sys.Faults().List("shards/", actors.FaultListMax)
		return err == nil && len(list) == 0
	})
	select {
	case <-done:
		t.Fatal("drained while a log is being opened")
	default:
	}
	hang.Release()
	<-done
	if n := mem.OpenFiles(); n != 1 { // the store's lock
		t.Fatalf("%d files are open after the drain", n)
	}
}

func TestAQuarantinedDurableShardComesBackAndOneThatIsDeletedMeanwhileIsSetAside(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, func(x *diskSetup) {
		x.host.Wrap = func(_ route.Name, _ uint32, a actors.Actor) actors.Actor {
			return &faulty{Actor: a, armed: new(atomic.Bool)}
		}
	})
	a, b := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.desire(a, b)
	for _, n := range []route.Name{a.Name, b.Name} {
		h := d.shard(n, 0, nil)
		written(t, h, 0, "one")
		for i := range 3 {
			if err := h.Ref.TrySend(&panicNow{}, 1); err != nil {
				t.Fatal(err)
			}
			if i < 2 {
				h = d.shard(n, 0, h)
			}
		}
	}
	d.await("both are quarantined", func() bool { return testutil.ToFloat64(d.metrics.Quarantined) == 2 })
	d.desire(a)
	d.await("the files are set aside", func() bool {
		deleted, err := mem.ReadDir("deleted")
		return err == nil && len(deleted) == 1
	})
	var h *Handle
	d.await("the other one comes back", func() bool {
		d.clock.Advance(time.Second)
		x, _ := d.table.Get(a.Name).Shard(0)
		h = x.Shard
		return h != nil
	})
	if got := stored(t, h); !slices.Equal(got, []string{"one"}) {
		t.Fatalf("holds %q", got)
	}
	if testutil.ToFloat64(d.metrics.Quarantined) != 0 {
		t.Fatal("still counted as quarantined")
	}
}

func TestAPublishAnsweredAtTheClaimHasNoOffsetAndIsCountedIfItIsLost(t *testing.T) { // decision 15
	d := newDiskWorld(t, vfs.NewMem())
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h := d.shard(a.Name, 0, nil)
	full := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Err: syscall.ENOSPC})
	m := message("one")
	m.AtClaim = true
	if x := send(t, h, m); x.Refusal != nil || !x.NoOffset {
		t.Fatalf("answered %+v", x)
	}
	d.await("it is counted", func() bool { return testutil.ToFloat64(d.metrics.AckedLost) == 1 })
	full.Remove()
	written(t, h, 0, "two")
}

// matrix K3
func TestUnderBlockADurablePublishWaitsForReadersToo(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) {
		x.host.Readers = storage.NewReaders(storage.ReaderOptions{Policy: storage.Block, WindowBytes: 8 << 20, Budget: storage.NewBudget(64 << 20)})
	})
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h := d.shard(a.Name, 0, nil)
	c, err := h.Log.Register(storage.CursorOptions{Capacity: 1, Ring: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	written(t, h, 0, "one")
	r := newReplies()
	m := message("two")
	m.To(r, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	d.await("it is stored", func() bool { _, end := h.History.Bounds(); return end == 2 })
	r.mu.Lock()
	answered := len(r.got)
	r.mu.Unlock()
	if answered != 0 {
		t.Fatal("acknowledged although a reader has no room")
	}
	c.Release()
	if x := r.wait(t, 1); x.Refusal != nil || x.Offset != 1 {
		t.Fatalf("answered %+v", x)
	}
}

// Where appends are acknowledged before they are synced, a snapshot waits for the sync.
func TestInPeriodicModeASnapshotOfProducersFollowsTheSync(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, func(x *diskSetup) { x.store.Fsync = disklog.Periodic })
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h := d.shard(a.Name, 0, nil)
	if x := send(t, h, numbered(99, 0, "0")); x.Refusal != nil || x.Offset != 0 {
		t.Fatalf("publish: %+v", x)
	}
	f := d.listed(1)[0]
	f.dirty.Store(true) // as after 64 MiB
	d.await("a snapshot is saved", func() bool {
		d.clock.Advance(time.Second)
		asOf, _, ok := f.file.Snapshot(producersSnapshot)
		return ok && asOf == 1
	})
	d.await("and no more are wanted", func() bool { return !f.dirty.Load() })
	again := newDiskWorld(t, mem.CrashHard())
	again.desire(a)
	if x := send(t, again.shard(a.Name, 0, nil), numbered(99, 0, "0")); x.Refusal != nil || x.Refused != nil || x.Offset != 0 {
		t.Fatalf("publish, again: %+v", x)
	}
}

// Opening is bounded by the pool, not by the number of shards, and an idle shard costs little: no goroutine, no file, a few kilobytes.
func TestManyDurableShardsOpenAndCostLittleWhileIdle(t *testing.T) {
	shards := uint32(500)
	if testing.Short() {
		shards = 100
	}
	fs, err := vfs.NewOS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) {
		x.fs, x.store.Fsync = fs, disklog.None
		x.disk.LogOpened = func(route.Name, id.Incarnation, uint32, id.LogID) {}
	})
	c := d.store.Counters()
	idle := func(list ...route.Assignment) int64 {
		d.want(list...)
		last := list[len(list)-1]
		for i := range last.Shards {
			written(t, d.shard(last.Name, i, nil), 0, "one")
		}
		d.await("all are idle", func() bool { d.clock.Advance(time.Second); return c.AwakeLogs.Load() == 0 })
		d.await("all workers are gone", func() bool { d.clock.Advance(time.Second); return d.pool.Stats().Workers == 0 })
		return heap()
	}
	warm, many := durableStream("orders", 7, 8), durableStream("wide", 8, shards) // the first ones pay for what all share
	before, goroutines := idle(warm), runtime.NumGoroutine()
	const common = 128 << 10 // tables and buffers that all share grow by doubling
	each := (idle(warm, many) - before - common) / int64(shards)
	if n := c.OpenLogs.Load(); n != int64(shards+warm.Shards) {
		t.Fatalf("%d logs are open", n)
	}
	t.Logf("%d bytes each, %d goroutines before and %d after", each, goroutines, runtime.NumGoroutine())
	if each > 8<<10 {
		t.Errorf("an idle durable shard costs %d bytes", each)
	}
	d.await("the goroutines are hardly more", func() bool { return runtime.NumGoroutine()-goroutines <= 8 })
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
