//go:build linux || darwin || freebsd || dragonfly

package vfs

import (
	"math/bits"
	"os"

	"golang.org/x/sys/unix"
)

// freeOn is what an unprivileged process may still write on the file system that holds an open directory.
func freeOn(d *os.File) (uint64, error) {
	var st unix.Statfs_t
	err := control(d, "free", d.Name(), func(fd int) error { return again(func() error { return unix.Fstatfs(fd, &st) }) })
	if err != nil {
		return 0, err
	}
	hi, lo := bits.Mul64(uint64(st.Bavail), uint64(st.Bsize))
	if hi != 0 {
		return 1<<64 - 1, nil
	}
	return lo, nil
}
