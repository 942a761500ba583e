package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The hook sees each change before and after it, and may clone in between.
func TestHookSeesEveryChangeAndMayCloneThere(t *testing.T) {
	m := NewMem()
	var seen []string
	var sizes []int64
	m.OnOp(func(op Op) {
		seen = append(seen, fmt.Sprintf("%d %s %s%s %d %d %v", op.Phase, op.Call, op.Name, op.To, op.Off, op.Len, op.Err != nil))
		if e, err := m.Clone().Stat("d/f"); err == nil {
			sizes = append(sizes, e.Size)
		}
		m.Crash(func(n int) int { return n - 1 })
	})
	must(t, m.Mkdir("d"))
	f, err := m.Create("d/f")
	must(t, err)
	_, err = f.WriteAt(make([]byte, 9000), 0)
	must(t, err)
	_, err = f.WriteAt([]byte("abc"), 10)
	must(t, errors.Join(err, f.Preallocate(20_000), f.Truncate(4), f.Sync(), f.Close()))
	must(t, errors.Join(m.Rename("d/f", "g"), m.SyncDir("d"), m.Remove("g")))
	if m.Remove("g") == nil {
		t.Fatal("removed twice")
	}
	want := []string{
		"1 mkdir d 0 0 false", "3 mkdir d 0 0 false",
		"1 create d/f 0 0 false", "3 create d/f 0 0 false",
		"1 write d/f 0 9000 false", "2 write d/f 0 9000 false", "3 write d/f 0 9000 false",
		"1 write d/f 10 3 false", "3 write d/f 10 3 false",
		"1 preallocate d/f 0 20000 false", "3 preallocate d/f 0 20000 false",
		"1 truncate d/f 0 4 false", "3 truncate d/f 0 4 false",
		"1 sync d/f 0 0 false", "3 sync d/f 0 0 false",
		"1 rename d/fg 0 0 false", "3 rename d/fg 0 0 false",
		"1 syncdir d 0 0 false", "3 syncdir d 0 0 false",
		"1 remove g 0 0 false", "3 remove g 0 0 false",
		"1 remove g 0 0 false", "3 remove g 0 0 true",
	}
	if !slices.Equal(seen, want) {
		t.Fatalf("saw\n%s", strings.Join(seen, "\n"))
	}
	if want := []int64{0, 0, 4096, 9000, 9000, 9000, 9000, 9000, 9000, 4, 4, 4, 4}; !slices.Equal(sizes, want) {
		t.Fatalf("clones saw sizes %v", sizes)
	}
	m.OnOp(nil)
	must(t, m.Mkdir("quiet"))
	if len(seen) != len(want) {
		t.Fatal("the hook was called after it ended")
	}
}

func TestFullDiskTakesWhatFitsAndRecovers(t *testing.T) {
	m := NewMem()
	m.SetCapacity(3 * pageSize)
	f, err := m.Create("a")
	must(t, err)
	n, err := f.WriteAt(make([]byte, 5*pageSize), 100)
	if n != 3*pageSize-100 || !IsNoSpace(err) {
		t.Fatal(n, err)
	}
	if free, err := m.Free("."); free != 0 || err != nil || m.Used() != 3*pageSize {
		t.Fatal(free, err, m.Used())
	}
	if _, err = f.WriteAt([]byte("over what is there"), 0); err != nil {
		t.Fatalf("a write that needs no room: %v", err)
	}
	must(t, f.Truncate(pageSize))
	_, err = f.WriteAt(make([]byte, 2*pageSize), pageSize)
	must(t, err)
	m.SetCapacity(pageSize) // below what is there
	if n, err = f.WriteAt([]byte("x"), 10*pageSize); n != 0 || !IsNoSpace(err) {
		t.Fatal(n, err)
	}
	m.SetCapacity(Unlimited)
	_, err = f.WriteAt([]byte("x"), 10*pageSize)
	must(t, err)
}

