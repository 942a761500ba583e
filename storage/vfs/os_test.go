//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func newOS(t *testing.T) (FS, string) {
	t.Helper()
	root := t.TempDir()
	disk, err := NewOS(root)
	must(t, err)
	return disk, root
}

// Links are listed as what they are and never followed by their own name, wherever they lead.
func TestLinksAndSpecialFilesAreNotFollowed(t *testing.T) {
	disk, root := newOS(t)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/secret", []byte("secret"), 0o600))
	put(t, disk, "real", "x")
	must(t, disk.Mkdir("dir"))
	for name, to := range map[string]string{"in": "real", "out": outside + "/secret", "up": "../..", "dangling": "nowhere", "dirlink": "dir"} {
		must(t, os.Symlink(to, filepath.Join(root, name)))
	}
	must(t, syscall.Mkfifo(root+"/fifo", 0o600))
	for _, name := range []string{"in", "out", "up", "dangling", "dirlink", "fifo"} {
		if e, err := disk.Stat(name); err != nil || e.Kind != Other || e.Size != 0 {
			t.Errorf("%s: %v, %v", name, e, err)
		}
		_, e1 := disk.Open(name, false)
		_, e2 := disk.Open(name, true)
		_, e3 := disk.ReadDir(name)
		_, e4 := disk.Lock(name, false, "me")
		_, e5 := disk.Free(name)
		for _, err := range []error{e1, e2, e3, e4, e5, disk.SyncDir(name)} {
			wantsName(t, name, err)
		}
		_, err := disk.Create(name)
		wants(t, "create "+name, err, fs.ErrExist)
	}
	if _, err := disk.Open("up/etc/passwd", false); err == nil {
		t.Error("left the root through a link")
	}
	if got := names(t, disk, "."); len(got) != 8 {
		t.Error(got)
	}
	if b, err := os.ReadFile(outside + "/secret"); err != nil || string(b) != "secret" {
		t.Error(string(b), err)
	}
}

func TestRootIsMadeWithAllItsParts(t *testing.T) {
	base := t.TempDir()
	for range 2 { // the second time it is there
		if _, err := NewOS(base + "/a/b/c"); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(base + "/a/b/c")
	if err != nil || info.Mode().Perm() != dirMode {
		t.Fatal(info, err)
	}
	must(t, os.WriteFile(base+"/file", nil, 0o600))
	for _, root := range []string{base + "/file", base + "/file/below"} {
		if _, err := NewOS(root); err == nil {
			t.Errorf("%s is no directory", root)
		}
	}
}

func TestReservedBlocksGoWithTruncate(t *testing.T) {
	disk, root := newOS(t)
	f, err := disk.Create("a")
	must(t, err)
	defer f.Close()
	err = f.Preallocate(8 << 20)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Log("this file system cannot preallocate: nothing to give back")
		return
	}
	must(t, err)
	blocks := func() int64 {
		info, err := os.Stat(root + "/a")
		must(t, err)
		return info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	if blocks() < 8<<20 {
		t.Fatalf("%d bytes of blocks", blocks())
	}
	must(t, errors.Join(f.Truncate(1), f.Truncate(0)))
	if blocks() > 1<<20 {
		t.Fatalf("%d bytes of blocks after the cut", blocks())
	}
}

// The lock is the process's: a second process is refused, and a killed one leaves a file that holds nothing.
//
// matrix E22
func TestLockEndsWithItsProcess(t *testing.T) {
	if root := os.Getenv("VFS_TEST_LOCK_ROOT"); root != "" {
		holdLock(root)
		return
	}
	disk, root := newOS(t)
	child := exec.Command(os.Args[0], "-test.run=^TestLockEndsWithItsProcess$")
	child.Env = append(os.Environ(), "VFS_TEST_LOCK_ROOT="+root)
	in, err := child.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	said := make([]byte, 6)
	_, err = out.Read(said)
	if err != nil || string(said) != "locked" {
		t.Fatalf("%q, %v", said, err)
	}
	var le *LockedError
	if _, err = disk.Lock("LOCK", false, "parent"); !errors.As(err, &le) || le.Holder != "child" {
		t.Fatalf("%v", err)
	}
	must(t, child.Process.Kill())
	_ = child.Wait() // it says that it was killed
	c, err := disk.Lock("LOCK", false, "parent")
	must(t, err)
	must(t, c.Close())
}

// holdLock is the child: it holds the lock until its input ends.
func holdLock(root string) {
	disk, err := NewOS(root)
	if err == nil {
		_, err = disk.Lock("LOCK", false, "child")
	}
	if err != nil {
		os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString("locked")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestDeviceIsTheMachines(t *testing.T) {
	disk, root := newOS(t)
	put(t, disk, "a", "x")
	f, err := disk.Open("a", false)
	must(t, err)
	defer f.Close()
	info, err := os.Stat(root + "/a")
	must(t, err)
	if got, err := disk.Device("a"); err != nil || got != uint64(info.Sys().(*syscall.Stat_t).Dev) {
		t.Fatal(got, err)
	}
	if s := notRegular("a", Other).Error(); !strings.Contains(s, "link") {
		t.Fatal(s)
	}
}

// What clients are told of an error names files and not where they are, however it is wrapped.
func TestTheTextWithoutFoldersHasNone(t *testing.T) {
	folder := t.TempDir()
	_, opened := os.Open(filepath.Join(folder, "a.log"))
	renamed := os.Rename(filepath.Join(folder, "b.log"), filepath.Join(folder, "c.log"))
	err := fmt.Errorf("append: %w", errors.Join(opened, renamed))
	text := WithoutFolders(err)
	if strings.Contains(text, folder) || !strings.Contains(text, "append: open a.log: no such file") || !strings.Contains(text, "rename b.log c.log: ") {
		t.Error(text)
	}
	if text := WithoutFolders(errors.New("and/or")); text != "and/or" {
		t.Error(text)
	}
}
