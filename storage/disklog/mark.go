package disklog

import (
	"sync"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// mark is durable.mark, see segment.Mark for what it says and for the order in which that has to become durable.
type mark struct {
	mu   sync.Mutex // taken last of all
	now  segment.Mark
	torn bool     // the last write failed: what the file says now is unknown
	file vfs.File // nil while the log is idle
	buf  []byte
}

// open gets the file ready to be written.
func (m *mark) open(l *Log) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		return nil
	}
	f, err := l.store.fs.Open(l.path(segment.MarkName), true)
	m.file = f
	return err
}

func (m *mark) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		m.file.Close()
	}
	m.file, m.buf = nil, nil
}

// move vouches for a segment up to its end as last describes it: after a sync of that, and before anybody hears of it. The mark itself is
// not synced, so that after a power cut it may be old, but never ahead of the data. An old one makes recovery repair what it
// could have refused, and loses nothing, so that a failure is only counted.
func (m *mark) move(l *Log, last *segmentMeta) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Segment, m.now.Base, m.now.Synced = last.id, last.base, last.fileBytes()
	if m.file == nil {
		panic("disklog: a mark is moved that is not open")
	}
	if err := m.write(l, m.file); err != nil {
		l.store.opts.Counters.MarkFailures.Add(1)
	}
}

// write puts the mark into its file. mu is held.
func (m *mark) write(l *Log, f vfs.File) error {
	m.buf = segment.AppendMark(m.buf[:0], l.spec.salt, &m.now)
	_, err := f.WriteAt(m.buf, 0)
	m.torn = err != nil
	return err
}

// change makes another mark durable, for what may only be done behind it. An error of the sync has poisoned the log. It has a file of its own,
// for it is called while the log may go to rest or wake.
func (m *mark) change(l *Log, edit func(*segment.Mark)) error {
	f, err := l.store.fs.Open(l.path(segment.MarkName), true)
	if err != nil {
		return err
	}
	defer f.Close()
	m.mu.Lock()
	before := m.now
	edit(&m.now)
	if err = m.write(l, f); err != nil {
		m.now = before
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return l.orPoison(f.Sync())
}

// mend writes the mark again if that failed the last time: before segments come or go, whose recovery needs one that can be read.
func (m *mark) mend(l *Log) error {
	m.mu.Lock()
	torn := m.torn
	m.mu.Unlock()
	if !torn {
		return nil
	}
	return m.change(l, func(*segment.Mark) {})
}
