package shardactor

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// cacheDir is the directory of the one shard's log of a kind.
func cacheDir(kind disklog.Kind) string {
	s := disklog.Spec{Kind: kind, Tenant: "t1", Namespace: "default", Name: "users", Incarnation: 1}
	return s.Dir()
}

// keysFile is the name of the snapshot of keys in the log of a kind.
func keysFile(kind disklog.Kind) string {
	return path.Join(cacheDir(kind), segment.SnapshotName(keysSnapshot))
}

// fileOf is what a file of a disk holds; nil if there is none.
func fileOf(t *testing.T, mem *vfs.Mem, name string) []byte {
	t.Helper()
	if _, err := mem.Stat(name); err != nil {
		return nil
	}
	f, err := mem.Open(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// placeFile puts a file on a disk, in the place of one that may be there.
func placeFile(t *testing.T, mem *vfs.Mem, name string, b []byte) {
	t.Helper()
	_ = mem.Remove(name)
	f, err := mem.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// keysDisk is a disk whose cache was closed in order after enough writes for a snapshot of its keys.
type keysDisk struct {
	mem  *vfs.Mem
	want string // what the keys are
}

// keysDiskKeys are so many that a log of twice the puts of them is not worth a compaction.
const keysDiskKeys = 1000

// wroteKeys writes so many values, of a kilobyte each, through a shard on a disk.
func (d *diskWorld) wroteKeys(h *Handle, n int, text string) {
	d.t.Helper()
	pad := strings.Repeat(text, 1<<10/len(text))
	const together = 500
	for from := 0; from < n; from += together {
		r := newReplies()
		to := min(n, from+together)
		for i := from; i < to; i++ {
			m := &CachePut{Key: fmt.Sprint("k", i%keysDiskKeys), Value: []byte(fmt.Sprint(i, pad))}
			m.To(r, shardcore.Token(i))
			if err := h.Ref.TrySend(m, Size(m)); err != nil {
				d.t.Fatal(err)
			}
		}
		for i := from; i < to; i++ {
			if a := r.wait(d.t, shardcore.Token(i)); a.Refusal != nil {
				d.t.Fatal(a.Refusal)
			}
		}
	}
}

// looks is what the keys and the counter are.
func (d *diskWorld) looks(h *Handle) string {
	var b strings.Builder
	for i := range keysDiskKeys {
		v, ok := h.Cache.Get(fmt.Sprint("k", i), d.millis())
		fmt.Fprintf(&b, "%d %v %d %.9s\n", i, ok, v.Version, v.Value)
	}
	sum, ok := h.Counters.Get("n")
	fmt.Fprintln(&b, sum, ok)
	return b.String()
}

func smallSegments(x *diskSetup) { x.store.SegmentBytes = 32 << 10 }

// closedInOrder writes so many values on a disk, and closes it in order.
func closedInOrder(t *testing.T, mem *vfs.Mem, n int, text string) keysDisk {
	t.Helper()
	d := newDiskWorld(t, mem, smallSegments)
	h := d.cacheShard("users")
	d.wroteKeys(h, n, text)
	if a := ask(t, h, &CounterAdd{Key: "n", Delta: int64(n)}); a.Refusal != nil {
		t.Fatal(a.Refusal)
	}
	k := keysDisk{mem: mem, want: d.looks(h)}
	d.drain()
	if testutil.ToFloat64(d.metrics.Disk.Compactions) != 0 || fileOf(t, mem, keysFile(disklog.Cache)) == nil {
		t.Fatal("it was compacted, or no snapshot of the keys was kept")
	}
	return k
}

// opens opens a disk, and returns how many snapshots were ignored and how many times its logs were read.
func (k keysDisk) opens(t *testing.T) (ignored uint64, reads int64) {
	t.Helper()
	d := newDiskWorld(t, k.mem, smallSegments)
	count := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Name: "*.log", Delay: 1}) // the clock of this fault stands
	h := d.cacheShard("users")
	reads = count.Hits()
	if got := d.looks(h); got != k.want {
		t.Errorf("it holds %.100q, want %.100q", got, k.want)
	}
	put(t, h, "goes on", "yes")
	d.stop()
	return d.store.Counters().SnapshotsIgnored.Load() + d.metrics.Disk.undecoded.Load(), reads
}

// matrix G18; the values after the snapshot are visible, and only they are read
func TestOnlyWhatFollowsTheSnapshotOfTheKeysIsFolded(t *testing.T) {
	mem := vfs.NewMem()
	closedInOrder(t, mem, 1200, "first")
	d := newDiskWorld(t, mem, smallSegments)
	h := d.cacheShard("users")
	d.wroteKeys(h, 10, "later")
	after := keysDisk{mem.Clone(), d.looks(h)}
	d.stop()
	without := keysDisk{after.mem.Clone(), after.want}
	if err := without.mem.Remove(keysFile(disklog.Cache)); err != nil {
		t.Fatal(err)
	}
	ignored, few := after.opens(t)
	_, many := without.opens(t)
	if ignored != 0 || few+20 > many {
		t.Fatalf("%d snapshots ignored; %d reads with one, %d without", ignored, few, many)
	}
	t.Logf("%d reads with a snapshot, %d without", few, many)
}

// matrix G14, G15, G16, G17; mission 237
func TestASnapshotOfTheKeysThatDoesNotFitItsLogIsIgnored(t *testing.T) {
	mem := vfs.NewMem()
	first := closedInOrder(t, mem, 1200, "first")
	first.mem = mem.Clone()
	early := fileOf(t, mem, keysFile(disklog.Cache))
	second := closedInOrder(t, mem, 1200, "second")
	second.mem = mem.Clone()
	late := fileOf(t, mem, keysFile(disklog.Cache))
	other := closedInOrder(t, first.mem.Clone(), 1200, "secund") // as long, and another content
	compacted := compactedBeyond(t, mem)
	var flips []string
	cases := map[string]struct {
		disk keysDisk
		snap []byte
	}{
		"ahead of the log (G14)":      {first, late},
		"older than the base (G15)":   {compacted, early},
		"of another history (G16)":    {second, fileOf(t, other.mem, keysFile(disklog.Cache))},
		"cut short (G17)":             {second, late[:len(late)-1]},
		"with something behind (G17)": {second, append(slices.Clone(late), 0)},
		"empty (G17)":                 {second, []byte{}},
	}
	flipped := unlessRaced(24, 6)
	for at := 0; at < len(late); at += len(late)/flipped + 1 {
		broken := slices.Clone(late)
		broken[at] ^= 1 << (at % 8)
		name := fmt.Sprintf("bit flipped at %d (G17)", at)
		cases[name] = struct {
			disk keysDisk
			snap []byte
		}{second, broken}
		flips = append(flips, name)
	}
	for name, c := range cases {
		k := keysDisk{c.disk.mem.Clone(), c.disk.want}
		placeFile(t, k.mem, keysFile(disklog.Cache), c.snap)
		t.Run(name, func(t *testing.T) {
			if ignored, _ := k.opens(t); ignored == 0 {
				t.Error("it was not ignored, or nobody was told")
			}
		})
	}
	if len(flips) < flipped-1 {
		t.Errorf("%d flips", len(flips))
	}
}

// A snapshot of counters in the place of one of values, and the other way round.
//
// matrix G17
func TestASnapshotOfAnotherKindIsIgnored(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, smallSegments)
	h := d.cacheShard("users")
	d.wroteKeys(h, 1200, "first")
	putCounters(t, h, 20_000) // a megabyte of records
	k := keysDisk{mem, d.looks(h)}
	d.drain()
	values, sums := fileOf(t, mem, keysFile(disklog.Cache)), fileOf(t, mem, keysFile(disklog.CountersLog))
	if values == nil || sums == nil {
		t.Fatalf("snapshots of %d and %d bytes", len(values), len(sums))
	}
	placeFile(t, mem, keysFile(disklog.Cache), sums)
	placeFile(t, mem, keysFile(disklog.CountersLog), values)
	if ignored, _ := k.opens(t); ignored != 2 {
		t.Fatalf("%d were ignored", ignored)
	}
}

// putCounters adds often, with many requests under way.
func putCounters(t *testing.T, h *Handle, n int) {
	t.Helper()
	const together = 500
	for from := 0; from < n; from += together {
		r := newReplies()
		for i := range together {
			m := &CounterAdd{Key: "n", Delta: 1}
			m.To(r, shardcore.Token(i))
			if err := h.Ref.TrySend(m, Size(m)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range together {
			if a := r.wait(t, shardcore.Token(i)); a.Refusal != nil {
				t.Fatal(a.Refusal)
			}
		}
	}
}

// compactedBeyond compacts a disk until its log begins after what a snapshot tells of, and returns it as a kill leaves it.
func compactedBeyond(t *testing.T, mem *vfs.Mem) keysDisk {
	t.Helper()
	d := newDiskWorld(t, mem, smallSegments)
	h := d.cacheShard("users")
	d.await("the log begins after the first snapshot", func() bool {
		d.wroteKeys(h, keysDiskKeys, "third")
		oldest, _ := h.Log.Bounds()
		return oldest > 1200
	})
	k := keysDisk{want: d.looks(h)}
	k.mem = mem.Clone()
	d.stop()
	return k
}
