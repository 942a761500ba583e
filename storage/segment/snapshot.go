package segment

import "github.com/felixd/felixd/wire/id"

// SnapshotHeaderSize is the length of what stands before the body of a snapshot, in bytes.
const SnapshotHeaderSize = 32

// A snapshot is derived state, such as what is known of producers, as of one offset. It saves reading the log and is never the only
// place of anything: one that cannot be used is ignored, counted and built anew.
//
//	0 u32 magic | 4 u16 version | 6 u16 reserved 0 | 8 u64 as of | 16 u64 body length | 24 u32 reserved 0
//	28 u32 checksum over (log, 0..28, body) | 32 body
//
// AppendSnapshot appends a whole snapshot file to dst: the state in body follows from everything before asOf.
func AppendSnapshot(dst []byte, salt Salt, asOf id.Offset, body []byte) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, snapshotMagic)
	dst = be.AppendUint16(dst, Version)
	dst = be.AppendUint16(dst, 0)
	dst = be.AppendUint64(dst, uint64(asOf))
	dst = be.AppendUint64(dst, uint64(len(body)))
	dst = be.AppendUint32(dst, 0)
	dst = be.AppendUint32(dst, Extend(salt.over(dst[start:]), body))
	return append(dst, body...)
}

// IsSnapshot reports whether a file that begins with b is such a snapshot, by its first four bytes.
func IsSnapshot(b []byte) bool { return len(b) >= 4 && be.Uint32(b) == snapshotMagic }

// DecodeSnapshot reads a whole snapshot file. body is a part of b. Whether asOf lies inside the log is for the caller to say.
// Errors are *CorruptionError with Kind SnapshotDamaged, and *VersionError.
func DecodeSnapshot(b []byte, salt Salt) (asOf id.Offset, body []byte, err error) {
	damaged := func(why string, want, found uint64) error {
		return &CorruptionError{Kind: SnapshotDamaged, Expected: want, Found: found, Why: why}
	}
	if len(b) < SnapshotHeaderSize || be.Uint32(b) != snapshotMagic {
		return 0, nil, damaged("it does not begin with its header", 0, 0)
	}
	body = b[SnapshotHeaderSize:]
	if want, found := be.Uint32(b[28:]), Extend(salt.over(b[:28]), body); want != found {
		return 0, nil, damaged("its checksum does not fit, or it is of another log", uint64(want), uint64(found))
	}
	if v := be.Uint16(b[4:]); v != Version {
		return 0, nil, &VersionError{What: "version", Found: v, Known: Version}
	}
	if n := be.Uint64(b[16:]); n != uint64(len(body)) {
		return 0, nil, damaged("the body has another length", n, uint64(len(body)))
	}
	if be.Uint16(b[6:]) != 0 || be.Uint32(b[24:]) != 0 {
		return 0, nil, damaged("reserved bytes that this version does not know", 0, 0)
	}
	return id.Offset(be.Uint64(b[8:])), body, nil
}
