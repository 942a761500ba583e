package testkit

import (
	"errors"
	"sync"

	"github.com/felixd/felixd/storage/vfs"
)

// errDead is what a machine without power says.
var errDead = errors.New("the power is gone")

// Mains is the power of a disk in memory. What a sync reported before the cut is on the image that the cut leaves, and no sync succeeds after it,
// so that nobody is promised what the image has not.
type Mains struct {
	vfs.FS
	mem *vfs.Mem
	mu  sync.RWMutex // held for reading by each sync
	off bool
}

// NewMains is a disk with its power on.
func NewMains(mem *vfs.Mem) *Mains { return &Mains{FS: mem, mem: mem} }

// Cut switches the power off and returns what the disk is then, as leave has it.
func (m *Mains) Cut(leave func(*vfs.Mem) *vfs.Mem) *vfs.Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = true
	return leave(m.mem)
}

func (m *Mains) sync(do func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.off {
		return errDead
	}
	return do()
}

// SyncDir implements vfs.FS.
func (m *Mains) SyncDir(name string) error {
	return m.sync(func() error { return m.FS.SyncDir(name) })
}

// Create implements vfs.FS.
func (m *Mains) Create(name string) (vfs.File, error) { return m.file(m.FS.Create(name)) }

// Open implements vfs.FS.
func (m *Mains) Open(name string, write bool) (vfs.File, error) {
	return m.file(m.FS.Open(name, write))
}

func (m *Mains) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &mainsFile{f, m}, nil
}

type mainsFile struct {
	vfs.File
	m *Mains
}

func (f *mainsFile) Sync() error { return f.m.sync(f.File.Sync) }
