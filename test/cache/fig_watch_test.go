package cache

import (
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage/vfs"
)

// countedFS counts the files that are open.
type countedFS struct {
	vfs.FS
	open     atomic.Int64
	unsynced bool // nothing is synced: what is counted does not depend on it
}

func (f *countedFS) SyncDir(name string) error {
	if f.unsynced {
		return nil
	}
	return f.FS.SyncDir(name)
}

func (f *countedFS) Create(name string) (vfs.File, error) { return f.count(f.FS.Create(name)) }

func (f *countedFS) Open(name string, write bool) (vfs.File, error) {
	return f.count(f.FS.Open(name, write))
}

func (f *countedFS) count(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	f.open.Add(1)
	return &countedFile{File: file, fs: f}, nil
}

type countedFile struct {
	vfs.File
	fs   *countedFS
	over atomic.Bool
}

func (f *countedFile) Sync() error {
	if f.fs.unsynced {
		return nil
	}
	return f.File.Sync()
}

func (f *countedFile) Close() error {
	if !f.over.Swap(true) {
		f.fs.open.Add(-1)
	}
	return f.File.Close()
}

// countedClock is the clock of the machine, and counts the timers that are armed.
type countedClock struct {
	actors.Clock
	armed atomic.Int64
}

func (c *countedClock) AfterFunc(d time.Duration, f func()) actors.Timer {
	t := &countedTimer{clock: c}
	c.armed.Add(1)
	t.Timer = c.Clock.AfterFunc(d, func() {
		c.armed.Add(-1)
		f()
	})
	return t
}

// countedTimer is one of AfterFunc; those of NewTimer are held by goroutines, which are counted themselves.
type countedTimer struct {
	actors.Timer
	clock *countedClock
}

func (t *countedTimer) Stop() bool {
	pending := t.Timer.Stop()
	if pending {
		t.clock.armed.Add(-1)
	}
	return pending
}

func (t *countedTimer) Reset(d time.Duration) bool {
	t.clock.armed.Add(1)
	pending := t.Timer.Reset(d)
	if pending {
		t.clock.armed.Add(-1)
	}
	return pending
}
