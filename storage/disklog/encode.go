package disklog

import (
	"io"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

const (
	// encodeBytes is the buffer that small batches are collected in, so what one write takes of them.
	encodeBytes = 256 << 10
	// ownWrite is the size from which a body is written from its own bytes: copying it would cost more than another call.
	ownWrite = 32 << 10
)

// encoder writes batches behind each other into a file. It is used again, for its buffer.
type encoder struct {
	file vfs.File
	salt segment.Salt
	at   int64  // what was written ends here
	sum  uint32 // of the file's bytes, with those in buf
	buf  []byte // encoded and not yet written
}

// all writes the batches of appends. It returns how many appends are in the file, whole, when an error stops it.
func (e *encoder) all(ops []op) (done int, err error) {
	start, end := e.at, e.at
	for i := range ops {
		for _, b := range ops[i].batches {
			if err = e.one(b); err != nil {
				return e.whole(ops, start), err
			}
		}
		end += ops[i].size
		ops[i].sum = e.sum
	}
	if err = e.flush(); err != nil {
		return e.whole(ops, start), err
	}
	if e.at != end {
		panic("disklog: an append took other space than it was measured for")
	}
	return len(ops), nil
}

// whole counts the appends that the writes so far have taken in.
func (e *encoder) whole(ops []op, start int64) (n int) {
	for n < len(ops) && start+ops[n].size <= e.at {
		start += ops[n].size
		n++
	}
	return n
}

func (e *encoder) one(b *batch.Batch) error {
	sum := b.Sum
	if !b.Summed {
		sum = segment.Sum(b.Body) // not kept in b: readers have it already
	}
	h := segment.Describe(b, sum)
	from := len(e.buf)
	e.buf = segment.AppendBatchHeader(e.buf, e.salt, &h)
	e.buf = append(e.buf, b.Publisher...)
	if len(b.Body) < ownWrite {
		e.buf = append(e.buf, b.Body...)
		e.sum = segment.Extend(e.sum, e.buf[from:])
		if len(e.buf) < encodeBytes-ownWrite {
			return nil
		}
		return e.flush()
	}
	e.sum = segment.Extend(segment.Extend(e.sum, e.buf[from:]), b.Body)
	if err := e.flush(); err != nil {
		return err
	}
	return e.put(b.Body)
}

func (e *encoder) flush() error {
	err := e.put(e.buf)
	e.buf = e.buf[:0]
	return err
}

func (e *encoder) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	n, err := e.file.WriteAt(p, e.at)
	if err != nil {
		return err
	}
	if n < len(p) {
		return io.ErrShortWrite
	}
	e.at += int64(n)
	return nil
}

func newEncoder() any { return &encoder{buf: make([]byte, 0, encodeBytes)} }

// encoder returns one that continues a segment.
func (s *Store) encoder(file vfs.File, salt segment.Salt, m *segmentMeta) *encoder {
	e := s.encoders.Get().(*encoder)
	*e = encoder{file: file, salt: salt, at: m.bytes, sum: m.sum, buf: e.buf[:0]}
	return e
}

func (s *Store) release(e *encoder) {
	e.file = nil
	s.encoders.Put(e)
}
