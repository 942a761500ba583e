package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// contract is what every FS promises. Each guarantee is tried on each of the three.
func contract(t *testing.T, f func(t *testing.T, disk FS)) {
	t.Run("OS", func(t *testing.T) {
		disk, err := NewOS(t.TempDir() + "/made/on the way")
		if err != nil {
			t.Fatal(err)
		}
		f(t, disk)
	})
	t.Run("Mem", func(t *testing.T) { f(t, NewMem()) })
	t.Run("Fault", func(t *testing.T) { f(t, NewFault(NewMem(), nil)) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func wantsName(t *testing.T, what string, err error) {
	t.Helper()
	var ne *NameError
	if !errors.As(err, &ne) {
		t.Errorf("%s: %v, want a *NameError", what, err)
	}
}

// put makes a file with something in it.
func put(t *testing.T, disk FS, name, text string) {
	t.Helper()
	f, err := disk.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	must(t, errors.Join(err, f.Sync(), f.Close()))
}

// get reads a whole file.
func get(t *testing.T, disk FS, name string) string {
	t.Helper()
	f, err := disk.Open(name, false)
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size+1)
	n, err := f.ReadAt(b, 0)
	if err != io.EOF || int64(n) != size {
		t.Fatalf("read %s: %d of %d bytes, %v", name, n, size, err)
	}
	return string(b[:n])
}

func names(t *testing.T, disk FS, dir string) []string {
	t.Helper()
	list, err := disk.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range list {
		all = append(all, e.Name)
	}
	return all
}

func TestWrittenBytesAreReadBack(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		f, err := disk.Create("a")
		must(t, err)
		big := bytes.Repeat([]byte("0123456789abcdef"), 1000) // crosses pages
		n, err := f.WriteAt(big, 5000)
		if n != len(big) || err != nil {
			t.Fatal(n, err)
		}
		_, err = f.WriteAt([]byte("x"), 0)
		must(t, errors.Join(err, f.Sync()))
		b := make([]byte, 5000+len(big)+10)
		n, err = f.ReadAt(b, 0)
		want := append(append([]byte("x"), make([]byte, 4999)...), big...)
		if err != io.EOF || !bytes.Equal(b[:n], want) {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if n, err = f.ReadAt(b[:4], int64(len(want)-4)); n != 4 || err != nil {
			t.Fatalf("the last bytes: %d, %v", n, err)
		}
		if n, err = f.ReadAt(b[:4], int64(len(want))); n != 0 || err != io.EOF {
			t.Fatalf("past the end: %d, %v", n, err)
		}
		if n, err = f.ReadAt(nil, 0); n != 0 || err != nil && err != io.EOF {
			t.Fatalf("nothing: %d, %v", n, err)
		}
		if _, err = f.ReadAt(b, -1); err == nil {
			t.Fatal("read before the start")
		}
		if _, err = f.WriteAt(b, -1); err == nil {
			t.Fatal("wrote before the start")
		}
	})
}

func TestTruncateCutsAndGrowsWithZeros(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		f, err := disk.Create("a")
		must(t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte("z"), 10_000), 0)
		must(t, errors.Join(err, f.Truncate(5), f.Truncate(9000)))
		want := "zzzzz" + strings.Repeat("\x00", 8995)
		if got := get(t, disk, "a"); got != want {
			t.Fatalf("%d bytes, want 5 z and zeros", len(got))
		}
		if e, err := disk.Stat("a"); err != nil || e != (Entry{"a", Regular, 9000}) {
			t.Fatal(e, err)
		}
		if f.Truncate(-1) == nil {
			t.Fatal("a size below 0 was taken")
		}
	})
}

