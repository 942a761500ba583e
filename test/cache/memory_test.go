package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
)

const (
	cachedKeyBytes   = 32
	cachedValueBytes = 100
	// cachedExtraBytes is what an entry may take beside its key and its value.
	cachedExtraBytes = 200
	// collectionCPU is what one collection may take of all processors together.
	collectionCPU = 20 * time.Millisecond
	// restartTime is what a start may take with a snapshot of the keys.
	restartTime = 3 * time.Second
	// underWay is how many puts are under way at once while a cache is filled: half of what a shard's mailbox takes.
	underWay = 512
)

// What a log-backed cache costs in memory, in collections, at a restart and while it is compacted.
//
// Expected: an entry is a block of 40 + 32 + 100 bytes in units of 8, and a slot of the table of 8 bytes at a load between one half and
// one: 184 to 197 bytes, 52 to 65 above key and value; the limiting resource is memory. Beside that a shard keeps its newest batches for
// watches, 16384 batches or 8 MiB of bodies whatever the number of keys, which is full before anything is measured. A collection marks some hundred blocks without pointers and what the rest of
// a broker has: a few milliseconds, limited by the stacks and maps of that rest. A start with a snapshot reads some 200 bytes for each key
// and puts them into the table, a microsecond each, limited by one processor; one without folds what was written since the last one.
// A compaction copies what is live at 64 MiB of reads and writes each second, limited by that budget and not by the disk.
func TestAMillionCachedKeysFitIntoMemoryAndComeBackQuickly(t *testing.T) {
	keys := testkit.Size("cached_keys")
	m := newMeasured(t, cacheOf("big", 1, true))
	m.start()
	empty, before, resident := heapAfterGC(), m.fillTail(), residentBytes(t)
	began := time.Now()
	w := newWindow(t, m.handle("big", 0), underWay)
	for n := range keys {
		w.put(cachedKey(n), make([]byte, cachedValueBytes))
	}
	w.finish()
	t.Logf("%d keys written one by one in %v", keys, time.Since(began).Round(time.Millisecond))
	checkMemory(t, m, keys, empty, before, resident)
	killed := m.copyOf()
	m.stop()
	m.restarts("an orderly stop", keys, restartTime)
	m.compacts(keys)
	m.stop()
	killed.restarts("a kill", keys, 3*restartTime) // what came since the last snapshot is folded
}

func cachedKey(n int) string { return fmt.Sprintf("tenant/user/session/%012d", n) }

// fillTail has the shard keep as many batches for watches as it ever does, and returns what is reachable then.
func (m *measured) fillTail() int64 {
	m.t.Helper()
	w := newWindow(m.t, m.handle("big", 0), underWay)
	for range node.DefaultLimits().RingBatches + underWay {
		w.put(cachedKey(0), make([]byte, cachedValueBytes))
	}
	w.finish()
	return heapAfterGC()
}

func checkMemory(t *testing.T, m *measured, keys int, empty, before, resident int64) {
	t.Helper()
	after := heapAfterGC()
	extra := func(bytes int64) float64 { return float64(bytes)/float64(keys) - cachedKeyBytes - cachedValueBytes }
	each := extra(after - before)
	took := collectionTime()
	s := m.handle("big", 0).Keyed.Index().Stats()
	t.Logf("%.1f bytes for each key above its key and value, %.1f with %d of the tail for watches; %.1f of them in the index and %.1f booked; %d bytes more are resident, %d each; a collection takes %v",
		each, extra(after-empty), before-empty, extra(s.Memory), extra(s.Cost), residentBytes(t)-resident, (residentBytes(t)-resident)/int64(keys), took.Round(10*time.Microsecond))
	if s.Entries != keys {
		t.Fatalf("%d keys are there, want %d", s.Entries, keys)
	}
	if effort.Full() { // so many that the tail must not matter
		each = extra(after - empty)
	}
	if each > cachedExtraBytes {
		t.Errorf("a key takes %.0f bytes beside its key and value", each)
	}
	if most := testkit.Figure(collectionCPU); took > most { // it counts a processor that others have taken meanwhile
		t.Errorf("a collection takes %v of processors, %v is the most", took, most)
	}
}

// collectionTime is the processor time of one collection, the least of some: others use the processors too.
func collectionTime() time.Duration {
	read := func() float64 {
		s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
		metrics.Read(s)
		return s[0].Value.Float64()
	}
	least := time.Hour
	for range 7 {
		runtime.GC()
		before := read()
		runtime.GC()
		least = min(least, time.Duration((read()-before)*float64(time.Second)))
	}
	return least
}

