package disklog

import (
	"errors"
	iofs "io/fs"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// roll ends the newest segment, unless that was done before, and begins the next one. When an error stops it between the two the
// log ends with a sealed segment, which is whole; the next append tries again. It runs alone.
func (l *Log) roll() error {
	a, err := l.wake()
	if err != nil {
		return err
	}
	l.mu.Lock()
	last := *l.last()
	l.mu.Unlock()
	if !last.sealed {
		if err := l.seal(a, last); err != nil {
			return err
		}
	}
	if err := l.begin(a, last.id+1, last.end); err != nil {
		return err
	}
	l.store.opts.Counters.Rolls.Add(1)
	return nil
}

// seal puts the footer behind the newest segment and syncs it, with all that was not synced before.
func (l *Log) seal(a *active, last segmentMeta) error {
	if !last.summed {
		sum, err := sumOf(a.file, last.bytes)
		if err != nil {
			return err
		}
		last.sum = sum
	}
	f := segment.Footer{
		Length: last.bytes, FileSum: last.sum, Batches: last.batches, End: last.end,
		MinMicros: last.least, MaxMicros: last.greatest, ID: last.id,
	}
	if _, err := a.file.WriteAt(segment.AppendFooter(nil, l.spec.salt, &f), last.bytes); err != nil {
		l.cutBack(a, last.bytes)
		return err
	}
	last.sealed, last.summed = true, true
	if l.store.opts.Preallocate { // whatever was reserved, before a crash too, goes back
		if err := a.file.Truncate(last.fileBytes()); err != nil {
			l.cutBack(a, last.bytes)
			return err
		}
	}
	l.mu.Lock()
	target := l.written
	l.mu.Unlock()
	if !l.sync(a, &last, target) {
		return l.why()
	}
	l.mu.Lock()
	l.size.Add(last.fileBytes() - l.last().fileBytes())
	*l.last() = last
	index := a.index
	l.mu.Unlock()
	l.deliver()
	l.saveIndex(index)
	l.closeFile(a)
	return nil
}

// begin makes the next segment and has appends go there.
func (l *Log) begin(a *active, number uint64, base id.Offset) error {
	h := segment.Header{
		Log: l.spec.log, NameHash: l.spec.nameHash, Base: base, ID: number,
		CreatedMicros: uint64(l.store.opts.Exec.Now().UnixMicro()),
	}
	if err := l.mark.mend(l); err != nil {
		return err
	}
	f, bySync, err := l.store.makeSegment(l.spec.dir, &h)
	if err != nil {
		if bySync {
			l.poison(err)
		} else {
			l.unmake(number)
		}
		return err
	}
	m := segmentMeta{id: number, base: base, end: base, bytes: segment.HeaderSize, summed: true}
	m.sum = segment.Sum(segment.AppendHeader(nil, &h))
	err = l.mark.change(l, func(k *segment.Mark) {
		k.Segment, k.Base, k.Synced, k.Reset = number, base, segment.HeaderSize, false
	})
	if err != nil {
		f.Close()
		if !l.isPoisoned() { // else the mark may name it already
			l.unmake(number)
		}
		return err
	}
	l.mu.Lock()
	l.segs = append(l.segs, m)
	l.size.Add(m.fileBytes())
	a.file, a.index = f, &segment.Index{ID: number, Base: base}
	a.reserved.Store(0)
	l.mu.Unlock()
	return nil
}

// unmake removes a segment that was not begun after all, durably: its number may be used again after a cut, with another base.
func (l *Log) unmake(number uint64) {
	if err := l.store.fs.Remove(l.path(segment.FileName(number))); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		l.stuck(err)
		return
	}
	l.orPoison(l.store.fs.SyncDir(l.spec.dir))
}

// makeSegment makes a segment with its header and its name durable. After an error nothing of it is left, unless a sync failed.
func (s *Store) makeSegment(dir string, h *segment.Header) (f vfs.File, bySync bool, err error) {
	name := join(dir, segment.FileName(h.ID))
	if f, err = createAnew(s.fs, name); err != nil {
		return nil, false, err
	}
	if _, err = f.WriteAt(segment.AppendHeader(nil, h), 0); err != nil {
		f.Close()
		s.fs.Remove(name)
		return nil, false, err
	}
	if err = f.Sync(); err == nil {
		err = s.fs.SyncDir(dir)
	}
	if err != nil {
		f.Close()
		return nil, true, err
	}
	return f, false, nil
}

// saveIndex writes the index of a segment. It is only a help: one that is missing is made anew.
func (l *Log) saveIndex(x *segment.Index) {
	name := l.path(segment.IndexName(x.ID))
	f, err := createAnew(l.store.fs, name)
	if err == nil {
		_, err = f.WriteAt(segment.AppendIndex(nil, l.spec.salt, x), 0)
		f.Close()
	}
	if err != nil {
		l.store.opts.Counters.IndexFailures.Add(1)
		l.store.fs.Remove(name)
	}
}

// why is the reason nothing is written any more.
func (l *Log) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// sumOf is the checksum of the first n bytes of a file.
func sumOf(f vfs.File, n int64) (sum uint32, err error) {
	buf := make([]byte, min(n, 256<<10))
	for at := int64(0); at < n; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), n-at)]
		if _, err := f.ReadAt(buf, at); err != nil {
			return 0, err
		}
		sum = segment.Extend(sum, buf)
	}
	return sum, nil
}
