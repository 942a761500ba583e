package vfs

import (
	"io"
	"io/fs"
	"sync"
	"syscall"
)

// Unlimited is the capacity of a Mem that nothing can fill.
const Unlimited = int64(-1)

// unlimitedFree is what an unlimited Mem says is free: 1 PiB.
const unlimitedFree = uint64(1) << 50

// Mem is a disk in memory, for simulations and tests. It is deterministic: what it does depends on the calls and on nothing else. It
// knows which bytes, sizes and names were synced, so that it can tell what a crash leaves:
//
//   - Clone is the disk after the process was killed: everything that was written is there, synced or not.
//   - Crash is a disk as a power cut could have left it.
//   - CrashHard is the worst of those: nothing that was not synced is there.
//
// All three leave the Mem as it is, share its pages with it until one of them writes, and begin without open files and locks.
// It is safe for concurrent use.
type Mem struct {
	mu    sync.Mutex
	hook  func(Op)
	disk  disk
	opens map[ino]int // open files and locks per file
	open  int         // of all files
	locks map[ino]*memLock
}

// Phase says where a call stands when a Mem's hook is called.
type Phase uint8

const (
	// Before is before anything was done.
	Before Phase = iota + 1
	// Midway is in the midst of a write of more than one page: the pages before the middle one are written.
	Midway
	// After is when all was done, or failed.
	After
)

// Op is one call that changes a Mem, or makes something on it durable.
type Op struct {
	Call  Call
	Phase Phase
	Name  string // of a File: the one it was opened by
	To    string // of a Rename
	Off   int64  // of a write, in bytes
	Len   int64  // of a write, in bytes; of a truncate and preallocate, the size
	Err   error  // After only
}

// NewMem returns an empty disk of unlimited capacity. Its root is durable.
func NewMem() *Mem {
	return &Mem{disk: newDisk(), opens: map[ino]int{}, locks: map[ino]*memLock{}}
}

// OnOp has hook called before each call that changes something or syncs, and after it, on the goroutine of the call and with no lock held: it
// may clone the disk. nil ends that.
func (m *Mem) OnOp(hook func(Op)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// SetCapacity bounds the bytes that files occupy, in whole pages of 4096 with what is preallocated; writes that need more get what
// fits and syscall.ENOSPC. It may be lower than what is occupied; Unlimited lifts the bound.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.capacity = bytes
}

// Used is what files occupy, in bytes: whole pages, with what is preallocated and what only open files hold.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.used * pageSize
}

// OpenFiles counts files and locks that are not closed.
func (m *Mem) OpenFiles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// change runs one call that changes the disk, between the two calls of the hook.
func (m *Mem) change(op Op, do func() error) error {
	m.tell(op, Before, nil)
	m.mu.Lock()
	err := do()
	m.mu.Unlock()
	m.tell(op, After, err)
	return err
}

func (m *Mem) tell(op Op, p Phase, err error) {
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	if hook != nil {
		op.Phase, op.Err = p, err
		hook(op)
	}
}

// Create makes a new file.
func (m *Mem) Create(name string) (f File, err error) {
	if err := checkNew("create", name); err != nil {
		return nil, err
	}
	err = m.change(Op{Call: CallCreate, Name: name}, func() error {
		at, err := m.disk.make("create", name, false)
		if err == nil {
			f = m.opened(at, name, true)
		}
		return err
	})
	return f, err
}

