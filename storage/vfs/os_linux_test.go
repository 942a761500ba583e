package vfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// A write that the system takes half of, without an error, is continued until the system says why: a limit of the file size does that.
func TestShortWriteOfTheSystemIsContinuedUntilItFails(t *testing.T) {
	if root := os.Getenv("VFS_TEST_LIMIT_ROOT"); root != "" {
		writePastTheLimit(root)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestShortWriteOfTheSystemIsContinuedUntilItFails$")
	child.Env = append(os.Environ(), "VFS_TEST_LIMIT_ROOT="+t.TempDir())
	out, err := child.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "as it should be") {
		t.Fatalf("%v: %s", err, out)
	}
}

func writePastTheLimit(root string) {
	signal.Ignore(syscall.SIGXFSZ)
	disk, err := NewOS(root)
	if err != nil {
		panic(err)
	}
	f, err := disk.Create("f")
	if err != nil {
		panic(err)
	}
	limit := &syscall.Rlimit{Cur: 6000, Max: 6000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, limit); err != nil {
		panic(err)
	}
	_, err = f.WriteAt(make([]byte, 10_000), 0) // how much it wrote is nothing to rely on: the file knows
	if size, _ := f.Size(); size != 6000 || !errors.Is(err, syscall.EFBIG) {
		fmt.Printf("wrote %d bytes: %v", size, err)
		os.Exit(1)
	}
	os.Stdout.WriteString("as it should be")
	os.Exit(0)
}
