package crashtest

import (
	"strings"

	"github.com/felixd/felixd/storage/vfs"
)

// Defect is a fault that a log could have, for the campaign to prove that it would find it.
type Defect struct {
	// NoSync has the syncs of segments answer without doing anything, so that the log acknowledges before its data are durable.
	NoSync bool
	// NoSyncDir is which sync of a directory, counted from 1, answers without doing anything; 0 is none.
	NoSyncDir int
}

// lazy is a disk with a Defect in front of it.
type lazy struct {
	vfs.FS
	d    Defect
	dirs int // syncs of directories so far
}

func (f *lazy) SyncDir(name string) error {
	if f.dirs++; f.dirs == f.d.NoSyncDir {
		return nil
	}
	return f.FS.SyncDir(name)
}

func (f *lazy) Create(name string) (vfs.File, error) { return f.file(name)(f.FS.Create(name)) }

func (f *lazy) Open(name string, write bool) (vfs.File, error) {
	return f.file(name)(f.FS.Open(name, write))
}

func (f *lazy) file(name string) func(vfs.File, error) (vfs.File, error) {
	return func(x vfs.File, err error) (vfs.File, error) {
		if err != nil || !f.d.NoSync || !strings.HasSuffix(name, ".log") {
			return x, err
		}
		return lazyFile{x}, nil
	}
}

type lazyFile struct{ vfs.File }

func (lazyFile) Sync() error { return nil }
