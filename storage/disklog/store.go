package disklog

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// Store is a directory tree of logs, locked for one owner.
type Store struct {
	fs     vfs.FS
	opts   Options
	device uint64
	lock   io.Closer
	files  *files

	encoders sync.Pool
	unpacker unpacker

	mu       sync.Mutex
	logs     map[string]*Log           // by directory; nil while it is being opened
	poisoned map[string]*PoisonedError // directories that a sync failed in, for the life of the process
	awake    *Log                      // a ring of those that hold files for writing
	swept    func() bool               // the timer of the next sweep; nil: there is none
	closed   bool
	foreign  []string
}

// OpenStore opens the tree below the root of fs, and makes it if it is empty. It takes the lock, for as long as the store is open; a
// *vfs.LockedError says who holds it.
func OpenStore(fs vfs.FS, o Options) (*Store, error) {
	if o.Exec == nil {
		return nil, errors.New("open store: no executor")
	}
	o.fill()
	lock, err := fs.Lock(segment.LockName, false, o.Holder)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{fs: fs, opts: o, lock: lock, logs: map[string]*Log{}, poisoned: map[string]*PoisonedError{}}
	s.encoders.New = newEncoder
	s.files = newFiles(s)
	if err := s.prepare(); err != nil {
		lock.Close()
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// prepare makes the roots of the kinds, and looks for what does not belong here.
func (s *Store) prepare() error {
	var err error
	if s.device, err = s.fs.Device("."); err != nil {
		return err
	}
	roots := []string{segment.DeletedName}
	for _, k := range segment.LogKinds() {
		if k.Root() != "" {
			roots = append(roots, k.Root())
		}
	}
	for _, root := range roots {
		if err := s.fs.Mkdir(root); err != nil && !errors.Is(err, iofs.ErrExist) {
			return err
		}
	}
	if err := s.fs.SyncDir("."); err != nil {
		return err
	}
	entries, err := s.fs.ReadDir(".")
	if err != nil {
		return err
	}
	roots = append(roots, segment.LockName, segment.SalvagedName)
	for _, e := range entries {
		if _, _, ok := segment.ParseDirName(e.Name); !ok && !contains(roots, e.Name) {
			s.foreign = append(s.foreign, e.Name)
		}
	}
	return nil
}

func contains(list []string, name string) bool {
	for _, have := range list {
		if have == name {
			return true
		}
	}
	return false
}

// Exists reports whether there is a log of that name, kind and incarnation, open or not. It waits for the disk.
func (s *Store) Exists(spec *Spec) (bool, error) {
	_, err := s.fs.Stat(spec.Dir())
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Foreign lists what lies at the store's root and is not of the store, as found when it was opened. It is left alone.
func (s *Store) Foreign() []string { return append([]string(nil), s.foreign...) }

// Counters are what the store counts.
func (s *Store) Counters() *Counters { return s.opts.Counters }

// Free is how many bytes may still be written.
func (s *Store) Free() (uint64, error) { return s.fs.Free(".") }

// Device tells the store's device apart, for jobs of its owner.
func (s *Store) Device() uint64 { return s.device }

// Close gives back the lock. Every log has to be closed before; the error names those that are not, and the store stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	if len(s.logs) > 0 {
		open := slices.Sorted(maps.Keys(s.logs))
		s.mu.Unlock()
		return fmt.Errorf("close store: still open: %s", strings.Join(open[:min(len(open), 3)], ", "))
	}
	s.closed = true
	stop := s.swept
	s.swept = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	s.files.dropAll()
	return s.lock.Close()
}

// reserve takes the place of a log that is to be opened.
func (s *Store) reserve(dir, shard string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrStoreClosed
	}
	if err := s.poisoned[dir]; err != nil {
		return err
	}
	l, taken := s.logs[dir]
	switch {
	case !taken:
		s.logs[dir] = nil
		return nil
	case l != nil && l.isClosing():
		return ErrClosing
	}
	return &BusyError{Shard: shard}
}

func (l *Log) isClosing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing
}

// settle ends an open: l is nil if it failed.
func (s *Store) settleOpen(dir string, l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l == nil {
		delete(s.logs, dir)
		return
	}
	s.logs[dir] = l
	s.opts.Counters.OpenLogs.Add(1)
}

// forget lets go of a closed log.
func (s *Store) forget(l *Log) {
	s.files.drop(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, l.spec.dir)
	s.opts.Counters.OpenLogs.Add(-1)
}

func (s *Store) poison(dir string, err *PoisonedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poisoned[dir] == nil {
		s.poisoned[dir] = err
	}
}
