//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFile makes bytes and size durable: fsync(2), and F_FULLFSYNC where fsync stops at the drive's cache; os.File chooses.
func syncFile(f *os.File, _ string) error { return f.Sync() }

// preallocate is not offered: files grow as they are written.
func preallocate(f *os.File, name string, _ int64) error {
	return control(f, "preallocate", name, func(int) error { return unix.ENOTSUP })
}
