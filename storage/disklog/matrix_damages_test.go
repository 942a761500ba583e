package disklog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// victim is a store with two logs after a life that a seed chose: appends, cuts, retention, compression, snapshots, rest and restarts. Its
// last process was killed or stopped; all that was acknowledged is known.
type victim struct {
	disk *vfs.Mem
	ids  [2]id.LogID
	want [2][]*batch.Batch
	past map[string][][]byte // by path: what the file was
}

// pair are the specs of a victim's logs.
func pair(i int) disklog.Spec {
	s := orders()
	s.Shard, s.Compress = uint32(i), i == 0
	return s
}

// life makes a victim.
func life(t testing.TB, seed uint64) *victim {
	v := &victim{disk: vfs.NewMem(), past: map[string][][]byte{}}
	rnd := rand.New(rand.NewPCG(seed, 4))
	p := boot(t, v.disk)
	var logs [2]*disklog.Log
	open := func() {
		for i := range logs {
			s := pair(i)
			s.Log = v.ids[i]
			logs[i], _ = p.open(s)
			v.ids[i] = logs[i].ID()
		}
	}
	open()
	seq := uint64(1 << 20)
	for range 25 + rnd.IntN(30) {
		i := rnd.IntN(2)
		l := logs[i]
		switch n := rnd.IntN(20); {
		case n < 12:
			v.append(p, l, i, rnd)
		case n == 12:
			v.cut(p, l, i, rnd, &seq)
		case n == 13:
			l.SetRetention(disklog.Retention{Bytes: 14 << 10})
			if _, _, err := l.Retain(0, tailOf(l), 1<<30); err != nil {
				t.Fatal(err)
			}
			base, _, _ := l.Bounds()
			v.want[i] = slices.DeleteFunc(v.want[i], func(b *batch.Batch) bool { return b.Base < base })
		case n == 14:
			if _, err := l.CompressSealed(context.Background(), 1<<20); err != nil {
				t.Fatal(err)
			}
		case n == 15:
			if err := l.SaveSnapshot("producers", tailOf(l), []byte("state")); err != nil {
				t.Fatal(err)
			}
		case n == 16:
			p.rest()
		case n == 17:
			seq++
			l.SaveGeneration(seq, id.Generation(seq))
			p.exec.Run()
		case n == 18:
			p.stop(logs[:]...)
			p = boot(t, v.disk)
			open()
		}
		v.remember(t)
	}
	if seed%2 == 0 {
		p.stop(logs[:]...)
	}
	v.disk = v.disk.Clone()
	return v
}

func (v *victim) append(p *process, l *disklog.Log, i int, rnd *rand.Rand) {
	for range 1 + rnd.IntN(12) {
		size := rnd.IntN(400)
		if rnd.IntN(10) == 0 {
			size = rnd.IntN(6000)
		}
		b := made(tailOf(l), size, byte(rnd.Uint32()))
		l.Append(uint64(b.Base)+1, []*batch.Batch{b})
		p.exec.Run()
		v.want[i] = append(v.want[i], b)
	}
}

// cut drops the last few batches. What the files were is forgotten: an old copy of a sealed segment from before a cut may end where the one
// in its place does, which only a replica finds out. See storage/segment/README.md.
func (v *victim) cut(p *process, l *disklog.Log, i int, rnd *rand.Rand, seq *uint64) {
	keep := len(v.want[i]) - rnd.IntN(5)
	if keep < 1 {
		return
	}
	*seq++
	l.TruncateTo(*seq, v.want[i][keep-1].End())
	p.exec.Run()
	v.want[i] = v.want[i][:keep:keep]
	for _, name := range slices.Sorted(maps.Keys(v.past)) {
		if strings.HasPrefix(name, l.Dir()+"/") && strings.HasSuffix(name, ".log") {
			delete(v.past, name)
		}
	}
}

// names are all files of the store, sorted.
func (v *victim) names(t testing.TB, disk *vfs.Mem) (all []string) {
	for i := range 2 {
		s := pair(i)
		for _, name := range files(t, disk, s.Dir()) {
			all = append(all, s.Dir()+"/"+name)
		}
	}
	return all
}

func (v *victim) remember(t testing.TB) {
	for _, name := range v.names(t, v.disk) {
		b := load(t, v.disk, name)
		if old := v.past[name]; len(old) == 0 || !bytes.Equal(old[len(old)-1], b) {
			v.past[name] = append(old, b)
		}
	}
}

