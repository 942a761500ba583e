package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFile makes bytes and size durable; fdatasync(2) leaves out only what is not needed to read them back.
func syncFile(f *os.File, name string) error {
	return control(f, "sync", name, func(fd int) error { return again(func() error { return unix.Fdatasync(fd) }) })
}

// preallocate reserves blocks and leaves the size alone, so that the end of the file stays the end of what was written.
func preallocate(f *os.File, name string, size int64) error {
	return control(f, "preallocate", name, func(fd int) error {
		return again(func() error { return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	})
}
