package disklog

import (
	"errors"
	"sync/atomic"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// active is what a log holds only while it is written to.
type active struct {
	file     vfs.File       // the newest segment; nil while that is sealed
	index    *segment.Index // of the newest segment; behind the log's mu
	reserved atomic.Int64   // room asked for, as a file size; writes that failed give it up
	fixed    bool           // the system cannot reserve
}

// wake opens what is needed to write. A job that writes or is alone calls it.
func (l *Log) wake() (*active, error) {
	l.mu.Lock()
	a, last := l.active, *l.last()
	l.mu.Unlock()
	asleep := a == nil
	if a != nil && (a.file != nil || last.sealed) {
		return a, nil
	}
	if asleep {
		a = new(active)
		if err := l.mark.open(l); err != nil {
			return nil, err
		}
	}
	if !last.sealed {
		if err := l.openActive(a, &last); err != nil {
			if asleep {
				l.mark.close()
			}
			return nil, err
		}
	}
	l.mu.Lock()
	l.active = a
	l.mu.Unlock()
	l.store.watch(l)
	return a, nil
}

// openActive opens the newest segment for writing.
func (l *Log) openActive(a *active, last *segmentMeta) error {
	file, err := l.store.fs.Open(l.path(segment.FileName(last.id)), true)
	if err != nil {
		return err
	}
	x, err := l.loadIndex(file, last)
	if err != nil {
		file.Close()
		return err
	}
	a.reserved.Store(last.bytes)
	l.mu.Lock()
	defer l.mu.Unlock()
	a.file, a.index = file, x
	return nil
}

// closeFile gives back the segment's file.
func (l *Log) closeFile(a *active) {
	if a.file != nil {
		a.file.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.file, a.index = nil, nil
}

const (
	// reserveFrom is the size from which a segment gets room ahead: many small logs would otherwise hold much of a disk for nothing.
	reserveFrom = 64 << 10
	// reserveFirst is what it gets first. It doubles each time half of it is used.
	reserveFirst = 1 << 20
)

// reserve asks for room ahead of the writes, away from them. That it fails costs nothing but speed.
func (l *Log) reserve(a *active, bytes int64) {
	o, have := &l.store.opts, a.reserved.Load()
	if !o.Preallocate || a.fixed || bytes < reserveFrom || bytes < have/2 || have >= o.SegmentBytes {
		return
	}
	want := min(max(reserveFirst, 2*have), o.SegmentBytes)
	if err := a.file.Preallocate(want); err != nil {
		a.fixed = errors.Is(err, errors.ErrUnsupported)
		return
	}
	a.reserved.CompareAndSwap(have, want)
}

// trim gives back the room that was not needed.
func (a *active) trim(size int64) error {
	if a.reserved.Load() <= size {
		return nil
	}
	a.reserved.Store(size)
	return a.file.Truncate(size)
}