func TestPreallocateLeavesSizeAlone(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		f, err := disk.Create("a")
		must(t, err)
		_, err = f.WriteAt([]byte("abc"), 0)
		must(t, err)
		err = f.Preallocate(1 << 20)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Log("this file system cannot preallocate")
			err = nil
		}
		must(t, err)
		size, err := f.Size()
		if size != 3 || err != nil || get(t, disk, "a") != "abc" {
			t.Fatal(size, err)
		}
		if f.Preallocate(-1) == nil {
			t.Fatal("a size below 0 was taken")
		}
		must(t, f.Close())
		for what, err := range map[string]error{"some": f.Preallocate(1), "none": f.Preallocate(0)} {
			wants(t, what, err, fs.ErrClosed)
		}
	})
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		must(t, disk.Mkdir("d"))
		put(t, disk, "f", "x")
		for _, name := range []string{"", "/", "/etc", "a/", "a//b", "..", "../x", "d/../f", "./f", "d/.", "f\x00"} {
			_, e1 := disk.Create(name)
			_, e2 := disk.Open(name, false)
			_, e3 := disk.ReadDir(name)
			_, e4 := disk.Stat(name)
			_, e5 := disk.Lock(name, false, "")
			_, e6 := disk.Device(name)
			_, e7 := disk.Free(name)
			for i, err := range []error{
				e1, e2, e3, e4, e5, e6, e7, disk.Mkdir(name), disk.Rename(name, "x"), disk.Rename("f", name), disk.Remove(name), disk.SyncDir(name),
			} {
				wantsName(t, quote(name)+" in call "+string(rune('a'+i)), err)
			}
		}
		if got := names(t, disk, "."); !slices.Equal(got, []string{"d", "f"}) {
			t.Fatal(got)
		}
	})
}

func TestRootCannotBeReplaced(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		_, err := disk.Create(".")
		wants(t, "create", err, fs.ErrExist)
		wants(t, "mkdir", disk.Mkdir("."), fs.ErrExist)
		_, err = disk.Open(".", false)
		wantsName(t, "open", err)
		wantsName(t, "remove", disk.Remove("."))
		wantsName(t, "rename", disk.Rename(".", "x"))
		wantsName(t, "rename onto", disk.Rename("x", "."))
		_, err = disk.Lock(".", false, "")
		wantsName(t, "lock", err)
		e, err := disk.Stat(".")
		if err != nil || e.Kind != Directory || e.Name != "." {
			t.Fatal(e, err)
		}
		must(t, disk.SyncDir("."))
	})
}

func TestMissingTakenAndMisplacedNames(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		put(t, disk, "f", "x")
		must(t, disk.Mkdir("d"))
		for _, name := range []string{"none", "none/x", "d/none"} {
			_, e1 := disk.Open(name, true)
			_, e2 := disk.ReadDir(name)
			_, e3 := disk.Stat(name)
			_, e4 := disk.Lock(name, true, "")
			_, e5 := disk.Device(name)
			for _, err := range []error{e1, e2, e3, e4, e5, disk.Rename(name, "x"), disk.Remove(name), disk.SyncDir(name)} {
				wants(t, name, err, fs.ErrNotExist)
			}
		}
		_, err := disk.Create("none/x")
		wants(t, "create below nothing", err, fs.ErrNotExist)
		wants(t, "mkdir below nothing", disk.Mkdir("none/x"), fs.ErrNotExist)
		wants(t, "rename below nothing", disk.Rename("f", "none/x"), fs.ErrNotExist)
		for _, name := range []string{"f", "d"} {
			_, err = disk.Create(name)
			wants(t, "create "+name, err, fs.ErrExist)
			wants(t, "mkdir "+name, disk.Mkdir(name), fs.ErrExist)
		}
		_, err = disk.Create("f/x")
		wants(t, "create below a file", err, syscall.ENOTDIR)
		_, err = disk.Stat("f/x")
		wants(t, "stat below a file", err, syscall.ENOTDIR)
		_, err = disk.Create(strings.Repeat("n", 256))
		wants(t, "long name", err, syscall.ENAMETOOLONG)
		_, err = disk.Open("d", false)
		wantsName(t, "open a directory", err)
		_, err = disk.Lock("d", false, "")
		wantsName(t, "lock a directory", err)
		_, err = disk.ReadDir("f")
		wantsName(t, "list a file", err)
		wantsName(t, "sync a file as a directory", disk.SyncDir("f"))
		if get(t, disk, "f") != "x" {
			t.Fatal("the file changed")
		}
	})
}

