package client

import (
	"bufio"
	"errors"
	"io"

	"github.com/felixd/felixd/wire"
)

const (
	// readBuffer is how many bytes are taken off a stream of answers at once: some hundred acks.
	readBuffer = 16 << 10
	// keepBody is the largest body buffer kept for the next frame, so that one large frame does not hold its memory for
	// the life of the stream.
	keepBody = 256 << 10
)

// frameReader cuts a stream into frames. A read that fails (a deadline) loses nothing: the next call goes on where the
// last one stopped. Not safe for concurrent use.
type frameReader struct {
	src  io.Reader
	most uint32 // longest payload
	give bool   // each payload is the caller's, in a buffer of its own

	head   [wire.HeaderSize]byte
	headN  int // bytes of head that are there
	header wire.Header
	inBody bool
	body   []byte // what is there of the body
}

// newFrameReader is for streams of small answers, many to one read. Payloads are borrowed until the next call.
func newFrameReader(r io.Reader, most int) *frameReader {
	return &frameReader{src: bufio.NewReaderSize(r, readBuffer), most: uint32(most)}
}

// newEventReader is for event streams. A body is read off the stream into the very memory whose pieces the application
// gets: the one copy on our side of QUIC.
func newEventReader(r io.Reader, most int) *frameReader {
	return &frameReader{src: r, most: uint32(most), give: true}
}

// next returns the next frame. The error is io.EOF between two frames, io.ErrUnexpectedEOF within one, a
// *wire.FrameError, or that of the stream.
func (f *frameReader) next() (wire.Header, []byte, error) {
	if !f.inBody {
		if err := f.readHead(); err != nil {
			return wire.Header{}, nil, err
		}
	}
	if err := f.readBody(); err != nil {
		return wire.Header{}, nil, err
	}
	f.inBody, f.headN = false, 0
	return f.header, f.body, nil
}

func (f *frameReader) readHead() error {
	for f.headN < wire.HeaderSize {
		n, err := f.src.Read(f.head[f.headN:])
		f.headN += n
		if err != nil && f.headN < wire.HeaderSize { // with all of it there, the next read tells of the error
			return cutShort(err, f.headN == 0)
		}
	}
	header, err := wire.ParseHeader(f.head[:], f.most)
	if err != nil {
		return err
	}
	f.header, f.inBody = header, true
	if f.give || cap(f.body) > keepBody {
		f.body = nil
	}
	f.body = f.body[:0]
	return nil
}

// readBody grows the buffer by what has arrived, never by what is announced.
func (f *frameReader) readBody() error {
	declared := int(f.header.Length)
	for len(f.body) < declared {
		if room := wire.BodyCapacity(len(f.body), declared); room > cap(f.body) {
			grown := make([]byte, len(f.body), room)
			copy(grown, f.body)
			f.body = grown
		}
		n, err := f.src.Read(f.body[len(f.body):min(cap(f.body), declared)])
		f.body = f.body[:len(f.body)+n]
		if err != nil && len(f.body) < declared {
			return cutShort(err, false)
		}
	}
	return nil
}

// cutShort tells an end between frames from one within a frame.
func cutShort(err error, between bool) error {
	if errors.Is(err, io.EOF) && !between {
		return io.ErrUnexpectedEOF
	}
	return err
}
