package disklog

import (
	"errors"
	"io"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// scan walks over the batches of one segment.
type scan struct {
	log   *Log
	meta  segmentMeta
	file  vfs.File
	pos   int64     // where the next batch begins
	next  id.Offset // and its offset
	chunk int       // how much is read at a time
	share bool      // what was read is handed out: it is not read over
	buf   []byte
	at    int64 // position of buf
}

// more reports whether another batch follows.
func (s *scan) more() bool { return s.pos < s.meta.bytes }

// header reads the header of the next batch and stays in front of it.
func (s *scan) header() (h segment.BatchHeader, err error) {
	b, err := s.bytes(segment.BatchHeaderSize)
	if err != nil {
		return h, err
	}
	if h, err = segment.DecodeBatchHeader(b, s.log.spec.salt); err != nil {
		return h, s.where(err)
	}
	if h.Base != s.next {
		return h, s.where(&CorruptionError{Kind: segment.OffsetOutOfOrder, Expected: uint64(s.next), Found: uint64(h.Base)})
	}
	return h, nil
}

// stored reads publisher and body of the batch whose header h is, as they are stored, and verifies that.
func (s *scan) stored(h *segment.BatchHeader) (publisher, body []byte, err error) {
	b, err := s.bytes(h.Size())
	if err != nil {
		return nil, nil, err
	}
	b = b[segment.BatchHeaderSize:]
	if sum := segment.Sum(b); sum != h.StoredSum {
		return nil, nil, s.where(&CorruptionError{Kind: segment.BatchChecksum, Expected: uint64(h.StoredSum), Found: uint64(sum)})
	}
	return b[:h.PublisherLength:h.PublisherLength], b[h.PublisherLength:len(b):len(b)], nil
}

// content is stored with the body as it was appended.
func (s *scan) content(h *segment.BatchHeader) (publisher, body []byte, err error) {
	publisher, body, err = s.stored(h)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case h.Compressed:
		if body, err = s.log.store.unpack(body, h); err != nil {
			return nil, nil, s.where(err)
		}
	case h.PublisherLength > 0:
		if sum := segment.Sum(body); sum != h.RawSum {
			return nil, nil, s.where(&CorruptionError{Kind: segment.BodyChecksum, Expected: uint64(h.RawSum), Found: uint64(sum)})
		}
	}
	return publisher, body, nil
}

// skip goes behind the batch whose header h is.
func (s *scan) skip(h *segment.BatchHeader) {
	s.pos += h.Size()
	s.next = h.End()
}

// bytes are the next n bytes, n of a verified header. They stay as they are if the scan shares what it reads, else until the next call.
func (s *scan) bytes(n int64) ([]byte, error) {
	left := s.meta.bytes - s.pos
	if n > left {
		return nil, s.where(&CorruptionError{Kind: segment.Truncated, Expected: uint64(n), Found: uint64(left)})
	}
	if s.pos < s.at || s.pos+n > s.at+int64(len(s.buf)) {
		if err := s.fill(max(n, min(int64(s.chunk), left))); err != nil {
			return nil, err
		}
	}
	from := s.pos - s.at
	return s.buf[from : from+n : from+n], nil
}

func (s *scan) fill(n int64) error {
	if s.share || int64(cap(s.buf)) < n {
		s.buf = make([]byte, n)
	}
	s.buf, s.at = s.buf[:n], s.pos
	read, err := s.file.ReadAt(s.buf, s.pos)
	if int64(read) == n {
		return nil
	}
	s.buf = s.buf[:0]
	if err == nil || errors.Is(err, io.EOF) {
		return s.where(&CorruptionError{Kind: segment.Truncated, Expected: uint64(n), Found: uint64(read)})
	}
	return err
}

// where says in a corruption error where it is.
func (s *scan) where(err error) error {
	var c *CorruptionError
	if errors.As(err, &c) {
		c.Shard, c.File, c.Segment, c.Position = s.log.spec.shard, segment.FileName(s.meta.id), s.meta.id, s.pos
	}
	return err
}

func isCorruption(err error) bool {
	var c *CorruptionError
	return errors.As(err, &c)
}
