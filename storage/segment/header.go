package segment

import "github.com/felixd/felixd/wire/id"

// Version is the format of every file that this package writes.
const Version = 1

// Magics begin the files and structures of a log. They differ from each other and from the protocol's, so that bytes in the wrong
// place fail on the first four.
const (
	headerMagic    = 0x464C5347 // "FLSG"
	batchMagic     = 0x464C4254 // "FLBT"
	footerMagic    = 0x464C5345 // "FLSE"
	indexMagic     = 0x464C5349 // "FLSI"
	markMagic      = 0x464C534D // "FLSM"
	metaMagic      = 0x464C4D54 // "FLMT"
	replicaMagic   = 0x464C5253 // "FLRS"
	snapshotMagic  = 0x464C534E // "FLSN"
	streamMagic    = 0x464C5358 // "FLSX"
	streamEndMagic = 0x464C5845 // "FLXE"
)

// HeaderSize is the length of a segment header, in bytes.
const HeaderSize = 64

// Header begins every segment. It is written once and synced before anything follows it.
//
//	 0 u32 magic | 4 u16 version | 6 u16 flags 0 | 8 [16] log | 24 u64 name hash | 32 u64 base
//	40 u64 created, micros | 48 u64 segment id | 56 u32 reserved 0 | 60 u32 checksum over 0..60
type Header struct {
	Log           id.LogID
	NameHash      uint64    // of the shard and the kind of log, see NameHash
	Base          id.Offset // of the first record
	CreatedMicros uint64    // wall clock, since the Unix epoch; tells an operator something, and nothing else
	ID            uint64    // from 0, consecutive in a log
}

// AppendHeader appends the HeaderSize bytes of h to dst.
func AppendHeader(dst []byte, h *Header) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, headerMagic)
	dst = be.AppendUint16(dst, Version)
	dst = be.AppendUint16(dst, 0)
	dst = append(dst, h.Log[:]...)
	dst = be.AppendUint64(dst, h.NameHash)
	dst = be.AppendUint64(dst, uint64(h.Base))
	dst = be.AppendUint64(dst, h.CreatedMicros)
	dst = be.AppendUint64(dst, h.ID)
	dst = be.AppendUint32(dst, 0)
	return be.AppendUint32(dst, Sum(dst[start:]))
}

// DecodeHeader reads the first HeaderSize bytes of a segment. Errors are *CorruptionError and *VersionError. Whether the header is
// the one that belongs there is for the caller to say.
//
// The checksum comes before the version: every version keeps both where they are, so that a flipped bit is never taken for a newer
// format.
func DecodeHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, short(HeaderSize, len(b))
	}
	if m := be.Uint32(b); m != headerMagic {
		return Header{}, &CorruptionError{Kind: SegmentMagic, Expected: headerMagic, Found: uint64(m)}
	}
	if want, found := be.Uint32(b[60:]), Sum(b[:60]); want != found {
		return Header{}, &CorruptionError{Kind: SegmentHeaderChecksum, Expected: uint64(want), Found: uint64(found)}
	}
	if v := be.Uint16(b[4:]); v != Version {
		return Header{}, &VersionError{What: "version", Found: v, Known: Version}
	}
	if f, r := be.Uint16(b[6:]), be.Uint32(b[56:]); f != 0 || r != 0 {
		return Header{}, &CorruptionError{Kind: SegmentFlags, Found: uint64(f)<<32 | uint64(r)}
	}
	return Header{
		Log: id.LogID(b[8:24]), NameHash: be.Uint64(b[24:]), Base: id.Offset(be.Uint64(b[32:])),
		CreatedMicros: be.Uint64(b[40:]), ID: be.Uint64(b[48:]),
	}, nil
}

// short says that a structure is not whole.
func short(need, have int) *CorruptionError {
	return &CorruptionError{Kind: Truncated, Expected: uint64(need), Found: uint64(have)}
}
