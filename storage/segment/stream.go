package segment

import (
	"io"

	"github.com/felixd/felixd/wire/id"
)

// The lengths of what stands around the body of a streamed snapshot, in bytes.
const (
	StreamHeaderSize  = 16
	StreamTrailerSize = 40
	// StreamChunkMax bounds one chunk, and with it the memory of whoever writes or reads a snapshot of any size.
	StreamChunkMax = 64 << 10

	streamChunkHeader = 8
)

// A streamed snapshot is derived state like a snapshot, of any size, whose offset is known only once all of it is written. It lies under the
// same names, and the first four bytes tell the two apart.
//
//	header   0 u32 magic | 4 u16 version | 6 u16 reserved 0 | 8 u32 reserved 0 | 12 u32 checksum over (log, 0..12)
//	chunks   as many as the body fills: 0 u32 length, StreamChunkMax or what is left | 4 u32 checksum | 8 that many bytes of the body
//	trailer  0 u32 magic | 4 u16 version | 6 u16 reserved 0 | 8 u64 as of | 16 u64 body length | 24 u64 reserved 0
//	         32 u32 checksum of the last chunk | 36 u32 checksum over (log, 0..36)
//
// The checksum of a chunk is that of its length and bytes, continued from the checksum of the chunk before; the first one continues that of the
// header. So a chunk that is missing, moved, twice, or of another log fails, and the trailer, which names the last of them, fits only the
// very bytes it was written behind. By itself the trailer tells what the snapshot is as of.

// StreamWriter writes a streamed snapshot. It holds one chunk, StreamChunkMax bytes. Not safe for concurrent use.
type StreamWriter struct {
	out  io.Writer
	salt Salt
	buf  []byte // the header, if it is not written yet, and then a chunk behind room for its own header
	at   int    // where in buf the chunk begins
	sum  uint32 // of the chunk before
	body uint64
	err  error // why it ended
}

// NewStreamWriter returns a writer to out, which gets whole chunks, one call for each.
func NewStreamWriter(out io.Writer, salt Salt) *StreamWriter {
	s := &StreamWriter{out: out, salt: salt, buf: make([]byte, 0, StreamHeaderSize+streamChunkHeader+StreamChunkMax)}
	s.buf = be.AppendUint32(s.buf, streamMagic)
	s.buf = be.AppendUint16(s.buf, Version)
	s.buf = append(s.buf, make([]byte, 6)...)
	s.sum = salt.over(s.buf)
	s.buf = be.AppendUint32(s.buf, s.sum)
	s.begin()
	return s
}

// begin makes room for the header of a chunk.
func (s *StreamWriter) begin() {
	s.at = len(s.buf)
	s.buf = append(s.buf, make([]byte, streamChunkHeader)...)
}

// Write appends to the body. After an error of the writer below, which it returns, it answers that again.
func (s *StreamWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && s.err == nil {
		room := StreamChunkMax - (len(s.buf) - s.at - streamChunkHeader)
		if room == 0 {
			s.flush()
			continue
		}
		k := min(room, len(p))
		s.buf = append(s.buf, p[:k]...)
		n, p = n+k, p[k:]
	}
	return n, s.err
}

// flush writes the chunk, if it holds anything, with the header of the file in front of it the first time.
func (s *StreamWriter) flush() {
	chunk := s.buf[s.at:]
	if length := len(chunk) - streamChunkHeader; length > 0 {
		be.PutUint32(chunk, uint32(length))
		s.sum = Extend(Extend(s.sum, chunk[:4]), chunk[streamChunkHeader:])
		be.PutUint32(chunk[4:], s.sum)
		s.body += uint64(length)
	} else {
		s.buf = s.buf[:s.at]
	}
	if len(s.buf) > 0 && s.err == nil {
		_, s.err = s.out.Write(s.buf)
	}
	s.buf = s.buf[:0]
	s.begin()
}

// Finish writes what is left, and the trailer: the body follows from everything before asOf. Nothing may be written after it. Errors are those
// of the writer below, of this call or of one before.
func (s *StreamWriter) Finish(asOf id.Offset) error {
	s.flush()
	if s.err != nil {
		return s.err
	}
	t := be.AppendUint32(s.buf[:0], streamEndMagic)
	t = be.AppendUint16(t, Version)
	t = be.AppendUint16(t, 0)
	t = be.AppendUint64(t, uint64(asOf))
	t = be.AppendUint64(t, s.body)
	t = be.AppendUint64(t, 0)
	t = be.AppendUint32(t, s.sum)
	t = be.AppendUint32(t, s.salt.over(t))
	_, s.err = s.out.Write(t)
	return s.err
}
