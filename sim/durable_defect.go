package main

import (
	"path"
	"strings"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// forgetful is a disk that says that it has synced when it has not: what the product would be like if it forgot to ask.
type forgetful struct {
	vfs.FS
	defect Defect
}

// SyncDir forgets the directories of logs.
func (f forgetful) SyncDir(name string) error {
	if f.defect == DirSyncSkipped && name != "." && name != "deleted" {
		return nil
	}
	return f.FS.SyncDir(name)
}

// Create makes a new file.
func (f forgetful) Create(name string) (vfs.File, error) { return f.file(name)(f.FS.Create(name)) }

// Open opens a file.
func (f forgetful) Open(name string, write bool) (vfs.File, error) {
	return f.file(name)(f.FS.Open(name, write))
}

func (f forgetful) file(name string) func(vfs.File, error) (vfs.File, error) {
	return func(file vfs.File, err error) (vfs.File, error) {
		cache := strings.HasPrefix(name, segment.Cache.Root()+"/") || strings.HasPrefix(name, segment.Counters.Root()+"/")
		group := strings.HasPrefix(name, segment.Groups.Root()+"/") || strings.HasPrefix(name, segment.DeadLetters.Root()+"/")
		forgets := f.defect == AckBeforeSync || f.defect == CacheSyncSkipped && cache || f.defect == GroupSyncSkipped && group
		if err != nil || !forgets || !strings.HasSuffix(name, ".log") && path.Base(name) != segment.MarkName {
			return file, err
		}
		return unsynced{file}, nil
	}
}

// unsynced is a file whose syncs do nothing.
type unsynced struct{ vfs.File }

// Sync says that it did.
func (unsynced) Sync() error { return nil }
