package disklog

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	iofs "io/fs"
	"sort"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// Read returns stored batches in order, as they were appended, without gaps: the first one holds from, none reaches past end. There is at
// least one if there is any to return, and no further one that would exceed maxBatches or, in bytes of bodies, maxBytes. dst is reused.
// The bodies share what was read from the file: whoever keeps one batch keeps up to Options.ReadBytes.
//
// It waits for a read slot and for the disk. Errors: *TrimmedError if from is not kept any more, *CorruptionError if what is there is
// damaged, *ClosedError, that of ctx, and those of the system, after which the log is as good as before.
func (l *Log) Read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	dst = dst[:0]
	if from >= min(end, id.Offset(l.tail.Load())) {
		_, _, err := l.view(from)
		return dst, err
	}
	if slots := l.store.opts.Slots; slots != nil {
		if err := slots.Acquire(ctx, l); err != nil {
			return dst, err
		}
		defer slots.Release(l)
	}
	return l.read(ctx, from, end, maxBatches, maxBytes, dst)
}

// ReadInJob is Read for a job of Options.Exec. It takes no read slot: the workers of the pool bound such reads, and a job that waited for a
// slot would keep a worker from what needs no slot, for as long as clients read.
func (l *Log) ReadInJob(from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	dst = dst[:0]
	if from >= min(end, id.Offset(l.tail.Load())) {
		_, _, err := l.view(from)
		return dst, err
	}
	return l.read(context.Background(), from, end, maxBatches, maxBytes, dst)
}

func (l *Log) read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	r := reading{log: l, from: from, end: end, batches: maxBatches, bytes: maxBytes, out: dst}
	for !r.full && r.from < end {
		err := ctx.Err()
		more := false
		if err == nil {
			more, err = r.segment()
		}
		if err != nil && len(r.out) == 0 {
			return dst, err
		}
		if err != nil || !more {
			break // what was read is good; the next call, from there, meets the error
		}
	}
	return r.out, nil
}

// view finds the segment that holds an offset, as it is now. None is found, without an error, at the tail and past it.
func (l *Log) view(from id.Offset) (m segmentMeta, cuts uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return m, 0, &ClosedError{Shard: l.spec.shard}
	}
	if oldest := l.segs[0].base; from < oldest {
		return m, 0, &TrimmedError{Requested: from, Oldest: oldest}
	}
	i := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].end > from })
	if i == len(l.segs) {
		return segmentMeta{}, l.cuts, nil
	}
	return l.segs[i], l.cuts, nil
}

// tries is how often a read looks again when what it found does not fit, because the log was cut or a segment was replaced meanwhile.
const tries = 8

// reading is one call of Read.
type reading struct {
	log       *Log
	from, end id.Offset
	batches   int // left
	bytes     int // left; may go below 0 for the first batch
	out       []*batch.Batch
	full      bool
}

// segment reads from the segment that holds from. It returns false at the end of the log.
func (r *reading) segment() (more bool, err error) {
	for try := 0; ; try++ {
		m, cuts, err := r.log.view(r.from)
		if err != nil {
			return false, err
		}
		if m.end <= r.from {
			return false, nil
		}
		err = r.pages(&m)
		if err == nil {
			return true, nil
		}
		if !isCorruption(err) && !errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, err
		}
		_, now, gone := r.log.view(r.from)
		if gone == nil && now == cuts { // a file may have taken the place of the one that was meant, and not be told of yet
			r.log.settled()
			_, now, gone = r.log.view(r.from)
		}
		if gone != nil {
			return false, gone
		}
		if now == cuts || try == tries {
			if isCorruption(err) {
				r.log.store.opts.Counters.ReadsCorrupt.Add(1)
			}
			return false, err
		}
	}
}

// settled waits until no file of the log is being replaced or removed.
func (l *Log) settled() {
	l.maint.Lock()
	defer l.maint.Unlock()
}

func (r *reading) pages(m *segmentMeta) error {
	l := r.log
	f, err := l.store.files.acquire(l, m.id)
	if err != nil {
		return err
	}
	defer l.store.files.release(f)
	o := &l.store.opts
	chunk := min(o.ReadBytes, max(r.bytes, 0)+o.IndexSpacing+pageSlack)
	s, err := l.seek(f, m, scan{chunk: chunk, share: true}, to(r.from))
	if err != nil {
		return err
	}
	return r.batchesOf(s)
}

// pageSlack is what a page reads beyond the bodies it was asked for: room for headers, so that a small page is one read.
const pageSlack = 4 << 10

func (r *reading) batchesOf(s *scan) error {
	for s.more() {
		h, err := s.header()
		if err != nil {
			return err
		}
		if h.End() <= r.from {
			s.skip(&h)
			continue
		}
		if h.End() > r.end || len(r.out) > 0 && (r.batches < 1 || int(h.RawLength) > r.bytes) {
			r.full = true
			return nil
		}
		publisher, body, err := s.content(&h)
		if err != nil {
			return err
		}
		b, err := restore(&h, publisher, body)
		if err != nil {
			return s.where(err)
		}
		r.out = append(r.out, b)
		r.from = h.End()
		r.batches--
		r.bytes -= len(body)
		s.skip(&h)
	}
	return nil
}

// restore makes the batch again that was stored.
func restore(h *segment.BatchHeader, publisher, body []byte) (*batch.Batch, error) {
	b := &batch.Batch{
		Base: h.Base, Count: h.Count, Generation: h.Generation, Kind: h.Kind, AppendMicros: h.AppendMicros,
		ProducerID: h.ProducerID, Sequence: h.Sequence, Publisher: string(publisher), Body: body, Sum: h.RawSum, Summed: true,
	}
	if !h.Kind.Visible() {
		return b, nil
	}
	if h.Kind == batch.Commit && (len(body) < recordOverhead || uint64(binary.BigEndian.Uint32(body)) > uint64(len(body)-recordOverhead)) {
		return nil, &CorruptionError{Kind: segment.BatchFields, Why: "a commit whose event is longer than its body"}
	}
	b.PayloadBytes = len(b.Region()) - recordOverhead*int(h.Count)
	return b, nil
}

// recordOverhead is the length in front of each record of a body, in bytes.
const recordOverhead = 4