func TestReservedRoomIsKeptForItsFile(t *testing.T) {
	m := NewMem()
	m.SetCapacity(4 * pageSize)
	a, err := m.Create("a")
	must(t, err)
	b, err := m.Create("b")
	must(t, err)
	must(t, a.Preallocate(3*pageSize))
	if err := a.Preallocate(5 * pageSize); !IsNoSpace(err) {
		t.Fatal(err)
	}
	if n, err := b.WriteAt(make([]byte, 2*pageSize), 0); n != pageSize || !IsNoSpace(err) {
		t.Fatal(n, err)
	}
	_, err = a.WriteAt(make([]byte, 3*pageSize), 0)
	must(t, err)
	must(t, a.Truncate(1)) // gives back what is past it
	_, err = b.WriteAt(make([]byte, pageSize), pageSize)
	must(t, err)
	must(t, errors.Join(a.Close(), b.Close(), m.Remove("a"), m.Remove("b")))
	if m.Used() != 0 || m.OpenFiles() != 0 {
		t.Fatal(m.Used(), m.OpenFiles())
	}
}

func TestRemovedFileHoldsItsRoomUntilItIsClosed(t *testing.T) {
	m := NewMem()
	put(t, m, "a", "x")
	f, err := m.Open("a", true)
	must(t, err)
	must(t, m.Remove("a"))
	if m.Used() != pageSize {
		t.Fatal(m.Used())
	}
	if used := m.Clone().Used(); used != 0 {
		t.Fatalf("the file of a killed process holds %d bytes", used)
	}
	must(t, f.Close())
	if m.Used() != 0 {
		t.Fatal(m.Used())
	}
}

func TestFilesHaveABoundAndCostWhatIsWritten(t *testing.T) {
	m := NewMem()
	f, err := m.Create("a")
	must(t, err)
	must(t, f.Truncate(maxFile))
	_, err = f.WriteAt([]byte("end"), maxFile-3)
	must(t, err)
	_, err = f.WriteAt([]byte("past"), maxFile-3)
	wants(t, "write", err, syscall.EFBIG)
	wants(t, "truncate", f.Truncate(maxFile+1), syscall.EFBIG)
	wants(t, "preallocate", f.Preallocate(maxFile+1), syscall.EFBIG)
	if m.Used() != pageSize {
		t.Fatalf("3 bytes take %d", m.Used())
	}
	if m.Crash(func(n int) int { return n - 1 }).Hash() != m.Hash() {
		t.Fatal("the crash of a huge file")
	}
}

func TestHashTellsNamesSizesAndBytesApart(t *testing.T) {
	disks := map[string]func(m *Mem){
		"nothing":    func(m *Mem) {},
		"empty":      func(m *Mem) { put(t, m, "a", "") },
		"directory":  func(m *Mem) { must(t, m.Mkdir("a")) },
		"other name": func(m *Mem) { put(t, m, "b", "") },
		"zero":       func(m *Mem) { put(t, m, "a", "\x00") },
		"two zeros":  func(m *Mem) { put(t, m, "a", "\x00\x00") },
		"one":        func(m *Mem) { put(t, m, "a", "\x01") },
		"shifted":    func(m *Mem) { put(t, m, "a", "\x00\x01") },
	}
	seen := map[uint64]string{}
	for name, f := range disks {
		m, same := NewMem(), NewMem()
		f(m)
		f(same)
		if m.Hash() != same.Hash() {
			t.Errorf("%s: two hashes", name)
		}
		if other, ok := seen[m.Hash()]; ok {
			t.Errorf("%s and %s: one hash", name, other)
		}
		seen[m.Hash()] = name
	}
}

// Of a page that both have, neither sees what the other writes, not even past its own end.
func TestClonesDoNotSeeEachOthersWrites(t *testing.T) {
	m := NewMem()
	put(t, m, "f", "both")
	for _, synced := range []bool{true, false} {
		f, err := m.Open("f", true)
		must(t, err)
		if !synced {
			_, err = f.WriteAt([]byte("BOTH"), 0)
			must(t, err)
		}
		c := m.Clone()
		_, err = f.WriteAt([]byte("original"), 4)
		must(t, errors.Join(err, f.Truncate(4)))
		_, err = f.WriteAt([]byte("original"), 4)
		must(t, err)
		g, err := c.Open("f", true)
		must(t, err)
		must(t, g.Truncate(20))
		if got := get(t, c, "f"); strings.Trim(got[4:], "\x00") != "" {
			t.Fatalf("the clone holds %q", got)
		}
		_, err = g.WriteAt([]byte("clone of the file"), 0)
		must(t, err)
		if got := get(t, m, "f"); !strings.EqualFold(got, "bothoriginal") {
			t.Fatalf("the original holds %q", got)
		}
		must(t, errors.Join(f.Truncate(4), f.Close(), g.Close()))
	}
}

