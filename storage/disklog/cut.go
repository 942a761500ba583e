package disklog

import (
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// truncate drops everything at and after off. In this order, each step durable before the next: all bytes are synced; snapshots go; the mark
// goes back to the cut; segments go, newest first; the one that holds the cut is shortened. A crash in between leaves a log that ends later.
func (l *Log) truncate(off id.Offset) error {
	l.maint.Lock()
	defer l.maint.Unlock()
	keep, at, err := l.findCut(off)
	if err != nil || at < 0 {
		return err
	}
	a, err := l.syncAll()
	if err != nil {
		return err
	}
	if err := l.dropSnapshots(); err != nil {
		return err
	}
	err = l.mark.change(l, func(k *segment.Mark) { k.Segment, k.Base, k.Synced = keep.id, keep.base, at })
	if err != nil {
		return err
	}
	l.closeFile(a)
	if err := l.removeAfter(keep.id); err != nil {
		return l.stuck(err)
	}
	if at < keep.fileBytes() {
		if err := l.shorten(keep, at, off); err != nil {
			return l.stuck(err)
		}
	}
	l.lower(off)
	return nil
}

// findCut finds the segment that will be the last one, and how long its file will be; -1 if nothing is to be cut.
func (l *Log) findCut(off id.Offset) (keep segmentMeta, at int64, err error) {
	l.mu.Lock()
	first, last, commit, failed := l.segs[0].base, l.last().end, l.kept.Commit, l.failed
	for i := range l.segs {
		if i == 0 || l.segs[i].base < off {
			keep = l.segs[i]
		}
	}
	l.mu.Unlock()
	switch {
	case failed != nil:
		return keep, -1, failed
	case off >= last:
		return keep, -1, nil
	case off < min(commit, last):
		return keep, -1, &BelowCommitError{Shard: l.spec.shard, To: off, Commit: commit}
	case off < first:
		return keep, -1, &TrimmedError{Requested: off, Oldest: first}
	case off == keep.end:
		return keep, keep.fileBytes(), nil
	}
	at, err = l.positionOf(&keep, off)
	return keep, at, err
}

// positionOf is where the batch at off begins in its segment.
func (l *Log) positionOf(m *segmentMeta, off id.Offset) (int64, error) {
	f, err := l.store.files.acquire(l, m.id)
	if err != nil {
		return 0, err
	}
	defer l.store.files.release(f)
	s, err := l.seek(f, m, scan{chunk: l.store.opts.ReadBytes}, to(off))
	if err != nil {
		return 0, err
	}
	for s.next < off {
		h, err := s.header()
		if err != nil {
			return 0, err
		}
		if h.End() > off {
			return 0, &NotBoundaryError{Shard: l.spec.shard, To: off, Boundary: h.Base}
		}
		s.skip(&h)
	}
	return s.pos, nil
}

// syncAll makes everything that is written durable.
func (l *Log) syncAll() (*active, error) {
	a, err := l.wake()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	last, target, dirty := *l.last(), l.written, l.written > l.synced
	l.mu.Unlock()
	if dirty && !l.sync(a, &last, target) {
		return nil, l.why()
	}
	return a, nil
}

// removeAfter removes the segments after one, newest first, each durably.
func (l *Log) removeAfter(number uint64) error {
	for {
		l.mu.Lock()
		last := *l.last()
		l.mu.Unlock()
		if last.id <= number {
			return nil
		}
		if err := l.removeSegment(last.id); err != nil {
			return err
		}
		l.mu.Lock()
		l.segs = l.segs[:len(l.segs)-1]
		l.size.Add(-last.fileBytes())
		l.cuts++
		l.tail.Store(uint64(l.last().end))
		l.mu.Unlock()
	}
}

// removeSegment removes one segment durably, and its index.
func (l *Log) removeSegment(number uint64) error {
	fs := l.store.fs
	if err := fs.Remove(l.path(segment.FileName(number))); err != nil {
		return err
	}
	if err := l.orPoison(fs.SyncDir(l.spec.dir)); err != nil {
		return err
	}
	l.store.files.forget(l, number)
	fs.Remove(l.path(segment.IndexName(number))) // opening removes it otherwise
	return nil
}

// shorten cuts the newest segment to at bytes, where off begins. It is not sealed any more.
func (l *Log) shorten(m segmentMeta, at int64, off id.Offset) error {
	f, err := l.store.fs.Open(l.path(segment.FileName(m.id)), true)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(at); err != nil {
		return err
	}
	if err := l.orPoison(f.Sync()); err != nil {
		return err
	}
	l.store.files.forget(l, m.id)
	l.store.fs.Remove(l.path(segment.IndexName(m.id)))
	now := segmentMeta{id: m.id, base: m.base, end: m.base, bytes: at}
	h := l.header(&m)
	found, err := segment.Scan(f, at, &h, func(int64, *segment.BatchHeader) error { return nil })
	if err != nil {
		return err
	}
	now.end, now.batches, now.least, now.greatest = found.Next, found.Batches, found.MinMicros, found.MaxMicros
	now.sum, now.summed = found.FileSum, true
	if now.end != off {
		panic("disklog: a log was cut to another offset than was asked for")
	}
	l.mu.Lock()
	l.size.Add(now.fileBytes() - l.last().fileBytes())
	*l.last() = now
	l.mu.Unlock()
	return nil
}

// lower has the log end at off.
func (l *Log) lower(off id.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts++
	l.durable.Store(min(l.durable.Load(), uint64(off)))
	l.tail.Store(uint64(off))
}

// reset drops everything and goes on at base. The mark says first that this is under way, so that a start after a crash finishes it.
func (l *Log) reset(base id.Offset) error {
	l.maint.Lock()
	defer l.maint.Unlock()
	l.mu.Lock()
	commit, failed, first, last := l.kept.Commit, l.failed, l.segs[0].base, *l.last()
	l.mu.Unlock()
	switch {
	case failed != nil:
		return failed
	case first < min(commit, last.end):
		return &BelowCommitError{Shard: l.spec.shard, To: base, Commit: commit}
	}
	a, err := l.syncAll()
	if err != nil {
		return err
	}
	if err := l.dropSnapshots(); err != nil {
		return err
	}
	next := last.id + 1
	err = l.mark.change(l, func(k *segment.Mark) {
		*k = segment.Mark{Segment: next, Oldest: next, Base: base, Synced: segment.HeaderSize, Reset: true}
	})
	if err != nil {
		return err
	}
	l.closeFile(a)
	if err := l.replaceAll(a, next, base); err != nil {
		return l.stuck(err)
	}
	return nil
}

func (l *Log) replaceAll(a *active, next uint64, base id.Offset) error {
	l.mu.Lock()
	old := l.segs
	l.mu.Unlock()
	for i := len(old) - 1; i >= 0; i-- {
		if err := l.removeSegment(old[i].id); err != nil {
			return err
		}
	}
	if err := l.begin(a, next, base); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segs = append([]segmentMeta(nil), *l.last())
	l.size.Store(l.last().fileBytes())
	l.cuts++
	l.base.Store(uint64(base))
	l.durable.Store(uint64(base))
	l.tail.Store(uint64(base))
	return nil
}