// damage does one thing to one file of a disk, or to two files or directories that change places, and says what.
func (v *victim) damage(t testing.TB, disk *vfs.Mem, rnd *rand.Rand) (what, name string) {
	all := v.names(t, disk)
	name = all[rnd.IntN(len(all))]
	b := load(t, disk, name)
	other := all[rnd.IntN(len(all))]
	size := []int{1, 64, 512, 4096}[rnd.IntN(4)]
	switch rnd.IntN(40) {
	default:
		if len(b) > 0 {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		what = "flip a bit of"
	case 0, 1, 2, 3:
		if len(b) > 0 {
			from := rnd.IntN(len(b)) / size * size
			clear(b[from:min(from+size, len(b))])
		}
		what = "zero a block of"
	case 4, 5, 6, 7:
		b, what = b[:rnd.IntN(len(b)+1)], "cut"
	case 8, 9, 10, 11:
		more := make([]byte, 1+rnd.IntN(600))
		if rnd.IntN(2) == 0 {
			more = b[rnd.IntN(len(b)+1):]
		}
		b, what = append(b, more...), "grow"
	case 12, 13, 14, 15:
		a := load(t, disk, other)
		store(t, disk, other, b)
		b, what = a, "swap "+other+" with"
	case 16, 17, 18, 19:
		if old := v.past[name]; len(old) > 0 {
			b = old[rnd.IntN(len(old))]
		}
		what = "bring back an older"
	case 20, 21, 22, 23:
		if old := v.past[other]; len(old) > 0 {
			b = old[rnd.IntN(len(old))]
		}
		what = "put " + other + " in the place of"
	case 24, 25, 26, 27:
		if err := disk.Remove(name); err != nil {
			t.Fatal(err)
		}
		return "lose", name
	case 28:
		exchange(t, disk)
		return "exchange", "directories"
	}
	store(t, disk, name, b)
	return what, name
}

// exchange has the directories of the two logs change places.
func exchange(t testing.TB, disk *vfs.Mem) {
	a, b := pair(0), pair(1)
	for _, step := range [][2]string{{a.Dir(), "between"}, {b.Dir(), a.Dir()}, {"between", b.Dir()}} {
		if err := disk.Rename(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// typed reports whether a refusal says what is wrong in a way that a program can tell.
func typed(err error) bool {
	var c *disklog.CorruptionError
	var v *segment.VersionError
	var m *disklog.MissingError
	return errors.As(err, &c) || errors.As(err, &v) || errors.As(err, &m)
}

// verdict opens both logs of a damaged store and reads them whole. wrong is what must not be: a record that is missing or another one without
// anybody being told, or a refusal without a type.
func (v *victim) verdict(t testing.TB, disk *vfs.Mem, mode disklog.VerifyMode) (refused bool, wrong string) {
	p := boot(t, disk, func(o *disklog.Options) { o.Verify = mode })
	for i := range 2 {
		s := pair(i)
		s.Log = v.ids[i]
		l, err := p.store.Open(s, &report{failed: map[uint64]error{}}, nil)
		if err == nil {
			var have []*batch.Batch
			if have, err = everything(l); err == nil {
				if why := differ(have, v.want[i]); why != "" {
					return refused, fmt.Sprintf("log %d opens and %s", i, why)
				}
				continue
			}
			if mode == disklog.VerifyFull {
				return true, fmt.Sprintf("log %d opens although its reader finds %v", i, err)
			}
		}
		refused = true
		if !typed(err) {
			return true, fmt.Sprintf("log %d refuses with %T %v", i, err, err)
		}
	}
	return refused, ""
}

// One damage to one file of a store, from a flipped bit to a file in another's place: each log refuses by type, or its reader does, or every
// record that was acknowledged is there as it was and nothing else is.
//
// matrix A7, A8, A10, A18, A20, A21, A22, B4, B12, B13, B15, B16, C3, C4, C5, C6, C7, C8, M1, M2, M5, M7, L1, L5, L7, L14; field case DUR-04 (one copy); mission 278
func TestNoSingleDamageToAStoreIsServedAsData(t *testing.T) {
	const perLife = 50
	counts, refusals, opened := map[string]int{}, 0, 0
	for left, seed := effort.Size("store_damages"), uint64(0); left > 0; seed++ {
		v := life(t, seed)
		if refused, wrong := v.verdict(t, v.disk.Clone(), disklog.VerifyFull); refused || wrong != "" {
			t.Fatalf("seed %d, without any damage: %v, %s", seed, refused, wrong)
		}
		rnd := rand.New(rand.NewPCG(seed, 8))
		before := v.disk.Hash()
		for done := 0; done < perLife && left > 0; {
			disk, mode := v.disk.Clone(), disklog.VerifyMode(rnd.IntN(3))
			what, name := v.damage(t, disk, rnd)
			if disk.Hash() == before {
				continue // nothing is different
			}
			left, done = left-1, done+1
			refused, wrong := v.verdict(t, disk, mode)
			if wrong != "" {
				t.Errorf("seed %d: %s %s, opened %s: %s", seed, what, name, mode, wrong)
			}
			counts[strings.Fields(what)[0]+" "+path.Ext(name)]++
			if refused {
				refusals++
			} else {
				opened++
			}
		}
	}
	t.Logf("%d refused, %d opened whole: %v", refusals, opened, counts)
	if refusals*10 < opened || opened*10 < refusals {
		t.Error("the damages prove little")
	}
}
