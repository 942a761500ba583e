// Package disk reaches the disk behind its door's back.
package disk

import (
	"io"
	"os"
	files "os"
	"path/filepath"
	"syscall"

	"example.com/house/disk/door"
)

// Load has several ways.
func Load(r *os.Root, name string) (any, error) {
	if os.Getenv("HOME") == "" || os.Getpid() == 1 {
		return nil, os.ErrNotExist
	}
	read := files.ReadFile                // want doors: os.ReadFile
	if _, err := read(name); err != nil { // it is found where it is named
		return nil, err
	}
	if fd, err := syscall.Open(name, 0, 0); err == nil { // want doors: syscall.Open
		return fd, syscall.Close(fd)
	}
	if _, err := r.Open(name); err == nil { // whoever has a root was given it
		return filepath.Join("a", "b"), nil
	}
	if list, err := filepath.Glob(name); err == nil { // want doors: filepath.Glob
		return list, nil
	}
	return door.Open(name)
}

// Copy writes to what it is given.
func Copy(w io.Writer, f *os.File) error {
	_, err := f.WriteTo(w)
	return err
}
