// Package vfs is the only door to files: whatever a log keeps, it keeps through an FS. There are three: OS is a directory of the
// machine; Mem is a disk in memory that can tell what a power cut would have left of it; Fault puts errors and delays in front of
// another one.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FS is a tree of files below one root. Names are slash-separated and relative to it, without "." and ".." and without a slash at
// either end; "." alone is the root. Any other name is refused with a *NameError. It is safe for concurrent use.
//
// Errors wrap those of io/fs (fs.ErrNotExist, fs.ErrExist) and of the system (syscall.ENOSPC, EDQUOT, EIO, ESTALE, EMFILE, EROFS),
// so that errors.Is answers for every implementation alike.
//
// Nothing is durable before it was synced: a file's bytes and size by File.Sync, its name, and the names a Rename or Remove took away, by
// SyncDir of the directory that holds it.
type FS interface {
	// Create makes a new file, open for reading and writing. fs.ErrExist if the name is taken, by anything.
	Create(name string) (File, error)
	// Open opens an existing regular file, for writing too if write says so. A symbolic link is not followed: it is a *NameError,
	// like anything else that is no regular file.
	Open(name string, write bool) (File, error)
	// Mkdir makes one directory. fs.ErrExist if the name is taken.
	Mkdir(name string) error
	// ReadDir lists a directory, sorted by name. What a name stands for is told without following links.
	ReadDir(name string) ([]Entry, error)
	// Stat describes a name without following links.
	Stat(name string) (Entry, error)
	// Rename moves a file or directory over a file that may be there; the two directories may differ.
	Rename(from, to string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Lock takes the advisory lock of a file, which is made if it is missing, and writes holder into it, for diagnostics only. It does not
	// wait: a *LockedError says who holds it. A shared lock excludes exclusive ones only, makes and writes nothing, and is
	// fs.ErrNotExist without the file. The lock ends with Close, and with the process.
	Lock(name string, shared bool, holder string) (io.Closer, error)
	// Device tells devices apart: names with equal numbers share one.
	Device(name string) (uint64, error)
	// Free is how many bytes may still be written below a directory.
	Free(name string) (uint64, error)
}

// File is one open file. ReadAt may be called from any number of goroutines, beside one that changes the file. After Close all
// fail with an error that wraps fs.ErrClosed; Close waits for nobody.
type File interface {
	io.ReaderAt
	// WriteAt writes all of p, or fails; how much of it is there then is unknown. A system that writes less without an error is asked
	// again until it fails.
	WriteAt(p []byte, off int64) (int, error)
	// Truncate sets the size.
	Truncate(size int64) error
	// Sync makes bytes and size durable. After an error nothing is known about what was written since the last success, and a later
	// success proves nothing.
	Sync() error
	// Size is the length of the file, in bytes.
	Size() (int64, error)
	// Preallocate reserves room for a file of so many bytes without changing its size. errors.ErrUnsupported if the system cannot.
	Preallocate(size int64) error
	Close() error
}

// EntryKind is what a name stands for.
type EntryKind uint8

const (
	// Regular is a file.
	Regular EntryKind = iota + 1
	// Directory is a directory.
	Directory
	// Other is a link, a socket, or anything else that is neither.
	Other
)

// Entry is one name of a directory.
type Entry struct {
	Name string // the last part
	Kind EntryKind
	Size int64 // of a file, in bytes
}

// NameError refuses a name that is not one below the root of an FS, or that stands for something else than was asked for.
type NameError struct {
	Name string
	Why  string
}

func (e *NameError) Error() string { return "file name " + quote(e.Name) + ": " + e.Why }

// LockedError says that another process, or another part of this one, holds a lock.
type LockedError struct {
	Name   string
	Holder string // what the holder wrote; may be empty
}

func (e *LockedError) Error() string {
	if e.Holder == "" {
		return "lock " + e.Name + ": it is held by another process"
	}
	return "lock " + e.Name + ": it is held by " + e.Holder
}

// IsNoSpace reports whether an error says that the disk or a quota is full.
func IsNoSpace(err error) bool { return errors.Is(err, noSpace) || errors.Is(err, overQuota) }

// WithoutFolders is the text of an error in which its files have their names alone: where they are is nobody's business but the operator's.
func WithoutFolders(err error) string {
	text := err.Error()
	eachFile(err, func(path string) {
		if path != "" {
			text = strings.ReplaceAll(text, path, filepath.Base(path))
		}
	})
	return text
}

// eachFile calls do with each file that an error names, or one that it wraps.
func eachFile(err error, do func(path string)) {
	switch e := err.(type) {
	case *fs.PathError:
		do(e.Path)
	case *os.LinkError:
		do(e.Old)
		do(e.New)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			eachFile(inner, do)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			eachFile(inner, do)
		}
	}
}
