//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// A system without flock can read and write logs, but not keep a second process away from them: taking a lock fails, and with it the
// opening of a store.

func syncFile(f *os.File, _ string) error { return f.Sync() }

func preallocate(f *os.File, name string, _ int64) error {
	return control(f, "preallocate", name, func(int) error { return errors.ErrUnsupported })
}

func tryLock(*os.File, string, bool) error { return errors.ErrUnsupported }

func deviceOf(fs.FileInfo) (uint64, error) { return 0, errors.ErrUnsupported }

func freeOn(*os.File) (uint64, error) { return 0, errors.ErrUnsupported }