// Open opens a file.
func (m *Mem) Open(name string, write bool) (File, error) {
	if err := checkChild(name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.disk.file("open", name)
	if err != nil {
		return nil, err
	}
	return m.opened(at, name, write), nil
}

func (m *Mem) opened(at ino, name string, write bool) *memFile {
	m.opens[at]++
	m.open++
	m.disk.refer(at, 1)
	return &memFile{m: m, at: at, name: name, write: write}
}

// closed ends one opening; the last one of a file without a name frees its pages.
func (m *Mem) closed(at ino) {
	m.open--
	if m.opens[at]--; m.opens[at] == 0 {
		delete(m.opens, at)
		if n := m.disk.nodes[at]; n.links == 0 {
			m.disk.used -= n.held
		}
	}
	m.disk.refer(at, -1)
}

// Mkdir makes a directory.
func (m *Mem) Mkdir(name string) error {
	if err := checkNew("mkdir", name); err != nil {
		return err
	}
	return m.change(Op{Call: CallMkdir, Name: name}, func() error {
		_, err := m.disk.make("mkdir", name, true)
		return err
	})
}

// ReadDir lists a directory.
func (m *Mem) ReadDir(name string) ([]Entry, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.disk.dir("readdir", name)
	if err != nil {
		return nil, err
	}
	return m.disk.list(at), nil
}

// Stat describes a name.
func (m *Mem) Stat(name string) (Entry, error) {
	if err := checkName(name); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.disk.find("stat", name)
	if err != nil {
		return Entry{}, err
	}
	_, base := parentOf(name)
	return m.disk.entry(base, at), nil
}

// Rename moves a file or directory. It is atomic in a crash: both names changed or neither.
func (m *Mem) Rename(from, to string) error {
	if err := checkChild(from); err != nil {
		return err
	}
	if err := checkChild(to); err != nil {
		return err
	}
	return m.change(Op{Call: CallRename, Name: from, To: to}, func() error { return m.unlinked(m.disk.rename(from, to)) })
}

// Remove removes a file or an empty directory.
func (m *Mem) Remove(name string) error {
	if err := checkChild(name); err != nil {
		return err
	}
	return m.change(Op{Call: CallRemove, Name: name}, func() error { return m.unlinked(m.disk.remove(name)) })
}

// unlinked frees the pages of a file that lost its name, unless it is open.
func (m *Mem) unlinked(at ino, err error) error {
	if at != 0 && m.opens[at] == 0 {
		m.disk.used -= m.disk.nodes[at].held
	}
	if at != 0 {
		m.disk.refer(at, -1)
	}
	return err
}

// SyncDir makes the names in a directory durable.
func (m *Mem) SyncDir(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return m.change(Op{Call: CallSyncDir, Name: name}, func() error {
		at, err := m.disk.dir("syncdir", name)
		if err == nil {
			m.disk.syncDir(at)
		}
		return err
	})
}

// Device is the same for all names that are there.
func (m *Mem) Device(name string) (uint64, error) {
	if _, err := m.Stat(name); err != nil {
		return 0, err
	}
	return 1, nil
}

// Free is what the capacity leaves.
func (m *Mem) Free(name string) (uint64, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.disk.dir("free", name); err != nil {
		return 0, err
	}
	if m.disk.capacity < 0 {
		return unlimitedFree, nil
	}
	return uint64(max(0, m.disk.capacity/pageSize-m.disk.used)) * pageSize, nil
}

// memLock is who holds a file's lock.
type memLock struct {
	exclusive bool
	shared    int
}

// Lock takes a lock. It is gone in every clone, as with the process that held it.
func (m *Mem) Lock(name string, shared bool, holder string) (c io.Closer, err error) {
	if err := checkChild(name); err != nil {
		return nil, err
	}
	err = m.change(Op{Call: CallLock, Name: name}, func() error {
		c, err = m.lock(name, shared, holder)
		return err
	})
	return c, err
}

func (m *Mem) lock(name string, shared bool, holder string) (io.Closer, error) {
	at, err := m.disk.file("lock", name)
	if isNotExist(err) && !shared {
		at, err = m.disk.make("lock", name, false)
	}
	if err != nil {
		return nil, err
	}
	l := m.locks[at]
	if l != nil && (l.exclusive || !shared) {
		return nil, &LockedError{Name: name, Holder: m.disk.holder(at)}
	}
	if l == nil {
		l = &memLock{exclusive: !shared}
		m.locks[at] = l
	}
	m.opens[at]++
	m.open++
	m.disk.refer(at, 1)
	if shared {
		l.shared++
	} else {
		m.disk.truncate(at, 0)
		_, _ = m.disk.write(at, []byte(cutHolder(holder)), 0) // for diagnostics only, see osFS
	}
	return &memUnlock{m: m, at: at, name: name}, nil
}

// memUnlock ends a lock.
type memUnlock struct {
	m    *Mem
	at   ino
	name string
	done bool
}

func (u *memUnlock) Close() error {
	u.m.mu.Lock()
	defer u.m.mu.Unlock()
	if u.done {
		return &fs.PathError{Op: "unlock", Path: u.name, Err: fs.ErrClosed}
	}
	u.done = true
	l := u.m.locks[u.at]
	if l.shared--; l.exclusive || l.shared == 0 {
		delete(u.m.locks, u.at)
	}
	u.m.closed(u.at)
	return nil
}

// memFile is an open file of a Mem.
type memFile struct {
	m     *Mem
	at    ino
	name  string
	write bool
	done  bool
}

// ready refuses a call on a closed file, and one that changes a file that is open for reading. The lock is held.
func (f *memFile) ready(op string, change bool) error {
	if f.done {
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	}
	if change && !f.write {
		return &fs.PathError{Op: op, Path: f.name, Err: syscall.EBADF}
	}
	return nil
}