// residentBytes is what the process has in memory, 0 where nobody tells.
func residentBytes(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// copyOf is a broker on a copy of the files as they are now: what a kill leaves.
func (m *measured) copyOf() *measured {
	m.t.Helper()
	dir := filepath.Join(m.t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(m.dir)); err != nil {
		m.t.Fatal(err)
	}
	return &measured{t: m.t, identity: m.identity, dir: dir, caches: m.caches, logs: m.logs}
}

// restarts begins a life on what another one left, and checks that it comes in time and has all.
func (m *measured) restarts(after string, keys int, most time.Duration) {
	m.t.Helper()
	took := m.start()
	rebuilt, _ := m.metric("felix_storage_producer_state_rebuilt_total")
	m.t.Logf("after %s the cache is served in %v, %.0f snapshots were of no use", after, took.Round(time.Millisecond), rebuilt)
	index := m.handle("big", 0).Keyed.Index()
	if n := index.Stats().Entries; n != keys {
		m.t.Errorf("after %s %d keys are there, want %d", after, n, keys)
	}
	for _, n := range []int{0, keys / 2, keys - 1} {
		if e, ok := index.Look([]byte(cachedKey(n)), 0, nil); !ok || len(e.Value) != cachedValueBytes {
			m.t.Errorf("after %s key %d has %d bytes, found %v", after, n, len(e.Value), ok)
		}
	}
	if most = testkit.Figure(most); took > most {
		m.t.Errorf("after %s the cache is served in %v, %v is the most", after, took, most)
	}
}

// compacts writes a few keys over and over until the log is compacted, and compares what puts take meanwhile with what they took before.
func (m *measured) compacts(keys int) {
	m.t.Helper()
	index := m.handle("big", 0).Keyed.Index()
	live := index.Stats().LogLiveBytes
	h := hotKeys{m: m, log: live}
	h.growTo(live * 39 / 10)
	before := h.puts(func(n int) bool { return n < 2000 })
	h.growTo(live * 42 / 10) // a compaction begins at four times what is live
	over := m.compactionIsOver()
	began := time.Now()
	beside := h.puts(func(int) bool {
		select {
		case <-over:
			return false
		default:
			return time.Since(began) < 4*testkit.Patience
		}
	})
	took := time.Since(began)
	moved, _ := m.metric("felix_cache_compaction_bytes_total")
	m.t.Logf("a compaction moved %.0f bytes in %v; %d puts beside it: p50 %v, p99 %v; %d before: p50 %v, p99 %v", moved, took.Round(time.Millisecond),
		len(beside), testkit.Median(beside), testkit.Percentile(beside, 99), len(before), testkit.Median(before), testkit.Percentile(before, 99))
	done, _ := m.metric("felix_cache_compactions_total")
	if failed, _ := m.metric("felix_cache_compaction_failures_total"); failed > 0 || done == 0 {
		m.t.Errorf("%.0f compactions came to their end and %.0f failed", done, failed)
	}
	if n := index.Stats().Entries; n != keys {
		m.t.Errorf("after the compaction %d keys are there, want %d", n, keys)
	}
}

// compactionIsOver is closed once one compaction came to its end, or to no good one.
func (m *measured) compactionIsOver() <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for end := time.Now().Add(4 * testkit.Patience); time.Now().Before(end); testkit.After(20 * time.Millisecond) {
			done, _ := m.metric("felix_cache_compactions_total")
			failed, _ := m.metric("felix_cache_compaction_failures_total")
			if done+failed > 0 {
				return
			}
		}
	}()
	return over
}

// hotKeys are a few keys that are written over and over.
type hotKeys struct {
	m   *measured
	log int64 // bytes of the log, about
}

const hotOnes = 64

// growTo makes the log that long.
func (h *hotKeys) growTo(bytes int64) {
	const size = 4000
	w := newWindow(h.m.t, h.m.handle("big", 0), underWay)
	for n := 0; h.log < bytes; n++ {
		w.put(cachedKey(n%hotOnes), make([]byte, size))
		h.log += size
	}
	w.finish()
}

// puts writes small values, a few at a time, as long as more says so, and returns what each took.
func (h *hotKeys) puts(more func(n int) bool) []time.Duration {
	w := newWindow(h.m.t, h.m.handle("big", 0), 8)
	w.timed = true
	for n := 0; more(n); n++ {
		w.put(cachedKey(n%hotOnes), make([]byte, cachedValueBytes))
	}
	w.finish()
	return w.took
}
