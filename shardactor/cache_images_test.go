package shardactor

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// cacheModel is what clients of one shard know: what its answers said.
type cacheModel struct {
	values map[string]modelValue
	sums   map[string]int64
}

type modelValue struct {
	value   string
	version id.Offset
}

const (
	modelKeys  = 12
	modelDepth = 64 // KiB of a segment
)

func modelKey(i int) string { return fmt.Sprint("key-", i) }

// print is the same for equal contents.
func (m *cacheModel) print() [32]byte {
	var b strings.Builder
	for i := range modelKeys {
		if v, ok := m.values[modelKey(i)]; ok {
			fmt.Fprintf(&b, "%d=%d:%x;", i, v.version, sha256.Sum256([]byte(v.value)))
		}
		if n, ok := m.sums[modelKey(i)]; ok {
			fmt.Fprintf(&b, "%d+%d;", i, n)
		}
	}
	return sha256.Sum256([]byte(b.String()))
}

// step does one random write through the shard and notes what it was answered.
func (m *cacheModel) step(t *testing.T, h *Handle, rng *rand.Rand) {
	key := modelKey(rng.IntN(modelKeys))
	value := strings.Repeat(string(rune('a'+rng.IntN(26))), 1+rng.IntN(6000))
	had, there := m.values[key]
	switch rng.IntN(10) {
	case 0:
		a := ask(t, h, &CacheDelete{Key: key})
		if a.Refusal != nil || a.Found != there || string(a.Value) != had.value {
			t.Fatalf("delete %s: %v, found %v of %d bytes; it had %d", key, a.Refusal, a.Found, len(a.Value), len(had.value))
		}
		delete(m.values, key)
	case 1:
		a := ask(t, h, &CachePutIf{Key: key, Value: []byte(value), HasVersion: there, Version: had.version})
		if a.Refusal != nil || !a.Applied {
			t.Fatalf("put of %s at version %d: %+v", key, had.version, a)
		}
		m.values[key] = modelValue{value, a.Version}
	case 2:
		a := ask(t, h, &CachePutIf{Key: key, Value: []byte("no"), HasVersion: true, Version: had.version + 1})
		if a.Refusal != nil || a.Applied || a.HasVersion != there || a.Version != had.version {
			t.Fatalf("put of %s at another version than %d: %+v", key, had.version, a)
		}
	case 3, 4:
		delta := rng.Int64N(100) - 30
		a := ask(t, h, &CounterAdd{Key: key, Delta: delta})
		if m.sums[key] += delta; a.Refusal != nil || a.Sum != m.sums[key] {
			t.Fatalf("add to %s: %v, sum %d, want %d", key, a.Refusal, a.Sum, m.sums[key])
		}
	default:
		a := ask(t, h, &CachePut{Key: key, Value: []byte(value), TTLMillis: 1 << 40, HasTTL: rng.IntN(2) == 0})
		if a.Refusal != nil {
			t.Fatal(a.Refusal)
		}
		m.values[key] = modelValue{value, a.Offset}
	}
}

// read is the same of a shard.
func readModel(d *diskWorld, h *Handle) *cacheModel {
	d.t.Helper()
	m := &cacheModel{values: map[string]modelValue{}, sums: map[string]int64{}}
	for i := range modelKeys {
		key := modelKey(i)
		if v, ok := h.Cache.Get(key, d.millis()); ok {
			m.values[key] = modelValue{d.settled(h, key, v), v.Version}
		}
		if n, ok := h.Counters.Get(key); ok {
			m.sums[key] = n
		}
	}
	return m
}

// cacheImage is a disk as a crash would have left it, and what had been answered by then.
type cacheImage struct {
	disk  *vfs.Mem
	acked int
	kind  string
}

// fewestImageSteps is how many writes make a log that is worth a compaction, and some more until one came to its end.
const fewestImageSteps = 2000

// CAC-10, G6, G7, G26: compactions, snapshots of the keys, expiries and writes of clients through the shard as it is, and the disk as a kill
// and power cuts leave it at its operations. Every image opens, and holds exactly what some moment at or after the last answer held.
//
// matrix H2; mission 344
func TestNoCrashImageOfACacheShardHasLostWhatWasAcknowledged(t *testing.T) {
	steps := effort.Size("cache_image_steps")
	most := steps / 8
	if testing.Short() {
		most = steps / 40
	}
	mem := vfs.NewMem()
	change := func(x *diskSetup) {
		x.disk.InlineBytes = 1024
		x.store.SegmentBytes = modelDepth << 10
		x.store.Fsync = disklog.OnCommit
	}
	d := newDiskWorld(t, mem, change)
	h := d.cacheShard("users")
	m := &cacheModel{values: map[string]modelValue{}, sums: map[string]int64{}}
	prints := [][32]byte{m.print()}
	var acked, ops atomic.Int64
	rng := rand.New(rand.NewPCG(11, 7))
	crash := rand.New(rand.NewPCG(3, 1))
	var images []cacheImage
	var taking sync.Mutex
	mem.OnOp(func(vfs.Op) {
		taking.Lock()
		defer taking.Unlock()
		if n := ops.Add(1); n%7 != 0 || len(images) >= most*4 {
			return
		}
		for _, x := range []cacheImage{{mem.Clone(), 0, "kill"}, {mem.CrashHard(), 0, "hard power cut"}, {mem.Crash(crash.IntN), 0, "power cut"}} {
			x.acked = int(acked.Load())
			images = append(images, x)
		}
		if len(images) >= most*4 { // thin them out, so that they are of the whole run
			kept := images[:0]
			for i, x := range images {
				if i%2 == 0 {
					kept = append(kept, x)
				}
			}
			images = kept
		}
	})
	compacted := func() bool { oldest, _ := h.Log.Bounds(); return oldest > 0 }
	late := time.Now().Add(patience)
	for i := 0; i < steps || !compacted() && (i < fewestImageSteps || time.Now().Before(late)); i++ {
		m.step(t, h, rng)
		prints = append(prints, m.print())
		acked.Add(1)
		if acked.Load()%50 == 0 {
			d.clock.Advance(time.Minute) // the janitor, and whatever waits for its time
		}
	}
	mem.OnOp(nil)
	taking.Lock() // what was under way is done
	defer taking.Unlock()
	if !compacted() {
		t.Fatal("no compaction came to its end")
	}
	d.stop()
	for i := range images {
		if i%max(1, len(images)/most) != 0 {
			continue
		}
		x := &images[i]
		n := newDiskWorld(t, x.disk, change)
		got := readModel(n, n.cacheShard("users"))
		print, found := got.print(), false
		for k := x.acked; k < len(prints) && k <= x.acked+2; k++ {
			found = found || prints[k] == print
		}
		if !found {
			t.Errorf("image %d, %s after %d answers: %+v", i, x.kind, x.acked, got.sums)
		}
		n.stop()
	}
	t.Logf("%d operations of the disk, %d images", ops.Load(), len(images))
}
