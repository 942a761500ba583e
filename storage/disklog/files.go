package disklog

import (
	"sync"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// files keeps segments open for readers, of all logs of a store, up to a number; the one used longest ago goes first. One that is in use
// is closed when the last reader is done with it, so that no file is closed under a read.
type files struct {
	store *Store

	mu    sync.Mutex
	byKey map[fileKey]*openFile
	head  openFile // of the ring, most recently used first
}

type fileKey struct {
	log *Log
	id  uint64
}

// openFile is one segment that is open for reading.
type openFile struct {
	key        fileKey
	file       vfs.File
	refs       int
	dropped    bool // close it with the last reference
	aged       bool // it was not used since the last sweep
	next, prev *openFile

	indexMu sync.Mutex // held while the index is read or made, so that it is once
	index   *segment.Index
	indexed int64 // how many bytes of the segment it covers
}

func newFiles(s *Store) *files {
	f := &files{store: s, byKey: map[fileKey]*openFile{}}
	f.head.next, f.head.prev = &f.head, &f.head
	return f
}

// acquire opens a segment, or finds it open. Give it back with release.
func (f *files) acquire(l *Log, id uint64) (*openFile, error) {
	key := fileKey{l, id}
	if o := f.find(key); o != nil {
		return o, nil
	}
	file, err := f.store.fs.Open(l.path(segment.FileName(id)), false)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	o := f.byKey[key]
	if o != nil { // somebody else was faster
		o.refs++
		f.mu.Unlock()
		file.Close()
		return o, nil
	}
	o = &openFile{key: key, file: file, refs: 1}
	f.byKey[key] = o
	o.insert(&f.head)
	idle := f.evict(f.store.opts.OpenSealed)
	f.mu.Unlock()
	closeAll(idle)
	f.store.mu.Lock()
	f.store.arm()
	f.store.mu.Unlock()
	return o, nil
}

func (f *files) find(key fileKey) *openFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.byKey[key]
	if o == nil {
		return nil
	}
	o.refs++
	o.aged = false
	o.remove()
	o.insert(&f.head)
	return o
}

func (f *files) release(o *openFile) {
	f.mu.Lock()
	o.refs--
	last := o.refs == 0 && o.dropped
	f.mu.Unlock()
	if last {
		o.file.Close()
	}
}

// evict takes out what is more than keep, and returns what nobody uses. mu is held.
func (f *files) evict(keep int) (idle []*openFile) {
	for o := f.head.prev; o != &f.head && len(f.byKey) > keep; {
		prev := o.prev
		if f.take(o) {
			idle = append(idle, o)
		}
		o = prev
	}
	return idle
}

// take takes one out, and reports whether it is to be closed now. mu is held.
func (f *files) take(o *openFile) bool {
	o.remove()
	delete(f.byKey, o.key)
	o.dropped = true
	return o.refs == 0
}

// forget takes out a segment that was removed or replaced.
func (f *files) forget(l *Log, id uint64) {
	f.mu.Lock()
	o := f.byKey[fileKey{l, id}]
	now := o != nil && f.take(o)
	f.mu.Unlock()
	if now {
		o.file.Close()
	}
}

// drop takes out everything of a log.
func (f *files) drop(l *Log) { f.dropIf(func(o *openFile) bool { return o.key.log == l }) }

func (f *files) dropAll() { f.dropIf(func(*openFile) bool { return true }) }

// age takes out what was not used since the last call, and reports whether anything is left.
func (f *files) age() bool {
	f.dropIf(func(o *openFile) bool {
		old := o.aged && o.refs == 0
		o.aged = true
		return old
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byKey) > 0
}

func (f *files) dropIf(goes func(*openFile) bool) {
	var idle []*openFile
	f.mu.Lock()
	for o := f.head.next; o != &f.head; {
		next := o.next
		if goes(o) && f.take(o) {
			idle = append(idle, o)
		}
		o = next
	}
	f.mu.Unlock()
	closeAll(idle)
}

func closeAll(list []*openFile) {
	for _, o := range list {
		o.file.Close()
	}
}

func (o *openFile) insert(after *openFile) {
	o.prev, o.next = after, after.next
	after.next.prev = o
	after.next = o
}

func (o *openFile) remove() {
	o.prev.next, o.next.prev = o.next, o.prev
	o.prev, o.next = nil, nil
}
