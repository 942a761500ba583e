package cache

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
)

// sharing is a log-backed cache whose puts are long, so that the bytes in its log tell how many are written.
type sharing struct {
	*measured
	put func(ctx context.Context, i int) error
}

const (
	sharingCallers = 32
	longValueBytes = 8000 // far more than all that a log adds to thirty-two of them
)

func newSharing(t *testing.T) *sharing {
	m := newMeasured(t, cacheOf("shared", 1, true))
	m.start()
	c := m.connect(func(o *client.Options) { o.CacheConns, o.CacheStreams = 1, sharingCallers })
	return &sharing{m, func(ctx context.Context, i int) error {
		return c.CachePut(ctx, namespace, "shared", fmt.Sprintf("key-%d", i%1024), make([]byte, longValueBytes), 0)
	}}
}

// Puts that come while a sync runs share the next one, however many they are. A put that comes alone waits for nobody and costs one sync.
func TestPutsShareTheSyncsOfASlowDiskAndALonePutCostsOne(t *testing.T) {
	const lone, rounds = 20, 3
	m := newSharing(t)
	began := m.syncs()
	for i := range lone {
		asking(t, 1, 1, func(ctx context.Context, _ int) error { return m.put(ctx, i) })
	}
	if did := m.syncs().since(began); did.records != lone || did.syncs != lone {
		t.Errorf("%d lone puts were %v records in %v syncs", lone, did.records, did.syncs)
	}
	for range rounds {
		began, written := m.syncs(), m.stored.Counters().AppendedBytes.Load()
		slow := m.fs.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Block: true})
		var all sync.WaitGroup
		all.Go(func() { asking(t, sharingCallers, sharingCallers, m.put) })
		testkit.Eventually(t, "all are written while one sync runs", func() bool {
			return m.stored.Counters().AppendedBytes.Load()-written >= sharingCallers*longValueBytes
		})
		slow.Remove()
		all.Wait()
		if did := m.syncs().since(began); did.records != sharingCallers || did.syncs > 2 {
			t.Errorf("%v puts were in %v syncs: one that ran, and one for all that came meanwhile", did.records, did.syncs)
		}
	}
}

// With 32 callers who wait for their answers, nearly all of them are in each of two syncs in turn, or in each of them where they are quick.
// Expected: 16 to 32 records for a sync; the limiting resource is the disk, with 4 ms for a sync. The figure needs a machine of its own: at a
// landing less will do.
func TestHowManyPutsShareASyncOfFourMilliseconds(t *testing.T) {
	const slow = 4 * time.Millisecond
	want := testkit.Shared(14)
	m := newSharing(t)
	m.fs.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Delay: slow})
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for caller := range sharingCallers {
		all.Go(func() {
			for i := caller; ctx.Err() == nil; i += sharingCallers {
				if err := m.put(context.Background(), i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stretch := time.Duration(testkit.Size("shared_sync_millis")) * time.Millisecond
	testkit.After(stretch / 10)
	began, did := m.syncs(), syncing{}
	testkit.After(stretch)
	testkit.Eventually(t, "there were so many syncs that their share says something", func() bool {
		did = m.syncs().since(began)
		return did.syncs >= testkit.SyncsJudged
	})
	stop()
	all.Wait()
	t.Logf("%.0f puts of %d callers in %.0f syncs of %v: %.1f each", did.records, sharingCallers, did.syncs, slow, did.records/did.syncs)
	if did.records/did.syncs < want {
		t.Errorf("%.0f puts in %.0f syncs, want %v each", did.records, did.syncs, want)
	}
}

// syncing is what a broker has synced.
type syncing struct{ records, syncs float64 }

func (s syncing) since(before syncing) syncing {
	return syncing{s.records - before.records, s.syncs - before.syncs}
}

func (m *measured) syncs() syncing {
	m.t.Helper()
	records, syncs := m.metric("felix_storage_sync_batch_appends")
	return syncing{records, float64(syncs)}
}

// A shard of a log-backed cache that was used and is not any more holds little memory, and no file, no goroutine and no timer, and does
// nothing at all.
//
// Expected: the two logs of a shard are as much as two durable streams, 2 to 3 KiB each, beside the table of its few keys, 1 to 2 KiB,
// and the actor, some 4 KiB; the limiting resource is memory.
//
// mission 209
func TestIdleCacheShardsHoldLittleAndDoNothing(t *testing.T) {
	const idleShardBytes = 16 << 10
	shards := uint32(1000)
	if testing.Short() {
		shards = 200
	}
	warm, wide := cacheOf("warm", 8, true), cacheOf("wide", shards, true)
	m := newMeasured(t, warm)
	m.unsynced = true // two thousand logs are made
	m.store = func(o *disklog.Options) { o.IdleAfter = 200 * time.Millisecond }
	m.start()
	m.touch("warm", warm.Shards)
	before := m.rest()
	m.caches = append(m.caches, wide)
	m.node.Apply(m.desired())
	m.touch("wide", shards)
	holds := func(r resting) bool {
		return r.goroutines <= before.goroutines+diskWorkers && r.timers <= before.timers+8 && r.files <= before.files
	}
	testkit.Eventually(t, "no more goroutines, timers and files are left than a disk has whatever its logs", func() bool { return holds(m.now()) })
	after := m.rest()
	each := (after.heap - before.heap) / int64(shards)
	t.Logf("%d shards: %d bytes each; before and after %d and %d goroutines, %d and %d timers, %d and %d files", shards, each,
		before.goroutines, after.goroutines, before.timers, after.timers, before.files, after.files)
	if each > idleShardBytes {
		t.Errorf("an idle shard of a log-backed cache holds %d bytes", each)
	}
	if !holds(after) {
		t.Errorf("%d idle shards hold %d goroutines, %d timers and %d files", shards, after.goroutines-before.goroutines, after.timers-before.timers, after.files-before.files)
	}
	used := m.fs.Add(vfs.Rule{Name: "*"})
	testkit.After(time.Duration(testkit.Size("idle_seconds")) * time.Second)
	if n := used.Hits(); n > 0 {
		t.Errorf("%d idle shards did %d calls of the disk", shards, n)
	}
}

// diskWorkers is how many goroutines a disk has at most, whatever the number of its logs: 16 that write, 16 that sync, and 8 for the rest.
const diskWorkers = 16 + 16 + 8

// resting is what a broker holds that does nothing.
type resting struct {
	heap, timers, files int64
	goroutines          int
}

// rest waits until the broker has given back what it can.
func (m *measured) rest() resting {
	m.t.Helper()
	testkit.Eventually(m.t, "all logs have given back their files", func() bool {
		return m.stored.Counters().AwakeLogs.Load() == 0
	})
	heap := heapAfterGC()
	r := m.now()
	r.heap = heap
	return r
}

// now is what it holds at this moment, without the memory.
func (m *measured) now() resting {
	return resting{timers: m.clock.armed.Load(), files: m.files.open.Load(), goroutines: runtime.NumGoroutine()}
}

// touch puts a key into each shard.
func (m *measured) touch(cache string, shards uint32) {
	m.t.Helper()
	for n := range shards {
		w := newWindow(m.t, m.handle(cache, n), 1)
		w.put("key", make([]byte, cachedValueBytes))
		w.finish()
	}
}
