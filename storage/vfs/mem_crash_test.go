package vfs

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// believed is what a test knows of a file: what each byte, and the size, may be after a power cut.
type believed struct {
	at   ino
	now  []byte
	kept []byte
	may  []map[byte]bool // per byte; past its end: zero
	low  int             // sizes since the last sync
	high int
	// The file's name is durable, and was not taken away or replaced since.
	safe bool
}

func (b *believed) allow(off int, v byte) {
	for len(b.may) <= off {
		b.may = append(b.may, map[byte]bool{0: true})
	}
	b.may[off][v] = true
}

func (b *believed) sized() {
	b.low, b.high = min(b.low, len(b.now)), max(b.high, len(b.now))
}

func (b *believed) write(p []byte, off int) {
	if need := off + len(p); need > len(b.now) {
		b.now = append(b.now, make([]byte, need-len(b.now))...)
	}
	copy(b.now[off:], p)
	for i, v := range p {
		b.allow(off+i, v)
	}
	b.sized()
}

func (b *believed) truncate(size int) {
	for i := size; i < len(b.now); i++ {
		b.allow(i, 0)
	}
	if size > len(b.now) {
		b.now = append(b.now, make([]byte, size-len(b.now))...)
	}
	b.now = b.now[:size:size]
	b.sized()
}

func (b *believed) sync() {
	b.kept = append([]byte{}, b.now...)
	b.may = nil
	for _, v := range b.now {
		b.may = append(b.may, map[byte]bool{v: true})
	}
	b.low, b.high = len(b.now), len(b.now)
}

// check fails unless found is something that a power cut may leave.
func (b *believed) check(t *rapid.T, found []byte) {
	if len(found) < b.low || len(found) > b.high {
		t.Fatalf("%d bytes are left; since the sync there were between %d and %d", len(found), b.low, b.high)
	}
	for i, v := range found {
		if i < len(b.may) && !b.may[i][v] || i >= len(b.may) && v != 0 {
			t.Fatalf("byte %d is %d, which was never there since the sync", i, v)
		}
	}
}

func whole(t *rapid.T, m *Mem, name string) []byte {
	e, err := m.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Open(name, false)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, e.Size)
	n, _ := f.ReadAt(b, 0)
	_ = f.Close()
	return b[:n]
}

// changeBytes draws one change of a file and tells both.
func changeBytes(t *rapid.T, f File, b *believed) {
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		b.sync()
	case 1:
		size := rapid.IntRange(0, len(b.now)+3000).Draw(t, "size")
		if err := f.Truncate(int64(size)); err != nil {
			t.Fatal(err)
		}
		b.truncate(size)
	case 2: // over what is there
		write(t, f, b, rapid.IntRange(0, len(b.now)).Draw(t, "off"))
	default: // behind it, as logs do
		write(t, f, b, len(b.now))
	}
}

func write(t *rapid.T, f File, b *believed, off int) {
	p := bytes.Repeat([]byte{rapid.ByteRange(1, 255).Draw(t, "byte")}, rapid.SampledFrom([]int{1, 40, 511, 512, 700, 4096, 6000}).Draw(t, "length"))
	if _, err := f.WriteAt(p, int64(off)); err != nil {
		t.Fatal(err)
	}
	b.write(p, off)
}

func TestPowerCutKeepsSyncedBytesAndInventsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMem()
		f, err := m.Create("f")
		if err = errors.Join(err, m.SyncDir(".")); err != nil {
			t.Fatal(err)
		}
		b := &believed{}
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			changeBytes(t, f, b)
		}
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		for range 3 {
			c := m.Crash(choose)
			found := whole(t, c, "f")
			b.check(t, found)
			if again := c.CrashHard(); again.Hash() != c.Hash() {
				t.Fatal("what a power cut left is not durable")
			}
			// What it took is gone: a file that grows has zeros there.
			grown, err := c.Open("f", true)
			if err = errors.Join(err, grown.Truncate(200_000), grown.Close()); err != nil {
				t.Fatal(err)
			}
			if tail := whole(t, c, "f")[len(found):]; len(bytes.Trim(tail, "\x00")) > 0 {
				t.Fatal("bytes past the end came back")
			}
		}
		if hard := whole(t, m.CrashHard(), "f"); !bytes.Equal(hard, b.kept) {
			t.Fatalf("%d bytes are left of %d that were synced", len(hard), len(b.kept))
		}
		if soft := whole(t, m.Crash(func(n int) int { return n - 1 }), "f"); !bytes.Equal(soft, b.now) {
			t.Fatalf("the best power cut left %d bytes of %d", len(soft), len(b.now))
		}
		if now := whole(t, m, "f"); !bytes.Equal(now, b.now) {
			t.Fatal("a crash changed the disk it was taken of")
		}
	})
}

