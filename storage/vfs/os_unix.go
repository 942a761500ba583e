//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// again repeats a system call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// tryLock takes flock(2), which belongs to the open file: it ends with its last descriptor, and excludes other opens in this process too.
func tryLock(f *os.File, name string, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	return control(f, "lock", name, func(fd int) error {
		err := again(func() error { return unix.Flock(fd, how|unix.LOCK_NB) })
		if err == unix.EWOULDBLOCK {
			return errHeld
		}
		return err
	})
}

func deviceOf(info fs.FileInfo) (uint64, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, &fs.PathError{Op: "device", Path: info.Name(), Err: syscall.ENOTSUP}
	}
	return uint64(st.Dev), nil
}