// A clone shares what it can: taking one of a large disk at every operation must stay cheap.
func TestCloneSharesPages(t *testing.T) {
	m := NewMem()
	f, err := m.Create("big")
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("x"), 32<<20), 0)
	must(t, errors.Join(err, f.Sync()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 20 {
		c := m.Clone()
		_, err = f.WriteAt([]byte("y"), int64(i))
		must(t, err)
		if e, err := c.Stat("big"); err != nil || e.Size != 32<<20 {
			t.Fatal(e, err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 40<<20 {
		t.Fatalf("20 clones of 32 MiB and a write each took %d MiB", got>>20)
	}
}

func TestLocksEndWithTheProcess(t *testing.T) {
	m := NewMem()
	_, err := m.Lock("LOCK", false, "first")
	must(t, err)
	for _, c := range []*Mem{m.Clone(), m.Crash(func(n int) int { return n - 1 })} {
		l, err := c.Lock("LOCK", false, "second")
		must(t, err)
		must(t, l.Close())
	}
	if _, err = m.Lock("LOCK", false, "third"); err == nil {
		t.Fatal("two hold it")
	}
}

// The directed cases of what a power cut does to names.
func TestNamesAfterAPowerCut(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(m *Mem) error
		want []string // after the worst power cut
	}{
		"file without its directory": {func(m *Mem) error { put(t, m, "d/new", "x"); return nil }, []string{"d", "d/old"}},
		"file with its directory":    {func(m *Mem) error { put(t, m, "d/new", "x"); return m.SyncDir("d") }, []string{"d", "d/new", "d/old"}},
		"directory without its parent": {func(m *Mem) error {
			err := m.Mkdir("e")
			put(t, m, "e/new", "x")
			return errors.Join(err, m.SyncDir("e"))
		}, []string{"d", "d/old"}},
		"removal":                         {func(m *Mem) error { return m.Remove("d/old") }, []string{"d", "d/old"}},
		"removal with directory":          {func(m *Mem) error { return errors.Join(m.Remove("d/old"), m.SyncDir("d")) }, []string{"d"}},
		"rename":                          {func(m *Mem) error { return m.Rename("d/old", "d/new") }, []string{"d", "d/old"}},
		"rename with directory":           {func(m *Mem) error { return errors.Join(m.Rename("d/old", "d/new"), m.SyncDir("d")) }, []string{"d", "d/new"}},
		"move, only the new place synced": {func(m *Mem) error { return errors.Join(m.Rename("d/old", "new"), m.SyncDir(".")) }, []string{"d", "d/old"}},
		"move, only the old place synced": {func(m *Mem) error { return errors.Join(m.Rename("d/old", "new"), m.SyncDir("d")) }, []string{"d", "d/old"}},
		"move, both synced":               {func(m *Mem) error { return errors.Join(m.Rename("d/old", "new"), m.SyncDir("d"), m.SyncDir(".")) }, []string{"d", "new"}},
		"a file in the old one's place": {func(m *Mem) error {
			err := m.Rename("d/old", "new")
			put(t, m, "d/old", "another")
			return errors.Join(err, m.SyncDir("d"))
		}, []string{"d", "d/old", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMem()
			must(t, m.Mkdir("d"))
			put(t, m, "d/old", "x")
			must(t, errors.Join(m.SyncDir("d"), m.SyncDir("."), c.do(m)))
			if got := tree(t, m.CrashHard(), "."); !slices.Equal(got, c.want) {
				t.Fatalf("left %v, want %v", got, c.want)
			}
		})
	}
}

func tree(t *testing.T, disk FS, dir string) (all []string) {
	t.Helper()
	list, err := disk.ReadDir(dir)
	must(t, err)
	for _, e := range list {
		name := join(dir, e.Name)
		all = append(all, name)
		if e.Kind == Directory {
			all = append(all, tree(t, disk, name)...)
		}
	}
	return all
}

// Names that come and go leave nothing behind in the books.
func TestManyNamesComeAndGoWithoutATrace(t *testing.T) {
	m := NewMem()
	for i := range 300 {
		d := fmt.Sprintf("d%d", i)
		must(t, m.Mkdir(d))
		put(t, m, d+"/f", "x") // its directory is never synced
		must(t, errors.Join(m.Rename(d+"/f", d+"/g"), m.Remove(d+"/g"), m.Remove(d), m.SyncDir(".")))
	}
	must(t, m.SyncDir("."))
	if len(m.disk.nodes) != 1 || len(m.disk.changes) != 0 || m.Used() != 0 {
		t.Fatalf("%d nodes, %d changes, %d bytes", len(m.disk.nodes), len(m.disk.changes), m.Used())
	}
}

// What a crash can do to an overwritten page, all in one: each of the outcomes of the power-loss model is met.
func TestEveryKindOfLossIsMet(t *testing.T) {
	m := NewMem()
	f, err := m.Create("f")
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("s"), 2*pageSize), 0)
	must(t, errors.Join(err, f.Sync(), m.SyncDir(".")))
	_, err = f.WriteAt(bytes.Repeat([]byte("m"), pageSize), 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("n"), pageSize), 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("n"), 100), 2*pageSize)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("n"), 2*pageSize-100), 2*pageSize+100)
	must(t, err)
	met := map[string]bool{}
	random := newRandom(1)
	for range 2000 {
		got := get(t, m.Crash(random), "f")
		first := got[:pageSize]
		for _, v := range []string{"s", "m", "n"} {
			if strings.Count(first, v) == pageSize {
				met["first page all "+v] = true
			}
		}
		if strings.Count(first, "s") > 0 && strings.Count(first, "n") > 0 {
			met["first page torn"] = true
			for i := 0; i < pageSize; i += sectorSize {
				if s := first[i : i+sectorSize]; strings.Count(s, s[:1]) != sectorSize {
					t.Fatalf("a sector is torn: %q", s)
				}
			}
		}
		met[fmt.Sprintf("size %d", len(got))] = true
		if len(got) == 4*pageSize {
			zero := strings.Repeat("\x00", pageSize)
			met[fmt.Sprintf("full size, third zero %v, fourth zero %v", got[2*pageSize:3*pageSize] == zero, got[3*pageSize:] == zero)] = true
		}
		if got[pageSize:2*pageSize] != strings.Repeat("s", pageSize) {
			t.Fatal("a synced page changed")
		}
	}
	for _, want := range []string{
		"first page all s", "first page all m", "first page all n", "first page torn",
		"size 8192", "size 8292", "size 12288", "size 16384",
		"full size, third zero true, fourth zero true", "full size, third zero true, fourth zero false",
		"full size, third zero false, fourth zero true", "full size, third zero false, fourth zero false",
	} {
		if !met[want] {
			t.Errorf("never met: %s", want)
		}
	}
}

// Several goroutines and one that keeps cloning, for the race detector.
func TestMemIsUsedByManyAtOnce(t *testing.T) {
	m := NewMem()
	m.OnOp(func(op Op) {
		if op.Phase == Midway {
			m.Clone().Hash()
		}
	})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			name := fmt.Sprintf("f%d", g)
			f, err := m.Create(name)
			for i := range 30 {
				if err == nil {
					_, err = f.WriteAt(bytes.Repeat([]byte{byte(i)}, 5000), int64(i*1000))
				}
				if err == nil && i%5 == 0 {
					err = errors.Join(f.Sync(), m.SyncDir("."))
				}
				m.CrashHard().Hash()
			}
			if err = errors.Join(err, f.Close(), m.Rename(name, name+"x")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := names(t, m, "."); len(got) != 4 {
		t.Fatal(got)
	}
}