// world is a few files in three directories.
type world struct {
	t     *rapid.T
	m     *Mem
	files map[string]*believed // by present name
	all   map[ino]*believed
}

var (
	worldDirs  = []string{".", "p", "q"}
	worldNames = rapid.SampledFrom([]string{"a", "b", "p/a", "p/b", "q/a", "q/b"})
)

func newWorld(t *rapid.T) *world {
	w := &world{t: t, m: NewMem(), files: map[string]*believed{}, all: map[ino]*believed{}}
	w.ok(errors.Join(w.m.Mkdir("p"), w.m.Mkdir("q"), w.m.SyncDir(".")))
	return w
}

func (w *world) ok(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) step() {
	name := worldNames.Draw(w.t, "name")
	b := w.files[name]
	switch rapid.SampledFrom([]string{"make", "make", "bytes", "bytes", "rename", "rename", "remove", "syncdir", "syncdir"}).Draw(w.t, "step") {
	case "make":
		if b == nil {
			f, err := w.m.Create(name)
			w.ok(err)
			w.ok(f.Close())
			at, _ := w.m.disk.find("find", name)
			b = &believed{at: at}
			w.files[name], w.all[at] = b, b
		}
	case "bytes":
		if b != nil {
			f, err := w.m.Open(name, true)
			w.ok(err)
			changeBytes(w.t, f, b)
			w.ok(f.Close())
		}
	case "rename":
		to := worldNames.Draw(w.t, "to")
		if b != nil && to != name {
			w.ok(w.m.Rename(name, to))
			if old := w.files[to]; old != nil {
				old.safe = false
			}
			delete(w.files, name)
			w.files[to] = b
		}
	case "remove":
		if b != nil {
			w.ok(w.m.Remove(name))
			b.safe = false
			delete(w.files, name)
		}
	case "syncdir":
		dir := rapid.SampledFrom(worldDirs).Draw(w.t, "dir")
		w.ok(w.m.SyncDir(dir))
		w.synced(dir)
	}
}

// synced notes whose names are durable for certain: those that stand in the directory.
func (w *world) synced(dir string) {
	for _, name := range slices.Sorted(mapKeys(w.files)) {
		if in, _ := parentOf(name); in != dir {
			continue
		}
		waits, across := w.waits(name)
		if waits && !across {
			w.t.Fatalf("%s is not durable after its directory was synced", name)
		}
		if !waits {
			w.files[name].safe = true
		}
	}
}

// waits asks the disk itself whether a name is not durable, and whether that is for a rename between two directories.
func (w *world) waits(name string) (waits, across bool) {
	dir, base := parentOf(name)
	in, _ := w.m.disk.find("find", dir)
	for _, c := range w.m.disk.changes {
		for _, e := range c.edges {
			if e.dir == in && e.base == base {
				waits, across = true, across || c.across
			}
		}
	}
	return waits, across
}

func mapKeys(m map[string]*believed) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// check looks at what a power cut left.
func (w *world) check(c *Mem) {
	seen := map[ino]bool{}
	for _, dir := range worldDirs {
		list, err := c.ReadDir(dir)
		w.ok(err)
		for _, e := range list {
			if e.Kind == Directory {
				continue
			}
			at, _ := c.disk.find("find", join(dir, e.Name))
			if seen[at] || w.all[at] == nil {
				w.t.Fatalf("file %d has two names or was never there", at)
			}
			seen[at] = true
			w.all[at].check(w.t, whole(w.t, c, join(dir, e.Name)))
		}
	}
	for at, b := range w.all {
		if b.safe && !seen[at] {
			w.t.Fatalf("file %d had a durable name and is gone", at)
		}
	}
	for name, b := range w.files {
		if waits, _ := w.waits(name); b.safe && !waits {
			if at, err := c.disk.find("find", name); err != nil || at != b.at {
				w.t.Fatalf("%s was durable and stands for another file: %v", name, err)
			}
		}
	}
}

