package disklog

import (
	"context"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// Headers calls f for each stored batch from the one that holds from, in order, up to the log's tail as it was at the call. body reads and
// verifies the batch's body; it is good until f returns. An error of f ends it. It waits for the disk: call it in a job of kind Work.
// Errors are those of Read.
func (l *Log) Headers(from id.Offset, f func(h *segment.BatchHeader, body func() ([]byte, error)) error) error {
	end := id.Offset(l.tail.Load())
	for from < end {
		m, _, err := l.view(from)
		if err != nil {
			return err
		}
		if m.end <= from {
			return nil
		}
		if err := l.headersOf(&m, from, end, f); err != nil {
			return err
		}
		from = m.end
	}
	return nil
}

func (l *Log) headersOf(m *segmentMeta, from, end id.Offset, f func(*segment.BatchHeader, func() ([]byte, error)) error) error {
	o, err := l.store.files.acquire(l, m.id)
	if err != nil {
		return err
	}
	defer l.store.files.release(o)
	s, err := l.seek(o, m, scan{chunk: l.store.opts.ReadBytes}, to(from))
	if err != nil {
		return err
	}
	for s.more() && s.next < end {
		h, err := s.header()
		if err != nil {
			return err
		}
		if h.End() > from {
			err = f(&h, func() ([]byte, error) {
				_, body, err := s.content(&h)
				return body, err
			})
			if err != nil {
				return err
			}
		}
		s.skip(&h)
	}
	return nil
}

// OffsetForTime finds the first batch below end that was appended at or after a time, in microseconds since the Unix epoch; false if there
// is none. Times are the leader's clock: where that was set back, the answer is near the first such batch. Errors are those of Read.
func (l *Log) OffsetForTime(ctx context.Context, micros uint64, end id.Offset) (id.Offset, bool, error) {
	if slots := l.store.opts.Slots; slots != nil {
		if err := slots.Acquire(ctx, l); err != nil {
			return 0, false, err
		}
		defer slots.Release(l)
	}
	for from := id.Offset(0); ; {
		m, ok, err := l.segmentForTime(micros, from)
		if err != nil || !ok || m.base >= end {
			return 0, false, err
		}
		o, found, err := l.timeIn(&m, micros)
		if err != nil {
			if _, _, gone := l.view(m.base); !isTrimmed(gone) {
				return 0, false, err
			}
			continue // retention was faster
		}
		if found {
			return o, o < end, nil
		}
		from = m.end
	}
}

// segmentForTime is the first segment, of those that begin at from or later, with a batch of that time or a later one.
func (l *Log) segmentForTime(micros uint64, from id.Offset) (m segmentMeta, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return m, false, &ClosedError{Shard: l.spec.shard}
	}
	for i := range l.segs {
		if s := &l.segs[i]; s.base >= from && s.batches > 0 && s.greatest >= micros {
			return *s, true, nil
		}
	}
	return m, false, nil
}

func (l *Log) timeIn(m *segmentMeta, micros uint64) (id.Offset, bool, error) {
	o, err := l.store.files.acquire(l, m.id)
	if err != nil {
		return 0, false, err
	}
	defer l.store.files.release(o)
	s, err := l.seek(o, m, scan{chunk: l.store.opts.IndexSpacing + pageSlack}, func(x *segment.Index) (e segment.IndexEntry, ok bool) {
		for i := range x.Entries { // from the front: times ascend only as far as the clock did
			if x.Entries[i].Micros >= micros {
				break
			}
			e, ok = x.Entries[i], true
		}
		return e, ok
	})
	if err != nil {
		return 0, false, err
	}
	for s.more() {
		h, err := s.header()
		if err != nil {
			return 0, false, err
		}
		if h.AppendMicros >= micros {
			return h.Base, true, nil
		}
		s.skip(&h)
	}
	return 0, false, nil
}
