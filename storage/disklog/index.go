package disklog

import (
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// indexMax bounds an index file that is read: entries of a segment of 64 GiB at the default spacing.
const indexMax = 384 << 20

// loadIndex reads a segment's index, or makes it from the segment.
func (l *Log) loadIndex(file vfs.File, m *segmentMeta) (*segment.Index, error) {
	if b, err := readSmall(l.store.fs, l.path(segment.IndexName(m.id)), indexMax); err == nil {
		h := l.header(m)
		if x, err := segment.DecodeIndex(b, l.spec.salt, &h, m.bytes); err == nil {
			return &x, nil
		}
	}
	return l.makeIndex(file, m)
}

// makeIndex makes an index from the segment. Up to a damage in it, where a read will find it.
func (l *Log) makeIndex(file vfs.File, m *segmentMeta) (*segment.Index, error) {
	h := l.header(m)
	x := &segment.Index{ID: m.id, Base: m.base}
	_, err := segment.Scan(file, m.bytes, &h, func(position int64, b *segment.BatchHeader) error {
		x.Note(position, b, int64(l.store.opts.IndexSpacing))
		return nil
	})
	if err != nil && !isCorruption(err) {
		return nil, err
	}
	return x, nil
}

func (l *Log) header(m *segmentMeta) segment.Header {
	return segment.Header{Log: l.spec.log, NameHash: l.spec.nameHash, Base: m.base, ID: m.id}
}

// seek returns a scan of a segment that begins at the batch that pick finds in the index, or at the first one. An index is a hint: if there is
// no such batch where it says, another index is made from the segment.
func (l *Log) seek(o *openFile, m *segmentMeta, s scan, pick func(*segment.Index) (segment.IndexEntry, bool)) (*scan, error) {
	s.log, s.meta, s.file = l, *m, o.file
	for _, anew := range []bool{false, true} {
		x, err := l.indexOf(o, m, anew)
		if err != nil {
			return nil, err
		}
		e, ok := pick(x)
		if !ok {
			break
		}
		s.pos, s.next = e.Position, e.Offset
		if _, err = s.header(); err == nil {
			return &s, nil
		}
		if !isCorruption(err) {
			return nil, err
		}
	}
	s.pos, s.next = segment.HeaderSize, m.base
	return &s, nil
}

// to picks the last entry at or before an offset.
func to(o id.Offset) func(*segment.Index) (segment.IndexEntry, bool) {
	return func(x *segment.Index) (segment.IndexEntry, bool) { return x.Before(o) }
}

// indexOf returns the index for reads of a segment. anew has it made from the segment instead of read from its file.
func (l *Log) indexOf(o *openFile, m *segmentMeta, anew bool) (*segment.Index, error) {
	if x := l.activeIndex(m); x != nil {
		return x, nil
	}
	o.indexMu.Lock()
	defer o.indexMu.Unlock()
	if o.index != nil && o.indexed == m.bytes && !anew {
		return o.index, nil
	}
	load := l.loadIndex
	if anew {
		load = l.makeIndex
	}
	x, err := load(o.file, m)
	if err != nil {
		return nil, err
	}
	o.index, o.indexed = x, m.bytes
	return x, nil
}

// activeIndex is the index of the segment that is being written, as it is now, if m is that and the log is awake.
func (l *Log) activeIndex(m *segmentMeta) *segment.Index {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active == nil || l.active.index == nil || l.active.index.ID != m.id {
		return nil
	}
	x := *l.active.index // entries are only ever appended
	return &x
}