func TestPowerCutKeepsDurableNamesAndRenamesAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			w.step()
			checkBooks(t, w.m)
		}
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		for range 3 {
			w.check(w.m.Crash(choose))
		}
		w.check(w.m.CrashHard())
		best := w.m.Crash(func(n int) int { return n - 1 })
		if best.Hash() != w.m.Hash() {
			t.Fatal("the best power cut lost something")
		}
		// A killed process loses nothing, and its disk can still lose power.
		killed := w.m.Clone()
		if killed.Hash() != w.m.Hash() {
			t.Fatal("a kill lost something")
		}
		w.check(killed.Crash(choose))
		checkBooks(t, killed)
	})
}

// Directories that move about, in each other too: nothing durable is lost with them.
func TestPowerCutLeavesATree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMem()
		ok := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		dirs := []string{"a", "b", "a/c", "b/c", "a/c/d", "e"}
		for _, d := range []string{"a", "b", "a/c", "e"} {
			ok(m.Mkdir(d))
			f, err := m.Create(d + "/file")
			ok(errors.Join(err, f.Close(), m.SyncDir(d)))
		}
		ok(m.SyncDir("."))
		ok(m.SyncDir("a"))
		name := rapid.SampledFrom(dirs)
		for range rapid.IntRange(0, 40).Draw(t, "moves") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				_ = m.Mkdir(name.Draw(t, "new")) // may be there, or have no place
			case 1:
				_ = m.SyncDir(rapid.SampledFrom(append([]string{"."}, dirs...)).Draw(t, "sync"))
			default:
				_ = m.Rename(name.Draw(t, "from"), name.Draw(t, "to"))
			}
		}
		for range 3 {
			c := m.Crash(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
			files := 0
			for _, n := range c.disk.nodes {
				if !n.dir {
					files++
				}
			}
			if files != 4 {
				t.Fatalf("%d files of 4 are left", files)
			}
			checkBooks(t, c)
		}
	})
}

// Moves that are harmless in their order, and of which the first and the last alone would leave two directories in each other.
func TestPowerCutNeverLeavesDirectoriesInEachOther(t *testing.T) {
	for _, sync := range [][]string{nil, {"a/c", "."}} {
		m := NewMem()
		must(t, errors.Join(m.Mkdir("a"), m.Mkdir("a/c"), m.Mkdir("b"), m.SyncDir("."), m.SyncDir("a")))
		put(t, m, "b/file", "x")
		must(t, m.SyncDir("b"))
		must(t, errors.Join(m.Rename("a", "b/a"), m.Rename("b/a", "a"), m.Rename("b", "a/c/b")))
		for _, dir := range sync {
			must(t, m.SyncDir(dir))
		}
		for seed := range uint64(100) {
			all := tree(t, m.Crash(newRandom(seed)), ".")
			if len(all) != 4 {
				t.Fatalf("left %v", all)
			}
		}
	}
}

func TestCrashIsAFunctionOfItsChoices(t *testing.T) {
	m := scribbled(t)
	crash := func(seed uint64) uint64 { return m.Crash(newRandom(seed)).Hash() }
	different := map[uint64]bool{}
	for seed := range uint64(200) {
		a, b := crash(seed), crash(seed)
		if a != b {
			t.Fatalf("seed %d: %x and %x", seed, a, b)
		}
		different[a] = true
	}
	if len(different) < 50 {
		t.Fatalf("200 power cuts left only %d different disks", len(different))
	}
}

// scribbled is a disk with much that is not synced.
func scribbled(t *testing.T) *Mem {
	t.Helper()
	m := NewMem()
	must(t, m.Mkdir("d"))
	put(t, m, "d/old", "before")
	must(t, errors.Join(m.SyncDir("."), m.SyncDir("d")))
	for _, name := range []string{"d/1", "d/2"} {
		f, err := m.Create(name)
		must(t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte("data"), 5000), 0)
		must(t, errors.Join(err, f.Sync()))
		_, err = f.WriteAt(bytes.Repeat([]byte("more"), 5000), 18000)
		must(t, errors.Join(err, f.Close()))
	}
	must(t, errors.Join(m.Rename("d/1", "d/3"), m.Remove("d/old")))
	return m
}

func TestCrashRefusesAChoiceThatIsNone(t *testing.T) {
	m := scribbled(t)
	defer func() {
		if recover() == nil {
			t.Error("taken")
		}
	}()
	m.Crash(func(n int) int { return n })
}
