package segment

import "github.com/felixd/felixd/wire/id"

// FooterSize is the length of a seal footer, in bytes. It is shorter than a batch header, so that the two are never taken for each
// other: exactly FooterSize bytes at the end of a segment can be nothing else.
const FooterSize = 64

// Footer ends a sealed segment and vouches for every byte of it.
//
//	 0 u32 magic | 4 u32 checksum over (log, 8..64) | 8 u64 length before the footer | 16 u32 Sum of all bytes before the footer
//	20 u32 batches | 24 u64 end | 32 u64 least append time | 40 u64 greatest append time | 48 u64 segment id | 56 u64 flags 0
type Footer struct {
	Length    int64     // of the file before the footer, in bytes; HeaderSize at least
	FileSum   uint32    // Sum of those bytes
	Batches   uint32    // in the segment
	End       id.Offset // after the last record
	MinMicros uint64    // least and greatest append time; both 0 without batches
	MaxMicros uint64
	ID        uint64 // of the segment
}

// AppendFooter appends the FooterSize bytes of f to dst.
func AppendFooter(dst []byte, salt Salt, f *Footer) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, footerMagic)
	dst = be.AppendUint32(dst, 0) // the checksum, below
	dst = be.AppendUint64(dst, uint64(f.Length))
	dst = be.AppendUint32(dst, f.FileSum)
	dst = be.AppendUint32(dst, f.Batches)
	dst = be.AppendUint64(dst, uint64(f.End))
	dst = be.AppendUint64(dst, f.MinMicros)
	dst = be.AppendUint64(dst, f.MaxMicros)
	dst = be.AppendUint64(dst, f.ID)
	dst = be.AppendUint64(dst, 0)
	be.PutUint32(dst[start+4:], salt.over(dst[start+8:]))
	return dst
}

// DecodeFooter reads a footer. Errors are *CorruptionError: Truncated, FooterMissing (another magic), FooterChecksum, FooterFlags.
// Whether it fits its segment is for the caller to say.
func DecodeFooter(b []byte, salt Salt) (Footer, error) {
	if len(b) < FooterSize {
		return Footer{}, short(FooterSize, len(b))
	}
	if m := be.Uint32(b); m != footerMagic {
		return Footer{}, &CorruptionError{Kind: FooterMissing, Expected: footerMagic, Found: uint64(m)}
	}
	if want, found := be.Uint32(b[4:]), salt.over(b[8:FooterSize]); want != found {
		return Footer{}, &CorruptionError{Kind: FooterChecksum, Expected: uint64(want), Found: uint64(found)}
	}
	if f := be.Uint64(b[56:]); f != 0 {
		return Footer{}, &CorruptionError{Kind: FooterFlags, Found: f}
	}
	return Footer{
		Length: int64(be.Uint64(b[8:])), FileSum: be.Uint32(b[16:]), Batches: be.Uint32(b[20:]), End: id.Offset(be.Uint64(b[24:])),
		MinMicros: be.Uint64(b[32:]), MaxMicros: be.Uint64(b[40:]), ID: be.Uint64(b[48:]),
	}, nil
}