func TestDirectoriesAreListedInOrder(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		must(t, disk.Mkdir("d"))
		for _, name := range []string{"d/b", "d/a", "d/\xff\xfe", "d/c"} {
			put(t, disk, name, name)
		}
		must(t, disk.Mkdir("d/aa"))
		list, err := disk.ReadDir("d")
		must(t, err)
		want := []Entry{{"a", Regular, 3}, {"aa", Directory, 0}, {"b", Regular, 3}, {"c", Regular, 3}, {"\xff\xfe", Regular, 4}}
		if !slices.Equal(list, want) {
			t.Fatalf("%v", list)
		}
		if list, err = disk.ReadDir("d/aa"); err != nil || len(list) != 0 {
			t.Fatal(list, err)
		}
	})
}

func TestRenameMovesAndReplaces(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		must(t, disk.Mkdir("d"))
		must(t, disk.Mkdir("e"))
		put(t, disk, "d/a", "new")
		put(t, disk, "e/b", "old")
		must(t, disk.Rename("d/a", "e/b"))
		if get(t, disk, "e/b") != "new" || len(names(t, disk, "d")) != 0 {
			t.Fatal("not moved")
		}
		must(t, disk.Rename("e/b", "e/b"))
		must(t, disk.Rename("e", "d/e"))
		if get(t, disk, "d/e/b") != "new" || !slices.Equal(names(t, disk, "."), []string{"d"}) {
			t.Fatal("directory not moved")
		}
		put(t, disk, "f", "x")
		wants(t, "file over directory", disk.Rename("f", "d"), fs.ErrExist)
		must(t, disk.Mkdir("empty"))
		wants(t, "directory over empty directory", disk.Rename("d", "empty"), fs.ErrExist)
		wants(t, "directory over file", disk.Rename("d", "f"), syscall.ENOTDIR)
		wants(t, "directory into itself", disk.Rename("d", "d/e/d"), syscall.EINVAL)
		if get(t, disk, "d/e/b") != "new" || get(t, disk, "f") != "x" {
			t.Fatal("a refused rename changed something")
		}
	})
}

func TestRemoveTakesFilesAndEmptyDirectoriesOnly(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		must(t, disk.Mkdir("d"))
		put(t, disk, "d/a", "x")
		wants(t, "full directory", disk.Remove("d"), syscall.ENOTEMPTY)
		must(t, disk.Remove("d/a"))
		must(t, disk.Remove("d"))
		if got := names(t, disk, "."); len(got) != 0 {
			t.Fatal(got)
		}
	})
}

func TestOpenFileOutlivesItsName(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		put(t, disk, "a", "before")
		f, err := disk.Open("a", true)
		must(t, err)
		must(t, disk.Remove("a"))
		put(t, disk, "a", "another")
		_, err = f.WriteAt([]byte("AFTER!"), 0)
		must(t, errors.Join(err, f.Sync()))
		b := make([]byte, 6)
		if _, err = f.ReadAt(b, 0); string(b) != "AFTER!" || err != nil && err != io.EOF {
			t.Fatal(string(b), err)
		}
		must(t, f.Close())
		if get(t, disk, "a") != "another" {
			t.Fatal("the new file was changed through the old one")
		}
	})
}

func TestReadOnlyFileCannotBeChanged(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		put(t, disk, "a", "x")
		f, err := disk.Open("a", false)
		must(t, err)
		_, err = f.WriteAt([]byte("y"), 0)
		for i, err := range []error{err, f.Truncate(0), f.Preallocate(100)} {
			if err == nil {
				t.Errorf("change %d was taken", i)
			}
		}
		must(t, errors.Join(f.Sync(), f.Close()))
		if get(t, disk, "a") != "x" {
			t.Fatal("changed")
		}
	})
}

func TestClosedFileSaysSo(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		f, err := disk.Create("a")
		must(t, errors.Join(err, f.Close()))
		_, e1 := f.ReadAt(make([]byte, 1), 0)
		_, e2 := f.WriteAt(make([]byte, 1), 0)
		_, e3 := f.Size()
		for i, err := range []error{e1, e2, e3, f.Truncate(1), f.Sync(), f.Preallocate(1), f.Close()} {
			wants(t, string(rune('a'+i)), err, fs.ErrClosed)
		}
	})
}

