package disklog_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// A tail is torn at every byte of the last three batches, which nobody was promised yet, and once more with zeros in the place of the rest.
// Everything before the batch that was torn is there, and the next append takes its place.
//
// field case DUR-05; matrix A2, A3, A5, A6, A15; mission 277
func TestDUR05_ATailTornAtAnyByteIsCutToTheLastWholeBatch(t *testing.T) {
	mem := vfs.NewMem()
	big := func(o *disklog.Options) { o.SegmentBytes, o.IndexSpacing, o.ReadBytes = 4<<20, 4096, 0 }
	p := boot(t, mem, big)
	l, n := p.open(orders())
	rnd := rand.New(rand.NewPCG(5, 5))
	var sizes []int
	for range 197 {
		sizes = append(sizes, rnd.IntN(5001))
	}
	list := p.write(l, sizes...)
	p.rest() // so that there is an index
	name := l.Dir() + "/" + segment.FileName(0)
	promised := len(load(t, mem, name))
	p.exec.Hold(func(j diskpool.Job) bool { return j.Kind == diskpool.Sync })
	last := p.write(l, 2001, 0, 611)
	if n.persisted != 197 {
		t.Fatalf("acknowledged up to %d", n.persisted)
	}
	whole := load(t, mem, name)
	ends := []int{promised}
	for _, b := range last {
		ends = append(ends, ends[len(ends)-1]+segment.BatchHeaderSize+len(b.Body))
	}
	if ends[3] != len(whole) {
		t.Fatalf("the file has %d bytes, its batches end at %v", len(whole), ends)
	}
	stride := max(1, (len(whole)-promised)/effort.Size("torn_positions"))
	for cut := promised; cut <= len(whole); cut += stride {
		for _, zeros := range []int{0, len(whole) - cut} {
			torn := append(whole[:cut:cut], make([]byte, zeros)...)
			kept := 0
			for kept < 3 && len(torn) >= ends[kept+1] && bytes.Equal(torn[:ends[kept+1]], whole[:ends[kept+1]]) { // a batch may end in zeros
				kept++
			}
			disk := mem.Clone()
			store(t, disk, name, torn)
			q := boot(t, disk, big)
			l, told := q.open(orders())
			want := append(list[:197:197], last[:kept]...)
			if zeros > 0 && kept < 3 && l.Recovery().TruncatedBytes == 0 {
				t.Fatalf("cut at %d, %d zeros: nothing was cut off", cut, zeros)
			}
			if have, err := everything(l); err != nil || differ(have, want) != "" {
				t.Fatalf("cut at %d, %d zeros: %v, %s", cut, zeros, err, differ(have, want))
			}
			more := q.write(l, 33)
			if more[0].Base != id.Offset(197+kept) || told.persisted != uint64(more[0].Base)+1 {
				t.Fatalf("cut at %d, %d zeros: the next append went to %d, %+v", cut, zeros, more[0].Base, told)
			}
			q.stop(l)
		}
	}
}

