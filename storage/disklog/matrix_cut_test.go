package disklog_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// everyCrash calls f with every disk that a power cut can leave of mem, at most limit.
func everyCrash(mem *vfs.Mem, limit int, f func(*vfs.Mem)) {
	var chosen []int
	for range limit {
		var most, made []int
		f(mem.Crash(func(n int) int {
			k := 0
			if len(made) < len(chosen) {
				k = chosen[len(made)]
			}
			made, most = append(made, k), append(most, n)
			return k
		}))
		last := len(made) - 1
		for last >= 0 && made[last]+1 == most[last] {
			last--
		}
		if last < 0 {
			return
		}
		chosen = made[:last+1]
		chosen[last]++
	}
}

// Power goes at each operation of a retention run, of a cut and of a reset, with every set of changes that can have reached the disk: the
// log opens without help, begins and ends where it may, and has everything that was not to go.
//
// field case DUR-10; matrix F1, F11, F13, B5, J8
func TestDUR10_APowerCutOfRetentionCutOrResetLeavesALogThatOpens(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, _ := p.open(orders())
	list := p.write(l, repeat(12*7+3, 480)...)
	if err := l.SaveSnapshot("producers", 80, []byte("state")); err != nil {
		t.Fatal(err)
	}
	if n := l.Recovery().Segments; n != 1 {
		t.Fatal(n)
	}
	begins := boundaries(t, mem, l)
	p.stop(l)
	if len(begins) < 12 {
		t.Fatalf("%d segments", len(begins))
	}
	tail := list[len(list)-1].End()
	cases := map[string]struct {
		do    func(p *process, l *disklog.Log)
		begin []id.Offset // where the log may begin
		end   []id.Offset // and end
	}{
		"retention": {
			func(_ *process, l *disklog.Log) {
				l.SetRetention(disklog.Retention{Age: time.Millisecond})
				removed, _, err := l.Retain(1000*(uint64(begins[5])+1)+1000, tail, 1<<30)
				if err != nil || removed.Segments != 5 {
					t.Fatal(removed, err)
				}
			}, begins[:6], []id.Offset{tail},
		},
		"a cut": {
			func(p *process, l *disklog.Log) { l.TruncateTo(1000, begins[7]+1); p.exec.Run() },
			begins[:1], append(append([]id.Offset(nil), begins[7:]...), begins[7]+1, tail),
		},
		"a reset": {
			func(p *process, l *disklog.Log) { l.ResetTo(1000, 5000); p.exec.Run() },
			[]id.Offset{0, 5000}, append(append([]id.Offset(nil), begins[1:]...), tail, 5000),
		},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			mem := mem.Clone()
			p := boot(t, mem)
			l, _ := p.open(orders())
			chance := rand.New(rand.NewPCG(10, 10))
			seen, states := map[uint64]bool{}, map[[2]id.Offset]bool{}
			check := func(image *vfs.Mem) {
				if seen[image.Hash()] {
					return
				}
				seen[image.Hash()] = true
				q := boot(t, image)
				l, _ := q.open(orders())
				base, _, end := l.Bounds()
				if !among(base, c.begin) || !among(end, c.end) || base == 5000 != (end == 5000) {
					t.Fatalf("the log is %d to %d", base, end)
				}
				states[[2]id.Offset{base, end}] = true
				if base < 5000 {
					holds(t, l, list[base:end])
				}
				if asOf, _, ok := l.Snapshot("producers"); ok && (end < 80 || asOf != 80) {
					t.Fatalf("a snapshot as of %d of a log that ends at %d", asOf, end)
				}
				q.stop(l)
			}
			calls := 0
			mem.OnOp(func(vfs.Op) {
				if calls++; testing.Short() && calls%3 != 0 { // the race detector finds nothing in one goroutine
					return
				}
				check(mem.Clone())
				everyCrash(mem, 24, check)
				for range 16 { // names come before pages, of which there are too many ways
					check(mem.Crash(chance.IntN))
				}
			})
			c.do(p, l)
			mem.OnOp(nil)
			check(mem.Clone())
			if len(states) < 2 || len(seen) < 8 {
				t.Errorf("%d disks, %d outcomes: it proves little", len(seen), len(states))
			}
			t.Logf("%d disks, %d outcomes", len(seen), len(states))
			p.stop(l)
		})
	}
}

