package shardactor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// fill writes records of a kilobyte, few at a time: what is appended at once lies in one segment.
func fill(t *testing.T, h *Handle, from id.Offset, n int) {
	t.Helper()
	for end := from.Add(uint64(n)); from < end; {
		var list []string
		for i := range min(5, end-from) {
			list = append(list, fmt.Sprintf("%04d", from+i)+strings.Repeat("x", 1020))
		}
		written(t, h, from, list...)
		from = from.Add(uint64(len(list)))
	}
}

func oldest(h *Handle) id.Offset {
	o, _ := h.History.Bounds()
	return o
}

// matrix F5
func TestTheJanitorKeepsWhatRetentionSaysAndFollowsItLive(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.host.RingBatches = 8 })
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.desire(a, other)
	h, keep := d.shard(a.Name, 0, nil), d.shard(other.Name, 0, nil)
	fill(t, h, 0, 200)
	fill(t, keep, 0, 200)
	reader, err := h.Log.Register(storage.CursorOptions{Start: storage.StartEarliest, Capacity: 8, Ring: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	d.clock.Advance(time.Minute)
	if oldest(h) != 0 {
		t.Fatal("without a bound something was removed")
	}
	a.Retention = route.Retention{Bytes: 64 << 10}
	d.desire(a, other)
	if d.shard(a.Name, 0, nil) != h {
		t.Fatal("another bound replaced the shard")
	}
	d.await("the log shrinks", func() bool {
		d.clock.Advance(time.Second)
		return testutil.ToFloat64(d.metrics.Disk.RemovedSegments) > 0 // that run is over
	})
	if oldest(h) <= 100 {
		t.Fatalf("the oldest record is %d", oldest(h))
	}
	if oldest(keep) != 0 {
		t.Fatal("another log shrank too")
	}
	if _, err := h.Log.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: 1, Capacity: 1, Ring: func() {}}); !tooOld(err, oldest(h)) {
		t.Fatalf("a reader of what was removed: %v", err)
	}
	if _, err := h.History.Read(context.Background(), 1, 200, 10, 1<<20, nil); !tooOld(err, oldest(h)) {
		t.Fatalf("a read of what was removed: %v", err)
	}
	if _, err := reader.Take(context.Background(), 10, 1<<20, nil); !tooOld(err, oldest(h)) {
		t.Fatalf("a reader whose place was removed: %v", err)
	}
	if got := stored(t, h); len(got) != int(200-oldest(h)) {
		t.Fatalf("%d records are left from %d on", len(got), oldest(h))
	}
	fill(t, h, 200, 5)
	if n := testutil.ToFloat64(d.metrics.Disk.RemovedBytes); n < 64<<10 {
		t.Fatalf("%v bytes are counted as removed", n)
	}
}

func tooOld(err error, oldest id.Offset) bool {
	var x *storage.TooOldError
	return errors.As(err, &x) && x.Oldest == oldest
}

// matrix F5
func TestTheNodesRetentionHoldsWhereAStreamHasNone(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.disk.Retention = route.Retention{Bytes: 64 << 10} })
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	other.Retention = route.Retention{Bytes: 1 << 30}
	d.desire(a, other)
	h, keep := d.shard(a.Name, 0, nil), d.shard(other.Name, 0, nil)
	fill(t, h, 0, 200)
	fill(t, keep, 0, 200)
	d.await("the log shrinks", func() bool { d.clock.Advance(time.Second); return oldest(h) > 100 })
	if oldest(keep) != 0 {
		t.Fatal("a stream's own bound does not hold")
	}
}

// field case OPS-14
func TestOneRunPerLogAtATimeAndTheOthersAreLookedAfterMeanwhile(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.disk.Retention = route.Retention{Bytes: 64 << 10} })
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.desire(a, other)
	h, free := d.shard(a.Name, 0, nil), d.shard(other.Name, 0, nil)
	fill(t, h, 0, 200)
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRemove}, Name: "*orders*/*.log", Block: true})
	d.await("a run hangs", func() bool { d.clock.Advance(time.Second); return hang.Hits() > 0 })
	fill(t, free, 0, 200)
	d.await("the other log shrinks", func() bool { d.clock.Advance(time.Second); return oldest(free) > 100 })
	d.await("runs are skipped", func() bool { d.clock.Advance(time.Second); return testutil.ToFloat64(d.metrics.Disk.Skipped) >= 2 })
	if hang.Hits() != 1 {
		t.Fatalf("%d runs of one log at once", hang.Hits())
	}
	hang.Release()
	hang.Remove()
	d.await("the log shrinks after all", func() bool { d.clock.Advance(time.Second); return oldest(h) > 100 })
}

func TestSealedSegmentsAreCompressedWhereTheStreamAsksForIt(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.desire(a, other)
	h := d.shard(a.Name, 0, nil)
	fill(t, h, 0, 100)
	fill(t, d.shard(other.Name, 0, nil), 0, 100)
	a.Compress = true
	d.desire(a, other)
	c := d.store.Counters()
	d.await("it is compressed", func() bool { d.clock.Advance(time.Second); return c.CompressedIn.Load() >= 64<<10 })
	if in := c.CompressedIn.Load(); in > 110<<10 {
		t.Fatalf("%d bytes were compressed, more than one stream has", in)
	}
	if got := stored(t, h); len(got) != 100 || !strings.HasPrefix(got[42], "0042x") {
		t.Fatalf("%d records, %.8q", len(got), got[42])
	}
}

func TestTheJanitorComesBackAfterAFailure(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.disk.Retention = route.Retention{Bytes: 64 << 10} })
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h := d.shard(a.Name, 0, nil)
	if err := d.sys.Faults().Crash("shards/" + janitorName); err != nil {
		t.Fatal(err)
	}
	fill(t, h, 0, 200)
	d.await("the log shrinks", func() bool { d.clock.Advance(time.Second); return oldest(h) > 100 })
	d.drain()
}