// Indexes, the mark and snapshots are lost, emptied, cut, overwritten or replaced by older ones, alone and in random combinations: all
// records are there, and look-ups by time and by offset answer as before.
//
// field case DUR-06; matrix C1, C2, C4, C6, C7, M1, M2, M8, M12; mission 279
func TestDUR06_SideFilesCanBeLostEmptiedOrStale(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, _ := p.open(orders())
	list := p.write(l, repeat(30, 300)...)
	if err := l.SaveSnapshot("producers", 30, []byte("early")); err != nil {
		t.Fatal(err)
	}
	p.rest()
	old := map[string][]byte{}
	for _, name := range files(t, mem, l.Dir()) {
		old[name] = load(t, mem, l.Dir()+"/"+name)
	}
	list = append(list, p.write(l, repeat(190, 300)...)...)
	if err := l.SaveSnapshot("producers", 200, []byte("late")); err != nil {
		t.Fatal(err)
	}
	dir := l.Dir()
	p.stop(l)
	var side []string
	segments := 0
	for _, name := range files(t, mem, dir) {
		switch {
		case strings.HasSuffix(name, ".index") || name == segment.MarkName || name == segment.SnapshotName("producers"):
			side = append(side, name)
		case strings.HasSuffix(name, ".log"):
			segments++
		}
	}
	if segments < 20 || len(side) < 20 {
		t.Fatalf("%d segments, %d side files", segments, len(side))
	}
	rnd := rand.New(rand.NewPCG(6, 6))
	spoil := func(disk *vfs.Mem, name string, how int) string {
		b := load(t, disk, dir+"/"+name)
		switch how {
		case 0:
			if err := disk.Remove(dir + "/" + name); err != nil {
				t.Fatal(err)
			}
			return "lost " + name
		case 1:
			store(t, disk, dir+"/"+name, nil)
			return "emptied " + name
		case 2:
			store(t, disk, dir+"/"+name, b[:rnd.IntN(len(b))])
			return "cut " + name
		case 3:
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			store(t, disk, dir+"/"+name, b)
			return "random " + name
		}
		was, ok := old[name]
		if !ok {
			was = old[segment.IndexName(0)] // of another segment
		}
		store(t, disk, dir+"/"+name, was)
		return "older " + name
	}
	try := func(what string, disk *vfs.Mem) {
		q := boot(t, disk)
		l, _ := q.open(orders())
		if have, err := everything(l); err != nil || differ(have, list) != "" {
			t.Fatalf("%s: %v, %s", what, err, differ(have, list))
		}
		if g := l.Generation(); g != 0 { // no replica file was ever written
			t.Fatalf("%s: generation %d", what, g)
		}
		for at := id.Offset(0); at < 220; at += 13 {
			page, err := l.Read(context.Background(), at, 220, 1, 1, nil)
			if err != nil || len(page) != 1 || differ(page, list[at:at+1]) != "" {
				t.Fatalf("%s: read at %d: %v", what, at, err)
			}
			found, ok, err := l.OffsetForTime(context.Background(), 1000*(uint64(at)+1), 220)
			if err != nil || !ok || found != at {
				t.Fatalf("%s: the time of %d is found at %d, %v, %v", what, at, found, ok, err)
			}
		}
		if asOf, body, ok := l.Snapshot("producers"); ok && (string(body) != "late" || asOf != 200) && (string(body) != "early" || asOf != 30) {
			t.Fatalf("%s: the snapshot says %q as of %d", what, body, asOf)
		}
		q.stop(l)
	}
	for _, name := range side {
		for how := range 5 {
			disk := mem.Clone()
			try(spoil(disk, name, how), disk)
		}
	}
	for range 40 {
		disk, what := mem.Clone(), ""
		for _, name := range side {
			if rnd.IntN(3) == 0 {
				what += spoil(disk, name, rnd.IntN(5)) + ", "
			}
		}
		try(what, disk)
	}
}

// Segments are filled to a few bytes below, at and above every size that could be meant by the limit, with a restart before each append.
// Readers that stop at a boundary go on there.
//
// field case DUR-12; matrix A24, B1
func TestDUR12_EveryBoundaryIsReadableHoweverASegmentIsFilled(t *testing.T) {
	const limit = 64 << 10
	small := func(o *disklog.Options) { o.SegmentBytes, o.IndexSpacing, o.ReadBytes = limit, 4096, 0 }
	const overhead = segment.BatchHeaderSize + 4
	var totals []int // bytes of a segment in all its batches
	for _, counted := range []int{0, segment.HeaderSize, segment.FooterSize, segment.HeaderSize + segment.FooterSize} {
		for d := -2; d <= 2; d++ {
			totals = append(totals, limit-counted+d)
		}
	}
	for _, total := range totals {
		for _, first := range []int{20_000, total - overhead} { // two batches to a segment, and one
			t.Run(fmt.Sprintf("%d bytes, %d first", total, first), func(t *testing.T) {
				var sizes []int
				for range 5 {
					sizes = append(sizes, first)
					if first != total-overhead {
						sizes = append(sizes, total-first-2*overhead)
					}
				}
				mem := vfs.NewMem()
				var list []*batch.Batch
				for _, size := range append(sizes, 10) {
					p := boot(t, mem, small)
					l, n := p.open(orders())
					list = append(list, p.write(l, size)...)
					if n.persisted != uint64(len(list)) {
						t.Fatalf("append %d: %+v", len(list), n)
					}
					p.stop(l)
				}
				p := boot(t, mem, small)
				l, _ := p.open(orders())
				holds(t, l, list)
				if got := l.Recovery().Segments; got < 4 || got > 12 {
					t.Fatalf("%d segments", got)
				}
				for _, b := range list {
					page, err := l.Read(context.Background(), b.Base, b.End(), 9, 1<<20, nil)
					if err != nil || differ(page, []*batch.Batch{b}) != "" {
						t.Fatalf("a reader that goes on at %d: %v, %s", b.Base, err, differ(page, []*batch.Batch{b}))
					}
				}
				p.stop(l)
			})
		}
	}
}

