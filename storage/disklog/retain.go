package disklog

import (
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// Removed is what one run of Retain removed.
type Removed struct {
	Segments int
	Bytes    int64
	Records  uint64
}

// Retain removes what the log's Retention lets go: whole sealed segments from the head, oldest first, each durably before the next, so
// that a crash leaves a longer log and never a gap. now is the wall clock in microseconds since the Unix epoch; ages are those of records, by
// their append times, and one from the future keeps its segment. Nothing at or past floor, the commit offset, is removed, nor the segment that
// is written to.
//
// It stops after maxBytes; more says that there is more to do. It waits for the disk: call it in a job of kind Work.
func (l *Log) Retain(now uint64, floor id.Offset, maxBytes int64) (removed Removed, more bool, err error) {
	l.maint.Lock()
	defer l.maint.Unlock()
	old, more, err := l.chooseOld(floor, maxBytes, func(m *segmentMeta, total int64) bool { return l.retain.lets(m, total, now) })
	if err != nil {
		return removed, false, err
	}
	return l.removeOld(old, more)
}

// RetainTo removes what lies before an offset, whatever the log's Retention says: whole sealed segments that end at or before it, in the way
// and with the bounds of Retain. It is for logs whose head is copied to their tail, such as those of caches.
//
// It stops after maxBytes; more says that there is more to do. It waits for the disk: call it in a job of kind Work.
func (l *Log) RetainTo(offset, floor id.Offset, maxBytes int64) (removed Removed, more bool, err error) {
	l.maint.Lock()
	defer l.maint.Unlock()
	old, more, err := l.chooseOld(min(offset, floor), maxBytes, func(*segmentMeta, int64) bool { return true })
	if err != nil {
		return removed, false, err
	}
	return l.removeOld(old, more)
}

// removeOld removes the segments at the head of the log. maint is held.
func (l *Log) removeOld(old []segmentMeta, more bool) (removed Removed, _ bool, err error) {
	if len(old) == 0 {
		return removed, false, err
	}
	// The mark says first where the log will begin, so that a head that is missing afterwards is known not to be lost.
	keep := old[len(old)-1].id + 1
	if err := l.mark.change(l, func(k *segment.Mark) { k.Oldest = keep }); err != nil {
		return removed, false, err
	}
	for i := range old {
		m := &old[i]
		if err := l.removeHead(m); err != nil {
			return removed, false, err
		}
		removed.Segments++
		removed.Bytes += m.fileBytes()
		removed.Records += uint64(m.end - m.base)
	}
	return removed, more, nil
}

// chooseOld picks the segments that go: those from the head on that end at or before floor and that lets lets go, of a log of total bytes without
// the ones picked already. mu is held while lets is called.
func (l *Log) chooseOld(floor id.Offset, maxBytes int64, lets func(m *segmentMeta, total int64) bool) (list []segmentMeta, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.closed {
		return nil, false, l.failed
	}
	total, chosen := l.size.Load(), int64(0)
	for i := range l.segs[:len(l.segs)-1] {
		m := &l.segs[i]
		if m.end > floor || !lets(m, total) {
			break
		}
		if chosen > 0 && chosen+m.fileBytes() > maxBytes {
			return list, true, nil
		}
		list = append(list, *m)
		chosen += m.fileBytes()
		total -= m.fileBytes()
	}
	return list, false, nil
}

// lets reports whether the oldest segment may go, of a log of total bytes.
func (r Retention) lets(m *segmentMeta, total int64, now uint64) bool {
	if r.Bytes > 0 && total > r.Bytes {
		return true
	}
	return r.Age > 0 && m.greatest < now && now-m.greatest > uint64(r.Age.Microseconds())
}

// removeHead removes the oldest segment. Readers that come for it meanwhile find no file, and then that it is not kept any more.
func (l *Log) removeHead(m *segmentMeta) error {
	fs := l.store.fs
	if err := fs.Remove(l.path(segment.FileName(m.id))); err != nil {
		return err
	}
	if err := l.orPoison(fs.SyncDir(l.spec.dir)); err != nil {
		return err
	}
	l.mu.Lock()
	l.forgetHead()
	l.size.Add(-m.fileBytes())
	l.base.Store(uint64(l.segs[0].base))
	l.mu.Unlock()
	l.store.files.forget(l, m.id)
	fs.Remove(l.path(segment.IndexName(m.id))) // opening removes it otherwise
	return nil
}

// forgetHead drops the oldest segment from the list. What the list leaves behind in memory is given back once it is as much as what stays, so
// that one of very many segments costs no more than one of a few. l.mu is held.
func (l *Log) forgetHead() {
	l.segs = l.segs[1:]
	if l.behind++; l.behind >= len(l.segs) {
		l.segs, l.behind = append([]segmentMeta(nil), l.segs...), 0
	}
}
