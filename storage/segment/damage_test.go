package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/vfs"
)

// past is what the files of a log once were.
type past map[string][][]byte

// remember keeps every file as it is now.
func (p past) remember(t testing.TB, disk vfs.FS) {
	names, err := disk.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		b := load(t, disk, e.Name)
		if old := p[e.Name]; len(old) == 0 || !bytes.Equal(old[len(old)-1], b) {
			p[e.Name] = append(p[e.Name], b)
		}
	}
}

func load(t testing.TB, disk vfs.FS, name string) []byte {
	t.Helper()
	f, err := disk.Open(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); size > 0 && err != nil && int64(len(b)) != size {
		t.Fatal(err)
	}
	return b
}

// store replaces a file, or makes it.
func store(t testing.TB, disk vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := disk.Create(name)
	if err != nil {
		if f, err = disk.Open(name, true); err != nil {
			t.Fatal(err)
		}
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// damage is one thing that happens to one file of a log (to two, for swap). It says what it did; "" if it could do nothing.
type damage func(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, log, other past) string

func damages() []damage {
	return []damage{flip, zero, cutShort, grow, swap, stale, misplace, vanish}
}

func flip(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, _, _ past) string {
	b := load(t, disk, name)
	if len(b) == 0 {
		return ""
	}
	b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
	store(t, disk, name, b)
	return "flip"
}

func zero(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, _, _ past) string {
	b := load(t, disk, name)
	size := []int{1, 64, 512, 4096}[rnd.IntN(4)]
	if len(b) == 0 {
		return ""
	}
	from := rnd.IntN(len(b)) / size * size
	clear(b[from:min(from+size, len(b))])
	store(t, disk, name, b)
	return "zero"
}

func cutShort(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, _, _ past) string {
	b := load(t, disk, name)
	if len(b) == 0 {
		return ""
	}
	n := rnd.IntN(len(b))
	if rnd.IntN(3) == 0 {
		n = []int{0, min(HeaderSize, len(b)-1), max(len(b)-FooterSize, 0)}[rnd.IntN(3)]
	}
	store(t, disk, name, b[:n])
	return "cut"
}

func grow(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, _, _ past) string {
	b := load(t, disk, name)
	more := make([]byte, 1+rnd.IntN(600))
	switch rnd.IntN(3) {
	case 0:
		for i := range more {
			more[i] = byte(rnd.Uint32())
		}
	case 1:
		more = b[rnd.IntN(len(b)+1):]
	}
	store(t, disk, name, append(b, more...))
	return "grow"
}

func swap(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, _, _ past) string {
	names, err := disk.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	other := names[rnd.IntN(len(names))].Name
	a, b := load(t, disk, name), load(t, disk, other)
	store(t, disk, name, b)
	store(t, disk, other, a)
	return "swap with " + other
}

func stale(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, log, _ past) string {
	versions := log[name]
	if len(versions) == 0 {
		return ""
	}
	store(t, disk, name, versions[rnd.IntN(len(versions))])
	return "stale"
}

func misplace(t testing.TB, rnd *rand.Rand, disk vfs.FS, name string, log, other past) string {
	from := log
	source := name
	if rnd.IntN(2) == 0 {
		from = other
	} else {
		names, err := disk.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		source = names[rnd.IntN(len(names))].Name
	}
	versions := from[source]
	if len(versions) == 0 {
		return ""
	}
	store(t, disk, name, versions[rnd.IntN(len(versions))])
	return "misplace " + source
}

func vanish(t testing.TB, _ *rand.Rand, disk vfs.FS, name string, _, _ past) string {
	if err := disk.Remove(name); err != nil {
		t.Fatal(err)
	}
	return "vanish"
}

// live writes a log for a while, and keeps what its files were.
func live(t testing.TB, seed uint64, steps int, other bool) (*writer, *vfs.Mem, past) {
	disk, log := vfs.NewMem(), past{}
	w := newWriter(t, disk, seed)
	if other {
		w.meta.Log[0]++
		w.salt = SaltOf(w.meta.Log)
	}
	w.create(5)
	w.forget = func(from uint64) { // a sealed segment from before a cut may end where the one after it does: see the README
		for k := from; k <= from+uint64(steps); k++ {
			delete(log, FileName(k))
		}
	}
	for range steps {
		w.step()
		log.remember(t, disk)
	}
	return w, disk, log
}

// TestNoSingleDamageLosesAnAcknowledgedRecord damages one file of a log whose writer was killed. The log must refuse, by type, or
// open with every record that was acknowledged, and with nothing that was never written.
//
// A7-A10, A18, A20-A22, B4, B11-B17, C1-C7, M1, M2, M4, M5, M7; promise A of the package. mission 278
func TestNoSingleDamageLosesAnAcknowledgedRecord(t *testing.T) {
	refused, opened := 0, 0
	for seed := range rounds(60, 2000) {
		w, disk, log := live(t, seed, 20+int(seed%20), false)
		_, _, other := live(t, seed, 20, true)
		rnd := rand.New(rand.NewPCG(seed, 3))
		names, err := disk.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			image := disk.Clone()
			name := names[rnd.IntN(len(names))].Name
			did := damages()[rnd.IntN(len(damages()))](t, rnd, image, name, log, other)
			if did == "" {
				continue
			}
			in := w.input(image)
			in.Verify = Verify(rnd.IntN(3))
			p, err := NewPlan(in)
			if err != nil {
				refused++
				var c *CorruptionError
				var v *VersionError
				var m *MissingError
				if !errors.As(err, &c) && !errors.As(err, &v) && !errors.As(err, &m) {
					t.Fatalf("seed %d, %s of %s: refuses with %v", seed, did, name, err)
				}
				continue
			}
			opened++
			if p.Meta == nil {
				t.Fatalf("seed %d, %s of %s: a log that was reported counts as new", seed, did, name)
			}
			w.apply(image, p)
			why := w.lost(image, p, w.acked, w.ever)
			if in.Verify != VerifyFull && strings.HasPrefix(why, notWhole) {
				continue // a reader meets the damage, and is told
			}
			if why != "" {
				t.Fatalf("seed %d, %s of %s: %s; mark %+v", seed, did, name, why, p.Mark)
			}
		}
	}
	if t.Logf("%d refused, %d opened", refused, opened); refused < 100 || opened < 100 {
		t.Error("the damages are not worth much")
	}
}
