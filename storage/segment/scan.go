package segment

import (
	"io"

	"github.com/felixd/felixd/wire/id"
)

// bufferSize is how much a scan holds of a segment at a time: its memory, whatever lengths the segment declares.
const bufferSize = 256 << 10

// Scanned is what a scan found before the end of the segment, or before the first failure.
type Scanned struct {
	End       int64     // after the last whole batch, in bytes of the segment
	Next      id.Offset // after that batch's last record
	Batches   uint32
	MinMicros uint64 // least and greatest append time; both 0 without batches
	MaxMicros uint64
	FileSum   uint32 // Sum of the bytes before End, by which a writer goes on
	Sealed    bool   // a whole footer stands at End, fits all that is before it, and nothing follows
	Footer    Footer // if Sealed
}

// Size is how long the file is without what is not whole, in bytes.
func (s *Scanned) Size() int64 {
	if s.Sealed {
		return s.End + FooterSize
	}
	return s.End
}

// Start is a place in a segment at which a batch begins.
type Start struct {
	Position int64     // in bytes; HeaderSize is the first batch
	Next     id.Offset // base of the batch there
}

// Scan walks the batches of a segment of size bytes whose header is h, and calls fn for each whole one, in order, with its position.
// At each position it checks, in this order: the bytes of a header are there; magic; header checksum; flags, kind, lengths and
// other fields; the whole batch is there; the checksum of publisher and body; that of the body; and that the batch begins at the
// offset where the one before it ended. The first failure ends the scan with a *CorruptionError that names segment and position of
// the batch (or footer) that failed; Scanned tells what was whole before it. An error of fn or of r ends it too, unchanged.
//
// Bodies pass through one buffer: memory does not follow declared lengths. A compressed body is not unpacked.
func Scan(r io.ReaderAt, size int64, h *Header, fn func(position int64, b *BatchHeader) error) (Scanned, error) {
	w := newWindow(r, size)
	sum, err := w.sum(0, 0, min(HeaderSize, size))
	if err != nil {
		return Scanned{}, err
	}
	s := scanner{w: w, salt: SaltOf(h.Log), h: h, whole: true, fn: fn}
	s.out = Scanned{End: HeaderSize, Next: h.Base, FileSum: sum}
	return s.out, s.walk(&s.out)
}

// ScanFrom is Scan from a place that is not the beginning. What it tells (Batches, times, FileSum) is about the batches it walked,
// and of a footer it checks only what these decide.
func ScanFrom(r io.ReaderAt, size int64, h *Header, from Start, fn func(position int64, b *BatchHeader) error) (Scanned, error) {
	s := scanner{w: newWindow(r, size), salt: SaltOf(h.Log), h: h, fn: fn}
	s.out = Scanned{End: from.Position, Next: from.Next}
	return s.out, s.walk(&s.out)
}
