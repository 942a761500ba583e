package queue

import (
	"errors"
	"sync"

	"github.com/felixd/felixd/storage/vfs"
)

// errDead is what a machine without power says.
var errDead = errors.New("the power is gone")

// mains is the power of a disk. What a sync reported before the cut is on the image that the cut leaves, and no sync succeeds after it, so
// that nobody is promised what the image has not.
type mains struct {
	vfs.FS
	mem *vfs.Mem
	mu  sync.RWMutex // held for reading by each sync
	off bool
}

// cut switches the power off and returns what the disk is then.
func (m *mains) cut(leave func(*vfs.Mem) *vfs.Mem) *vfs.Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = true
	return leave(m.mem)
}

func (m *mains) sync(do func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.off {
		return errDead
	}
	return do()
}

func (m *mains) SyncDir(name string) error {
	return m.sync(func() error { return m.FS.SyncDir(name) })
}

func (m *mains) Create(name string) (vfs.File, error) { return m.file(m.FS.Create(name)) }

func (m *mains) Open(name string, write bool) (vfs.File, error) {
	return m.file(m.FS.Open(name, write))
}

func (m *mains) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &mainsFile{f, m}, nil
}

type mainsFile struct {
	vfs.File
	m *mains
}

func (f *mainsFile) Sync() error { return f.m.sync(f.File.Sync) }
