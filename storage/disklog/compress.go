package disklog

import (
	"context"

	"github.com/klauspost/compress/zstd"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

const (
	// packFrom is the length from which a body is worth packing, in bytes.
	packFrom = 256
	// packSaves is what a segment must lose to be replaced, as one part in so many.
	packSaves = 20
)

// CompressSealed rewrites sealed segments with their bodies compressed, where that makes them smaller: each batch by itself, so that one is still read
// alone. Offsets, checksums of bodies and what readers get stay as they are. The new file is written beside the old one, synced, and takes
// its name in one rename: at every instant one whole segment with a footer is there under it. The newest segment and the one that durable.mark
// names are left alone.
//
// It does nothing for a log whose Spec does not say Compress. It stops when it has read budget bytes; more says that there is more to do. It waits for the disk, and computes: call it in a job of
// kind Work.
func (l *Log) CompressSealed(ctx context.Context, budget int64) (more bool, err error) {
	if !l.spec.compress {
		return false, nil
	}
	var p *packer
	for {
		m, cuts, ok := l.toPack()
		if !ok {
			return false, nil
		}
		if budget <= 0 {
			return true, nil
		}
		if p == nil {
			if p, err = newPacker(l); err != nil {
				return false, err
			}
		}
		if err := p.segment(ctx, m, cuts); err != nil {
			return false, err
		}
		budget -= m.bytes
	}
}

// toPack is the oldest segment that was not looked at.
func (l *Log) toPack() (m segmentMeta, cuts uint64, ok bool) {
	named := l.mark.segment()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.closed {
		return m, 0, false
	}
	for i := range l.segs[:len(l.segs)-1] {
		if s := &l.segs[i]; s.sealed && !s.packed && s.id < named {
			return *s, l.cuts, true
		}
	}
	return m, 0, false
}

func (m *mark) segment() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now.Segment
}

// packer rewrites segments.
type packer struct {
	log  *Log
	zstd *zstd.Encoder
	body []byte // packed
	out  encoder
	now  segmentMeta
	x    *segment.Index
}

func newPacker(l *Log) (*packer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return &packer{log: l, zstd: z}, nil
}

// segment rewrites one segment.
func (p *packer) segment(ctx context.Context, m segmentMeta, cuts uint64) error {
	l := p.log
	fs, temp := l.store.fs, l.path(segment.FileName(m.id)+segment.TempSuffix)
	f, err := createAnew(fs, temp)
	if err != nil {
		return err
	}
	err = p.rewrite(ctx, &m, f)
	smaller := p.now.bytes <= m.bytes-m.bytes/packSaves
	if err == nil && smaller {
		err = l.orPoison(f.Sync())
	}
	f.Close()
	if err == nil && smaller {
		return p.replace(temp, &m, cuts)
	}
	fs.Remove(temp)
	if err == nil {
		l.packed(m.id)
	}
	return err
}

// rewrite writes the segment anew, with its footer.
func (p *packer) rewrite(ctx context.Context, m *segmentMeta, f vfs.File) error {
	l := p.log
	o, err := l.store.files.acquire(l, m.id)
	if err != nil {
		return err
	}
	defer l.store.files.release(o)
	s := scan{log: l, meta: *m, file: o.file, pos: 0, next: m.base, chunk: l.store.opts.ReadBytes}
	p.out = encoder{file: f, salt: l.spec.salt, buf: p.out.buf[:0]}
	p.now, p.x = segmentMeta{id: m.id, base: m.base, end: m.base, bytes: segment.HeaderSize}, &segment.Index{ID: m.id, Base: m.base}
	head, err := s.bytes(segment.HeaderSize)
	if err != nil {
		return err
	}
	if err := p.put(head); err != nil {
		return err
	}
	for s.pos = segment.HeaderSize; s.more(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := s.header()
		if err != nil {
			return err
		}
		if err := p.batch(&s, h); err != nil {
			return err
		}
		s.skip(&h)
	}
	footer := segment.Footer{
		Length: p.now.bytes, FileSum: p.out.sum, Batches: p.now.batches, End: p.now.end, MinMicros: p.now.least, MaxMicros: p.now.greatest, ID: m.id,
	}
	p.now.sum, p.now.summed, p.now.sealed, p.now.packed = p.out.sum, true, true, true
	if err := p.put(segment.AppendFooter(nil, l.spec.salt, &footer)); err != nil {
		return err
	}
	return p.out.flush()
}

// batch writes one batch, packed if that makes it smaller.
func (p *packer) batch(s *scan, h segment.BatchHeader) error {
	publisher, body, err := s.stored(&h)
	if err != nil {
		return err
	}
	if !h.Compressed && len(body) >= packFrom {
		p.body = p.zstd.EncodeAll(body, p.body[:0])
		if len(p.body) < len(body) {
			h.Compressed, h.StoredLength = true, uint32(len(p.body))
			h.StoredSum = segment.Extend(segment.Sum(publisher), p.body)
			body = p.body
			if _, err := p.log.store.unpack(body, &h); err != nil {
				return err
			}
		}
	}
	p.x.Note(p.now.bytes, &h, int64(p.log.store.opts.IndexSpacing))
	p.now.note(&h)
	p.now.bytes += h.Size()
	if err := p.put(segment.AppendBatchHeader(nil, p.log.spec.salt, &h)); err != nil {
		return err
	}
	if err := p.put(publisher); err != nil {
		return err
	}
	return p.put(body)
}

func (p *packer) put(b []byte) error {
	p.out.sum = segment.Extend(p.out.sum, b)
	p.out.buf = append(p.out.buf, b...)
	if len(p.out.buf) < encodeBytes {
		return nil
	}
	return p.out.flush()
}

// replace puts the new file in the place of the old one, unless that was cut or removed meanwhile.
func (p *packer) replace(temp string, m *segmentMeta, cuts uint64) error {
	l, fs := p.log, p.log.store.fs
	l.maint.Lock()
	defer l.maint.Unlock()
	l.mu.Lock()
	i := l.find(m.id)
	stale := l.cuts != cuts || i < 0 || l.failed != nil
	l.mu.Unlock()
	if stale {
		return fs.Remove(temp)
	}
	fs.Remove(l.path(segment.IndexName(m.id))) // it is of the old file
	if err := fs.Rename(temp, l.path(segment.FileName(m.id))); err != nil {
		fs.Remove(temp)
		return err
	}
	l.mu.Lock()
	l.segs[l.find(m.id)] = p.now
	l.size.Add(p.now.fileBytes() - m.fileBytes())
	l.cuts++
	l.mu.Unlock()
	l.store.files.forget(l, m.id)
	if err := l.orPoison(fs.SyncDir(l.spec.dir)); err != nil {
		return err
	}
	l.saveIndex(p.x)
	l.store.opts.Counters.CompressedIn.Add(uint64(m.bytes))
	l.store.opts.Counters.CompressedOut.Add(uint64(p.now.bytes))
	return nil
}

// packed notes that a segment is not worth another look.
func (l *Log) packed(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(number); i >= 0 {
		l.segs[i].packed = true
	}
}

// find is the place of a segment; -1 if it is gone. mu is held.
func (l *Log) find(number uint64) int {
	for i := range l.segs {
		if l.segs[i].id == number {
			return i
		}
	}
	return -1
}
