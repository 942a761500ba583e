package keyed

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// A snapshot is a sequence of parts, each of which is checked by itself and as the one that follows the part before. Integers are
// big-endian.
//
//	part     u8 kind | u32 length | u32 checksum | content
//	head     u32 magic | u16 version | u16 reserved 0 | u64 from
//	entries  any number of: u32 key length | u32 value length, its top bit: the value is in the log alone | u64 version | u64 offset
//	         | u64 expires | u32 bytes in the log | key | value, unless it is in the log alone
//	tail     u64 until | u64 entries | u64 base, u32 count, u64 generation, u32 sum, u8 sum is known: of the last batch
//
// The checksum is the CRC-32C (Castagnoli, RFC 3720 appendix B.4) of kind, length and content, continued from the checksum of the part
// before, so that a part that is missing, twice or of another snapshot fails it. Which log the snapshot is of is said by the envelope that
// the log keeps it in, and whether that log still is what it was by the last batch.
//
// It is written while the log is folded on. What it holds of a key is its entry at some moment between from and until, so that the state as
// of until is what comes out when the log is folded onto it from from: the fold skips, key by key, what an entry shows already.
const (
	snapshotMagic   = 0x464C4B58 // "FLKX"
	snapshotVersion = 1

	partHead    = 1
	partEntries = 2
	partTail    = 3

	partHeader  = 1 + 4 + 4
	headBytes   = 4 + 2 + 2 + 8
	tailBytes   = 8 + 8 + 8 + 4 + 8 + 4 + 1
	entryHeader = 4 + 4 + 8 + 8 + 8 + 4

	partAim = 256 << 10                                    // a part ends with the entry that reaches this
	partMax = partAim + entryHeader + KeyMax + inlineLimit // so no part is longer
	stepAim = 256 << 10                                    // a step of the writer ends with the segment that reaches this
)

var be = binary.BigEndian

// extend continues the checksum of a snapshot.
func extend(sum uint32, p []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), p)
}

// Snapshot writes an index out, a step at a time. The steps may run on any goroutine, beside the one that folds; each holds the read lock
// for the time it takes to copy some segments of the table, 256 KiB or one segment.
type Snapshot struct {
	index   *Index
	from    id.Offset
	until   id.Offset
	cursor  Cursor
	sum     uint32
	entries uint64
	begun   bool
	done    bool
	cut     bool
}

// NewSnapshot begins a snapshot of what f has folded. f must be Complete, which is asked for on the goroutine that folds.
func NewSnapshot(f *Fold) *Snapshot {
	if !f.Complete() {
		panic("keyed: a snapshot of a fold that is not complete")
	}
	return &Snapshot{index: f.index, from: f.Next()}
}

// Next appends the next parts to dst, and reports whether there are more. All that it returned, joined, is the snapshot.
func (s *Snapshot) Next(dst []byte) (out []byte, more bool) {
	if s.done {
		return dst, false
	}
	if !s.begun {
		s.begun = true
		dst = s.head(dst)
	}
	for start := len(dst); !s.cursor.Done() && len(dst)-start < stepAim; {
		dst = s.segment(dst)
	}
	if s.cursor.Done() {
		s.done = true
		dst = s.tail(dst)
	}
	return dst, !s.done
}

// Cut reports whether the index was closed before all of it was written: what Next returned is of no use, and no fold can be made of it.
func (s *Snapshot) Cut() bool { return s.cut }

// Until is the offset that the snapshot is as of, once it is written: it is good for logs that reach it.
func (s *Snapshot) Until() id.Offset { return s.until }

// open begins a part, and seal ends the one that began at start.
func (s *Snapshot) open(dst []byte, kind byte) []byte {
	return append(dst, kind, 0, 0, 0, 0, 0, 0, 0, 0)
}

func (s *Snapshot) seal(dst []byte, start int) {
	be.PutUint32(dst[start+1:], uint32(len(dst)-start-partHeader))
	s.sum = extend(extend(s.sum, dst[start:start+5]), dst[start+partHeader:])
	be.PutUint32(dst[start+5:], s.sum)
}

func (s *Snapshot) head(dst []byte) []byte {
	start := len(dst)
	dst = s.open(dst, partHead)
	dst = be.AppendUint32(dst, snapshotMagic)
	dst = be.AppendUint16(dst, snapshotVersion)
	dst = be.AppendUint16(dst, 0)
	dst = be.AppendUint64(dst, uint64(s.from))
	s.seal(dst, start)
	return dst
}

// segment writes the entries of one segment of the table.
func (s *Snapshot) segment(dst []byte) []byte {
	start := -1
	s.cursor = s.index.Scan(s.cursor, nil, func(e Entry) {
		if start >= 0 && len(dst)-start-partHeader >= partAim {
			s.seal(dst, start)
			start = -1
		}
		if start < 0 {
			start = len(dst)
			dst = s.open(dst, partEntries)
		}
		dst = appendEntry(dst, &e)
		s.entries++
	})
	if start >= 0 {
		s.seal(dst, start)
	}
	return dst
}

func appendEntry(dst []byte, e *Entry) []byte {
	value := uint32(e.ValueBytes)
	if e.Cold {
		value |= coldBit
	}
	dst = be.AppendUint32(dst, uint32(len(e.Key)))
	dst = be.AppendUint32(dst, value)
	dst = be.AppendUint64(dst, uint64(e.Version))
	dst = be.AppendUint64(dst, uint64(e.Offset))
	dst = be.AppendUint64(dst, e.ExpiresAtMillis)
	dst = be.AppendUint32(dst, uint32(e.LogBytes))
	dst = append(dst, e.Key...)
	return append(dst, e.Value...)
}

func (s *Snapshot) tail(dst []byte) []byte {
	s.index.mu.RLock()
	last := s.index.last
	s.until = s.index.asOf
	s.cut = s.index.closed
	s.index.mu.RUnlock()
	if s.cut {
		return dst
	}
	start := len(dst)
	dst = s.open(dst, partTail)
	dst = be.AppendUint64(dst, uint64(s.until))
	dst = be.AppendUint64(dst, s.entries)
	dst = be.AppendUint64(dst, uint64(last.Base))
	dst = be.AppendUint32(dst, last.Count)
	dst = be.AppendUint64(dst, uint64(last.Generation))
	dst = be.AppendUint32(dst, last.Sum)
	known := byte(0)
	if last.Summed {
		known = 1
	}
	dst = append(dst, known)
	s.seal(dst, start)
	return dst
}

// identify is the Last of a batch.
func identify(b *batch.Batch) Last {
	return Last{Base: b.Base, Count: b.Count, Generation: b.Generation, Sum: b.Sum, Summed: b.Summed}
}
