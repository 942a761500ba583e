package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/felixd/felixd/wire/id"
)

// StreamTrailer is what the end of a streamed snapshot says about it.
type StreamTrailer struct {
	AsOf id.Offset
	Body uint64 // length of the body, in bytes
	Sum  uint32 // checksum of the last chunk, that of the header if there is none
}

// IsStream reports whether a file that begins with b is a streamed snapshot, by its first four bytes.
func IsStream(b []byte) bool { return len(b) >= 4 && be.Uint32(b) == streamMagic }

// StreamFileSize is how long the file of a streamed snapshot with a body of so many bytes is.
func StreamFileSize(body int64) int64 {
	chunks := (body + StreamChunkMax - 1) / StreamChunkMax
	return StreamHeaderSize + chunks*streamChunkHeader + body + StreamTrailerSize
}

func streamDamaged(position int64, want, found uint64, why string) error {
	return &CorruptionError{Kind: SnapshotDamaged, Position: position, Expected: want, Found: found, Why: why}
}

// ReadStreamTrailer reads the two ends of a streamed snapshot of size bytes, and nothing in between: what it is as of holds if the rest is
// whole, which StreamReader finds. Errors are *CorruptionError with Kind SnapshotDamaged, *VersionError, and those of r.
func ReadStreamTrailer(r io.ReaderAt, size int64, salt Salt) (StreamTrailer, error) {
	if size < StreamHeaderSize+StreamTrailerSize {
		return StreamTrailer{}, streamDamaged(0, StreamHeaderSize+StreamTrailerSize, uint64(max(size, 0)), "the file is too short")
	}
	var b [StreamTrailerSize]byte
	head := b[:StreamHeaderSize]
	if err := readStream(r, head, 0); err != nil {
		return StreamTrailer{}, err
	}
	if err := streamEnd(head, 0, streamMagic, salt); err != nil {
		return StreamTrailer{}, err
	}
	if be.Uint32(head[8:]) != 0 {
		return StreamTrailer{}, streamDamaged(0, 0, 0, "reserved bytes that this version does not know")
	}
	at := size - StreamTrailerSize
	if err := readStream(r, b[:], at); err != nil {
		return StreamTrailer{}, err
	}
	if err := streamEnd(b[:], at, streamEndMagic, salt); err != nil {
		return StreamTrailer{}, err
	}
	t := StreamTrailer{AsOf: id.Offset(be.Uint64(b[8:])), Body: be.Uint64(b[16:]), Sum: be.Uint32(b[32:])}
	switch room := uint64(at - StreamHeaderSize); {
	case be.Uint64(b[24:]) != 0:
		return StreamTrailer{}, streamDamaged(at, 0, 0, "reserved bytes that this version does not know")
	case t.Body > room:
		return StreamTrailer{}, streamDamaged(at, t.Body, room, "the file is too short for its body")
	case StreamFileSize(int64(t.Body)) != size:
		return StreamTrailer{}, streamDamaged(at, uint64(StreamFileSize(int64(t.Body))), uint64(size), "the file has another length than its body takes")
	}
	return t, nil
}

// streamEnd checks one of the two ends: magic, checksum, version, and the reserved bytes behind that.
func streamEnd(b []byte, at int64, magic uint32, salt Salt) error {
	n := len(b) - 4
	if be.Uint32(b) != magic {
		return streamDamaged(at, 0, 0, "a magic number is not there")
	}
	if want, found := be.Uint32(b[n:]), salt.over(b[:n]); want != found {
		return streamDamaged(at, uint64(want), uint64(found), "a checksum does not fit, or it is of another log")
	}
	if v := be.Uint16(b[4:]); v != Version {
		return &VersionError{What: "version", Found: v, Known: Version}
	}
	if be.Uint16(b[6:]) != 0 {
		return streamDamaged(at, 0, 0, "reserved bytes that this version does not know")
	}
	return nil
}

// readStream reads all of p at a place that the size of the file says is there.
func readStream(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return streamDamaged(at, uint64(len(p)), uint64(n), "the file ends here")
	}
	return fmt.Errorf("read snapshot: %w", err)
}

// StreamReader reads the body of a streamed snapshot. No byte is handed out before the chunk that holds it was checked, and io.EOF comes only
// after all of them fit the trailer. It holds one chunk. Not safe for concurrent use.
type StreamReader struct {
	r    io.ReaderAt
	at   int64 // of the next chunk
	end  int64 // of the chunks
	sum  uint32
	left uint64 // of the body, by the trailer
	want uint32 // the last sum, by the trailer
	buf  []byte // made with the first chunk, as long as the longest so far
	rest []byte // of the chunk, not handed out yet
	err  error
}

// NewStreamReader reads a file of size bytes whose ends are t, as ReadStreamTrailer told.
func NewStreamReader(r io.ReaderAt, size int64, salt Salt, t *StreamTrailer) *StreamReader {
	return &StreamReader{r: r, at: StreamHeaderSize, end: size - StreamTrailerSize, sum: streamSeed(salt), left: t.Body, want: t.Sum}
}

// streamSeed is the checksum of the header.
func streamSeed(salt Salt) uint32 {
	var b [StreamHeaderSize - 4]byte
	be.PutUint32(b[:], streamMagic)
	be.PutUint16(b[4:], Version)
	return salt.over(b[:])
}

// Read reads on. Errors are *CorruptionError with Kind SnapshotDamaged and those of the file, and stay.
func (s *StreamReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.rest) == 0 && s.err == nil {
		s.err = s.next()
	}
	if s.err != nil {
		return 0, s.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next reads and checks one chunk; io.EOF behind the last one.
func (s *StreamReader) next() error {
	if s.at == s.end {
		if s.left != 0 || s.sum != s.want {
			return streamDamaged(s.end, uint64(s.want), uint64(s.sum), "the chunks are not those that the end of the file tells of")
		}
		return io.EOF
	}
	var head [streamChunkHeader]byte
	if s.end-s.at < streamChunkHeader {
		return streamDamaged(s.at, streamChunkHeader, uint64(s.end-s.at), "a chunk is cut short")
	}
	if err := readStream(s.r, head[:], s.at); err != nil {
		return err
	}
	length := be.Uint32(head[:])
	if want := min(StreamChunkMax, uint64(s.end-s.at-streamChunkHeader), s.left); want == 0 || uint64(length) != want {
		return streamDamaged(s.at, want, uint64(length), "a chunk has another length")
	}
	if cap(s.buf) < int(length) {
		s.buf = make([]byte, length)
	}
	b := s.buf[:length]
	if err := readStream(s.r, b, s.at+streamChunkHeader); err != nil {
		return err
	}
	sum := Extend(Extend(s.sum, head[:4]), b)
	if want := be.Uint32(head[4:]); want != sum {
		return streamDamaged(s.at, uint64(want), uint64(sum), "the checksum of a chunk does not fit")
	}
	s.at += streamChunkHeader + int64(length)
	s.sum, s.left, s.rest = sum, s.left-uint64(length), b
	return nil
}