// boundaries is where each segment of a log begins.
func boundaries(t testing.TB, disk vfs.FS, l *disklog.Log) (list []id.Offset) {
	t.Helper()
	for _, name := range files(t, disk, l.Dir()) {
		if len(name) == len(segment.FileName(0)) && name[20:] == ".log" {
			h, err := segment.DecodeHeader(load(t, disk, l.Dir()+"/"+name)[:segment.HeaderSize])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, h.Base)
		}
	}
	return list
}

func among(o id.Offset, list []id.Offset) bool {
	for _, x := range list {
		if x == o {
			return true
		}
	}
	return false
}

// A head that is missing, although retention did not take it, is never taken for a shorter log.
//
// field case DUR-04 (one copy); matrix F2, B12
func TestF2_AMissingHeadIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, _ := p.open(orders())
	p.write(l, repeat(40, 480)...)
	dir := l.Dir()
	p.stop(l)
	for _, gone := range [][]uint64{{0}, {1}, {0, 1}, {2}} {
		disk := mem.Clone()
		for _, n := range gone {
			if err := disk.Remove(dir + "/" + segment.FileName(n)); err != nil {
				t.Fatal(err)
			}
		}
		var c *disklog.CorruptionError
		if _, err := boot(t, disk).store.Open(orders(), &report{}, nil); !errors.As(err, &c) || c.Kind != segment.SegmentMissing {
			t.Errorf("without %v: %v", gone, err)
		}
	}
}

// With a bound below one segment the segment that is written to stays, however often retention runs, and it costs no writing.
//
// matrix F3
func TestF3_ABoundBelowASegmentKeepsTheNewestAndWritesNothing(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, _ := p.open(orders())
	list := p.write(l, repeat(5, 480)...)
	l.SetRetention(disklog.Retention{Bytes: 1, Age: 1})
	ops := 0
	mem.OnOp(func(vfs.Op) { ops++ })
	for range 100 {
		if removed, more, err := l.Retain(math.MaxUint64, 5, 1<<30); removed.Segments != 0 || more || err != nil {
			t.Fatal(removed, more, err)
		}
	}
	if ops != 0 {
		t.Errorf("%d operations", ops)
	}
	holds(t, l, list)
}

// Times of records that are far off, zero, or the greatest there is: nothing goes before its time by the broker's clock, whatever the clock
// does, and what is old goes although its neighbours are not. A look-up answers with an offset of the log, the right one where times grow.
// The directory's own times, for example of a restored copy, say nothing.
//
// field case STR-14; matrix F7, F8, F9, L10
func TestSTR14_FarTimesBreakNeitherRetentionNorLookUps(t *testing.T) {
	const now = uint64(1_800_000_000_000_000)
	const year = uint64(365 * 24 * 3600 * 1_000_000)
	times := []uint64{0, 1, now - year, now - 1, now, now + 10*year, math.MaxInt64, math.MaxUint64, now + 1, now + 2}
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, n := p.open(orders())
	var list []*batch.Batch
	for i, at := range times {
		b := made(id.Offset(i), 4000, 0) // a segment each
		b.AppendMicros = at
		l.Append(uint64(i)+1, []*batch.Batch{b})
		list = append(list, b)
	}
	p.exec.Run()
	if n.persisted != uint64(len(times)) {
		t.Fatalf("%+v", n)
	}
	lookUp := func(l *disklog.Log) {
		t.Helper()
		for _, at := range []uint64{0, 1, 2, now - year - 1, now - 1, now, now + 5*year, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64} {
			base, _, tail := l.Bounds()
			got, ok, err := l.OffsetForTime(context.Background(), at, tail)
			if err != nil || ok && (got < base || got >= tail) {
				t.Fatalf("at %d: %d, %v, %v", at, got, ok, err)
			}
			want := base
			for want < tail && times[want] < at {
				want++
			}
			if ok != (want < tail) || ok && got != want {
				t.Errorf("at %d: %d, %v, want %d", at, got, ok, want)
			}
		}
	}
	lookUp(l)
	l.SetRetention(disklog.Retention{Age: 5 * time.Second})
	retain := func(l *disklog.Log, clock uint64, base id.Offset) {
		t.Helper()
		if _, _, err := l.Retain(clock, tailOf(l), 1<<30); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := l.Bounds(); got != base {
			t.Fatalf("with the clock at %d the log begins at %d, want %d", clock, got, base)
		}
	}
	retain(l, 0, 0) // a clock that was set back
	retain(l, now-24*3600*1_000_000, 3)
	retain(l, 5, 3)
	retain(l, now+6_000_000, 5)
	lookUp(l)
	p.stop(l)
	p = boot(t, mem)
	l, _ = p.open(orders())
	l.SetRetention(disklog.Retention{Age: 5 * time.Second})
	holds(t, l, list[5:])
	retain(l, now+9*year, 5)
	retain(l, now+11*year, 6)
	retain(l, math.MaxUint64, 7)
	holds(t, l, list[7:])
	lookUp(l)
}