func TestExclusiveLockNamesItsHolder(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		held, err := disk.Lock("LOCK", false, "pid 42, node \x07 one\n")
		must(t, err)
		for _, shared := range []bool{false, true} {
			_, err = disk.Lock("LOCK", shared, "somebody else")
			var le *LockedError
			if !errors.As(err, &le) || le.Name != "LOCK" || le.Holder != "pid 42, node   one" {
				t.Fatalf("shared %v: %v", shared, err)
			}
		}
		must(t, held.Close())
		wants(t, "closed twice", held.Close(), fs.ErrClosed)
		// What the last holder left does not hold; and a longer word than the next one leaves nothing behind.
		held, err = disk.Lock("LOCK", false, "me")
		must(t, err)
		if got := get(t, disk, "LOCK"); got != "me" {
			t.Fatalf("%q", got)
		}
		must(t, held.Close())
		held, err = disk.Lock("LOCK", false, strings.Repeat("x", 10_000))
		must(t, err)
		if got := get(t, disk, "LOCK"); len(got) != holderBytes {
			t.Fatalf("%d bytes", len(got))
		}
		must(t, held.Close())
	})
}

func TestSharedLocksExcludeOnlyExclusiveOnes(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		_, err := disk.Lock("LOCK", true, "")
		wants(t, "no file", err, fs.ErrNotExist)
		if got := names(t, disk, "."); len(got) != 0 {
			t.Fatalf("a shared lock made %v", got)
		}
		put(t, disk, "LOCK", "left behind")
		a, err := disk.Lock("LOCK", true, "ignored")
		must(t, err)
		b, err := disk.Lock("LOCK", true, "ignored")
		must(t, err)
		must(t, a.Close())
		_, err = disk.Lock("LOCK", false, "writer")
		var le *LockedError
		if !errors.As(err, &le) || get(t, disk, "LOCK") != "left behind" {
			t.Fatalf("%v; the file says %q", err, get(t, disk, "LOCK"))
		}
		must(t, b.Close())
		c, err := disk.Lock("LOCK", false, "writer")
		must(t, errors.Join(err, c.Close()))
	})
}

func TestDeviceAndFree(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		must(t, disk.Mkdir("d"))
		put(t, disk, "d/f", "x")
		a, err := disk.Device(".")
		must(t, err)
		b, err := disk.Device("d/f")
		if err != nil || a != b {
			t.Fatal(a, b, err)
		}
		free, err := disk.Free("d")
		if err != nil || free == 0 {
			t.Fatal(free, err)
		}
		_, err = disk.Free("d/f")
		wantsName(t, "free of a file", err)
		_, err = disk.Free("none")
		wants(t, "free of nothing", err, fs.ErrNotExist)
	})
}

// Readers beside a writer see each byte old or new; for the race detector above all.
func TestReadersBesideAWriter(t *testing.T) {
	contract(t, func(t *testing.T, disk FS) {
		f, err := disk.Create("a")
		must(t, err)
		_, err = f.WriteAt(make([]byte, 8192), 0)
		must(t, err)
		var all sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			all.Go(func() {
				b := make([]byte, 8192)
				for {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
						t.Error(err)
						return
					}
				}
			})
		}
		for i := range 200 {
			_, err = f.WriteAt(bytes.Repeat([]byte{byte(i)}, 8192), 0)
			must(t, err)
			if i%20 == 0 {
				must(t, f.Sync())
			}
		}
		close(stop)
		all.Wait()
		must(t, f.Close())
	})
}

func TestErrorsSayWhatToLookAt(t *testing.T) {
	if got := (&LockedError{Name: "LOCK"}).Error(); !strings.Contains(got, "another process") {
		t.Error(got)
	}
	if got := (&LockedError{Name: "LOCK", Holder: "pid 1"}).Error(); !strings.Contains(got, "pid 1") {
		t.Error(got)
	}
	if got := checkName("../x").Error(); !strings.Contains(got, `"../x"`) {
		t.Error(got)
	}
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if !IsNoSpace(&fs.PathError{Op: "write", Path: "x", Err: err}) {
			t.Error(err)
		}
	}
	if IsNoSpace(syscall.EIO) || IsNoSpace(nil) {
		t.Error("no lack of space")
	}
}

func TestCallNamesGoThereAndBack(t *testing.T) {
	for c := CallCreate; c < callEnd; c++ {
		if got, ok := ParseCall(c.String()); !ok || got != c {
			t.Errorf("%d: %s", c, c)
		}
	}
	if _, ok := ParseCall("call 99"); ok || Call(99).String() != "call 99" {
		t.Error("a call that is none")
	}
}
