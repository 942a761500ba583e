package segment

import (
	"math"

	"github.com/felixd/felixd/wire/id"
)

// MarkSize is the length of durable.mark, in bytes: less than one sector, so that a power cut leaves an old one or the new one.
const MarkSize = 48

// Mark says how far the newest segment was synced. It is rewritten in place after each sync, before anybody is answered, and
// without a sync of its own. So after a kill it is exact, and after a power cut it may be older than what the disk holds, never newer.
//
//	 0 u32 magic | 4 u16 version | 6 u16 flags, bit 0: reset, bit 1: summed | 8 u64 segment | 16 u64 synced bytes | 24 u64 oldest segment
//	32 u64 base of the segment | 40 u32 Sum of the synced bytes, 0 unless summed | 44 u32 checksum over (log, 0..44)
//
// The writer owes the plan six things, each to be durable before the next step is begun:
//
//  1. The mark file is made, and synced with its directory, when the first segment is, before anybody is answered.
//  2. A new segment's header and name are synced before the mark names it; the mark names it, synced, before a batch in it is acknowledged.
//     So the mark names the newest segment or the one before it.
//  3. Before retention removes segments, the mark says in Oldest which one will be the first, synced. So a lost head is noticed.
//  4. Before a log is cut, all its bytes are synced, then the mark goes back to the cut or before it, synced, then files go, newest first.
//  5. Before a log is reset, the mark says Reset with the id and base of the segment that will be the only one, synced; a mark without
//     Reset follows when that segment is there. Its id is past all others: ids are never used again, except after a cut.
//  6. A segment the mark names is not rewritten (compressed).
type Mark struct {
	Segment uint64    // id
	Synced  int64     // bytes of that segment, from its beginning, footer included; HeaderSize = no batch
	Oldest  uint64    // id of the first segment that the log still owns
	Base    id.Offset // of Segment
	Reset   bool      // every segment before Segment is to go, and Segment to be made at Base if it is not there
	// Sum is that of the synced bytes, if Summed. It tells an old copy of a segment, from before a cut, from the one that was synced.
	Sum    uint32
	Summed bool
}

// The flags of a mark.
const (
	reset  = 0x0001
	summed = 0x0002
)

// AppendMark appends the MarkSize bytes of m to dst.
func AppendMark(dst []byte, salt Salt, m *Mark) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, markMagic)
	dst = be.AppendUint16(dst, Version)
	flags, sum := uint16(0), uint32(0)
	if m.Reset {
		flags = reset
	}
	if m.Summed {
		flags, sum = flags|summed, m.Sum
	}
	dst = be.AppendUint16(dst, flags)
	dst = be.AppendUint64(dst, m.Segment)
	dst = be.AppendUint64(dst, uint64(m.Synced))
	dst = be.AppendUint64(dst, m.Oldest)
	dst = be.AppendUint64(dst, uint64(m.Base))
	dst = be.AppendUint32(dst, sum)
	return be.AppendUint32(dst, salt.over(dst[start:]))
}

// DecodeMark reads the whole of a durable.mark. Errors are *CorruptionError with Kind MarkDamaged, and *VersionError.
func DecodeMark(b []byte, salt Salt) (Mark, error) {
	if err := whole(b, MarkSize, markMagic, MarkDamaged, salt); err != nil {
		return Mark{}, err
	}
	m := Mark{
		Segment: be.Uint64(b[8:]), Synced: int64(be.Uint64(b[16:])), Oldest: be.Uint64(b[24:]), Base: id.Offset(be.Uint64(b[32:])),
		Reset: be.Uint16(b[6:])&reset != 0, Summed: be.Uint16(b[6:])&summed != 0, Sum: be.Uint32(b[40:]),
	}
	switch {
	case be.Uint16(b[6:])&^(reset|summed) != 0 || !m.Summed && m.Sum != 0:
		return Mark{}, &CorruptionError{Kind: MarkDamaged, Why: "flags or reserved bytes that this version does not know"}
	case m.Synced < HeaderSize || m.Synced > math.MaxInt64-HeaderSize || m.Oldest > m.Segment:
		return Mark{}, &CorruptionError{Kind: MarkDamaged, Why: "it names bytes or segments that cannot be"}
	}
	return m, nil
}

// whole checks a small file of a fixed size: length, magic, version, and a checksum over (log, all bytes before it) in its last four bytes.
func whole(b []byte, size int, magic uint32, kind Kind, salt Salt) error {
	if len(b) != size {
		return &CorruptionError{Kind: kind, Expected: uint64(size), Found: uint64(len(b)), Why: "the file has another length"}
	}
	if err := sound(b, magic, kind, salt); err != nil {
		return err
	}
	if v := be.Uint16(b[4:]); v != Version {
		return &VersionError{What: "version", Found: v, Known: Version}
	}
	return nil
}

// sound checks magic and checksum of a small file.
func sound(b []byte, magic uint32, kind Kind, salt Salt) error {
	if m := be.Uint32(b); m != magic {
		return &CorruptionError{Kind: kind, Why: "it does not begin with its magic number"}
	}
	size := len(b)
	if want, found := be.Uint32(b[size-4:]), salt.over(b[:size-4]); want != found {
		return &CorruptionError{Kind: kind, Expected: uint64(want), Found: uint64(found), Why: "its checksum does not fit, or it is of another log"}
	}
	return nil
}
