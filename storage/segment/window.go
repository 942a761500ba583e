package segment

import (
	"errors"
	"fmt"
	"io"
)

// window is one buffer that slides over a file from its beginning to its end.
type window struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	at   int64 // position in the file of the first byte of buf
	n    int   // bytes of buf that are filled
}

func newWindow(r io.ReaderAt, size int64) *window {
	return &window{r: r, size: size, buf: make([]byte, min(bufferSize, max(size, BatchHeaderSize)))}
}

// reset makes the window one over another file, with the same buffer.
func (w *window) reset(r io.ReaderAt, size int64) { w.r, w.size, w.at, w.n = r, size, 0, 0 }

// bytes are at least 1 and at most n bytes at a position before size, n if the file has them and n is not above the buffer. They are
// good until the next call.
func (w *window) bytes(position int64, n int) ([]byte, error) {
	n = int(min(int64(n), int64(len(w.buf)), w.size-position))
	if position < w.at || position+int64(n) > w.at+int64(w.n) {
		if err := w.fill(position); err != nil {
			return nil, err
		}
	}
	from := int(position - w.at)
	return w.buf[from : from+n], nil
}

// fill reads from a position as much as the buffer and the file hold.
func (w *window) fill(position int64) error {
	w.at, w.n = position, 0
	want := int(min(int64(len(w.buf)), w.size-position))
	n, err := w.r.ReadAt(w.buf[:want], position)
	if n < want {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file was longer when it was listed
		}
		return fmt.Errorf("read %d bytes at byte %d: %w", want, position, err)
	}
	w.n = n
	return nil
}

// each calls f with the bytes of [position, end), piece by piece.
func (w *window) each(position, end int64, f func(p []byte)) error {
	for position < end {
		n := w.at + int64(w.n) - position // what is in the buffer already
		if position < w.at || n <= 0 {
			n = int64(len(w.buf))
		}
		piece, err := w.bytes(position, int(min(n, end-position)))
		if err != nil {
			return err
		}
		f(piece)
		position += int64(len(piece))
	}
	return nil
}

// sum continues a checksum over [position, end).
func (w *window) sum(sum uint32, position, end int64) (uint32, error) {
	err := w.each(position, end, func(p []byte) { sum = Extend(sum, p) })
	return sum, err
}