// tailOf is where a log ends.
func tailOf(l *disklog.Log) id.Offset { _, _, tail := l.Bounds(); return tail }

// Age goes by the newest record of a segment and by nothing that is not written yet: what is claimed and not durable is past the floor.
//
// field case STR-11; matrix F10
func TestSTR11_RetentionKeepsWhatIsNotCommitted(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, n := p.open(orders())
	list := p.write(l, repeat(30, 480)...)
	begins := boundaries(t, mem, l)
	l.SetRetention(disklog.Retention{Bytes: 1, Age: time.Microsecond})
	floor := begins[2] + 3 // inside the third segment
	for range 3 {
		if _, _, err := l.Retain(math.MaxUint64, floor, 1<<30); err != nil {
			t.Fatal(err)
		}
		if base, _, _ := l.Bounds(); base != begins[2] {
			t.Fatalf("the log begins at %d, want %d", base, begins[2])
		}
	}
	l.SaveCommit(100, floor)
	p.exec.Run()
	if n.persisted != 100 {
		t.Fatalf("%+v", n)
	}
	p.stop(l)
	p = boot(t, mem) // the hold is in force right after a restart
	l, n = p.open(orders())
	l.TruncateTo(1, floor-1)
	p.exec.Run()
	var below *disklog.BelowCommitError
	if !errors.As(n.failed[1], &below) || below.Commit != floor {
		t.Fatalf("a cut below the commit offset: %v", n.failed[1])
	}
	holds(t, l, list[begins[2]:])
}

// Retention needs no room: on a full disk it removes what it may, and the next append lands.
//
// field case OPS-01
func TestOPS01_RetentionRunsOnAFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, n := p.open(orders())
	list := p.write(l, repeat(60, 480)...)
	p.rest() // no file is open, so that all has to be opened on the full disk
	mem.SetCapacity(0)
	next := list[len(list)-1].End()
	l.Append(100, []*batch.Batch{made(next, 4000, 0)})
	p.exec.Run()
	if !vfs.IsNoSpace(n.failed[100]) {
		t.Fatalf("an append to a full disk: %+v", n)
	}
	used := mem.Used()
	l.SetRetention(disklog.Retention{Bytes: 12 << 10})
	removed, _, err := l.Retain(0, next, 1<<30)
	if err != nil || removed.Segments < 3 {
		t.Fatalf("retention on a full disk: %+v, %v", removed, err)
	}
	mem.SetCapacity(used)
	more := p.write(l, 4000)
	if n.persisted != uint64(more[0].Base)+1 || len(n.poisoned) > 0 {
		t.Fatalf("an append after retention: %+v", n)
	}
	base, _, _ := l.Bounds()
	want := append(list[base:len(list):len(list)], more...)
	holds(t, l, want)
	p.stop(l)
	mem.SetCapacity(0) // and a start on a full disk
	p = boot(t, mem)
	l, _ = p.open(orders())
	holds(t, l, want)
}

// Removing one of very many segments costs what removing one of a few costs.
//
// field case OPS-15
func TestOPS15_RemovingASegmentCostsNoMoreInALargeLog(t *testing.T) {
	perSegment := func(segments int) uint64 {
		p := boot(t, vfs.NewMem())
		l, _ := p.open(orders())
		p.write(l, repeat(segments+1, 4000)...)
		l.SetRetention(disklog.Retention{Bytes: 1})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		removed, _, err := l.Retain(0, tailOf(l), 1<<40)
		runtime.ReadMemStats(&after)
		if err != nil || removed.Segments != segments {
			t.Fatal(removed, err)
		}
		return (after.TotalAlloc - before.TotalAlloc) / uint64(segments)
	}
	small, large := 100, 3000
	if effort.Raced && !effort.Full() {
		large = 1000
	}
	few, many := perSegment(small), perSegment(large)
	t.Logf("%d bytes for one of %d, %d for one of %d", few, small, many, large)
	if many > 3*few {
		t.Errorf("%d bytes for one of %d, %d for one of %d", few, small, many, large)
	}
}
