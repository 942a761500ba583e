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
	if err := m.write(l); err != nil {
		l.store.opts.Counters.MarkFailures.Add(1)
	}
}

// write puts the mark into its file. mu is held.
func (m *mark) write(l *Log) error {
	if m.file == nil {
		panic("disklog: a mark is written that is not open")
	}
	m.buf = segment.AppendMark(m.buf[:0], l.spec.salt, &m.now)
	_, err := m.file.WriteAt(m.buf, 0)
	return err
}

// change makes another mark durable, for what may only be done behind it. An error that says so has poisoned the log.
func (m *mark) change(l *Log, edit func(*segment.Mark)) error {
	m.mu.Lock()
	opened := m.file == nil
	if opened {
		f, err := l.store.fs.Open(l.path(segment.MarkName), true)
		if err != nil {
			m.mu.Unlock()
			return err
		}
		m.file = f
	}
	before := m.now
	edit(&m.now)
	err := m.write(l)
	if err != nil {
		m.now = before
	}
	file := m.file
	m.mu.Unlock()
	if err == nil {
		err = l.orPoison(file.Sync())
	}
	if opened {
		m.close()
	}
	return err
}
