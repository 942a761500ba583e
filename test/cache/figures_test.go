package cache

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
)

// Puts that come while a sync runs share the next one: with 32 callers who wait for their answers, nearly all of them are in each of two
// syncs in turn, or in each of them where they are quick. Expected: 16 to 32 records for a sync; the limiting resource is the disk, with 4
// ms for a sync. A put that comes alone waits for nobody and costs one sync.
func TestPutsShareTheSyncsOfASlowDiskAndALonePutCostsOne(t *testing.T) {
	const callers, slow = 32, 4 * time.Millisecond
	const lone = 20
	want := 14.0
	if !effort.Full() {
		want = 10 // beside the other tests of a landing
	}
	m := newMeasured(t, cacheOf("shared", 1, true))
	m.start()
	m.fs.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Delay: slow})
	c := m.connect(func(o *client.Options) { o.CacheConns, o.CacheStreams = 1, callers })
	put := func(ctx context.Context, i int) error {
		return c.CachePut(ctx, namespace, "shared", fmt.Sprintf("key-%d", i%1024), make([]byte, cachedValueBytes), 0)
	}
	began := m.syncs()
	for i := range lone {
		asking(t, 1, 1, func(ctx context.Context, _ int) error { return put(ctx, i) })
	}
	if did := m.syncs().since(began); did.records != lone || did.syncs != lone {
		t.Errorf("%d lone puts were %v records in %v syncs", lone, did.records, did.syncs)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; ctx.Err() == nil; i += callers {
				if err := put(context.Background(), i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stretch := time.Duration(testkit.Size("shared_sync_millis")) * time.Millisecond
	testkit.After(stretch / 10)
	began = m.syncs()
	testkit.After(stretch)
	did := m.syncs().since(began)
	stop()
	all.Wait()
	t.Logf("%.0f puts of %d callers in %.0f syncs of %v: %.1f each", did.records, callers, did.syncs, slow, did.records/did.syncs)
	if did.syncs == 0 || did.records/did.syncs < want {
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
	after := m.rest()
	each := (after.heap - before.heap) / int64(shards)
	t.Logf("%d shards: %d bytes each; before and after %d and %d goroutines, %d and %d timers, %d and %d files", shards, each,
		before.goroutines, after.goroutines, before.timers, after.timers, before.files, after.files)
	if each > idleShardBytes {
		t.Errorf("an idle shard of a log-backed cache holds %d bytes", each)
	}
	if after.goroutines > before.goroutines+diskWorkers || after.timers > before.timers+8 || after.files > before.files {
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
	return resting{heap: heap, timers: m.clock.armed.Load(), files: m.files.open.Load(), goroutines: runtime.NumGoroutine()}
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