// The largest record there may be is there whole, or after a kill in the middle of its write not at all.
//
// matrix A23
func TestA23_TheLargestRecordIsThereWholeOrNotAtAll(t *testing.T) {
	mem := vfs.NewMem()
	roomy := func(o *disklog.Options) { o.SegmentBytes, o.ReadBytes = 1<<20, 0 }
	p := boot(t, mem, roomy)
	l, _ := p.open(orders())
	list := p.write(l, 10)
	large := &batch.Batch{Base: 1, Count: 1, Generation: 3, Kind: batch.Records, AppendMicros: 2000, Body: make([]byte, 64<<20), PayloadBytes: 64<<20 - 4}
	copy(large.Body, []byte{3, 0xff, 0xff, 0xfc})
	large.Body[40<<20] = 1
	var torn *vfs.Mem
	mem.OnOp(func(op vfs.Op) {
		if torn == nil && op.Call == vfs.CallWrite && op.Phase == vfs.Midway {
			torn = mem.Clone()
		}
	})
	l.Append(2, []*batch.Batch{large})
	p.exec.Run()
	mem.OnOp(nil)
	if torn == nil {
		t.Fatal("no write was seen in the middle")
	}
	reopened(t, torn, list, roomy)
	p.stop(l)
	reopened(t, mem, append(list, large), roomy)
}

// What a newer build wrote is refused, and no byte of it is changed; the newer build goes on where it was.
//
// field case OPS-05; matrix B17, B18
func TestOPS05_ANewerFormatIsRefusedAndNothingIsTouched(t *testing.T) {
	mem := vfs.NewMem()
	p := boot(t, mem)
	l, _ := p.open(orders())
	list := p.write(l, repeat(30, 300)...)
	l.SaveGeneration(40, 9)
	p.exec.Run()
	dir, log := l.Dir(), l.ID()
	p.stop(l)
	newer := func(name string, change func(b []byte)) func(t *testing.T, disk *vfs.Mem) {
		return func(t *testing.T, disk *vfs.Mem) {
			b := load(t, disk, dir+"/"+name)
			change(b)
			store(t, disk, dir+"/"+name, b)
		}
	}
	bump := func(at, sum int, sumOf func(b []byte) uint32) func(b []byte) {
		return func(b []byte) {
			b[at]++
			put32(b[sum:], sumOf(b[:sum]))
		}
	}
	salted := func(b []byte) uint32 { return segment.Extend(segment.Sum(log[:]), b) }
	for what, spoil := range map[string]func(t *testing.T, disk *vfs.Mem){
		"log.meta":       newer(segment.MetaName, bump(5, segment.MetaSize-4, salted)),
		"a segment":      newer(segment.FileName(0), bump(5, segment.HeaderSize-4, segment.Sum)),
		"the newest one": newer(segment.FileName(2), bump(5, segment.HeaderSize-4, segment.Sum)),
		"the replica": newer(segment.ReplicaName, func(b []byte) {
			b[5]++ // the version of one with lost ends
			bump(5, segment.ReplicaSize-4, salted)(b)
		}),
		"a kind of batch": newer(segment.FileName(2), func(b []byte) {
			h := b[segment.HeaderSize:]
			h[28] = 9
			put32(h[4:], salted(h[8:segment.BatchHeaderSize]))
		}),
	} {
		t.Run(what, func(t *testing.T) {
			disk := mem.Clone()
			spoil(t, disk)
			q := boot(t, disk) // makes or changes nothing but its lock
			before := disk.Hash()
			if l, err := q.store.Open(orders(), &report{}, nil); err == nil {
				t.Fatalf("it opens at %d", l.Generation())
			} else if !strings.Contains(err.Error(), "version") && !strings.Contains(err.Error(), "kind") {
				t.Errorf("the refusal does not say what it is: %v", err)
			}
			if disk.Hash() != before {
				t.Error("the refusal changed the disk")
			}
			if err := q.store.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	reopened(t, mem, list)
}

func put32(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}
