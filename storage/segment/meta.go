package segment

import "github.com/felixd/felixd/wire/id"

// MetaSize is the length of log.meta, in bytes.
const MetaSize = 64

// Meta says whose log a directory holds. It is written once (temporary file, sync, rename, sync of the directory) before the first
// segment is.
//
//	 0 u32 magic | 4 u16 version | 6 u8 kind | 7 u8 reserved 0 | 8 [16] log | 24 u64 incarnation | 32 u64 creation generation
//	40 u64 name hash | 48 u64 created, micros | 56 u32 reserved 0 | 60 u32 checksum over (log, 0..60)
type Meta struct {
	Log           id.LogID
	Incarnation   id.Incarnation
	Generation    id.Generation // under which the log was created
	NameHash      uint64        // see NameHash
	Kind          LogKind
	CreatedMicros uint64
}

// AppendMeta appends the MetaSize bytes of m to dst.
func AppendMeta(dst []byte, m *Meta) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, metaMagic)
	dst = be.AppendUint16(dst, Version)
	dst = append(dst, byte(m.Kind), 0)
	dst = append(dst, m.Log[:]...)
	dst = be.AppendUint64(dst, uint64(m.Incarnation))
	dst = be.AppendUint64(dst, uint64(m.Generation))
	dst = be.AppendUint64(dst, m.NameHash)
	dst = be.AppendUint64(dst, m.CreatedMicros)
	dst = be.AppendUint32(dst, 0)
	return be.AppendUint32(dst, SaltOf(m.Log).over(dst[start:]))
}

// DecodeMeta reads the whole of a log.meta. Errors are *CorruptionError with Kind MetaDamaged, and *VersionError for a version or a
// kind of log that this program does not know.
func DecodeMeta(b []byte) (Meta, error) {
	var salt Salt
	if len(b) == MetaSize {
		salt = SaltOf(id.LogID(b[8:24]))
	}
	if err := whole(b, MetaSize, metaMagic, MetaDamaged, salt); err != nil {
		return Meta{}, err
	}
	m := Meta{
		Log: id.LogID(b[8:24]), Incarnation: id.Incarnation(be.Uint64(b[24:])), Generation: id.Generation(be.Uint64(b[32:])),
		NameHash: be.Uint64(b[40:]), Kind: LogKind(b[6]), CreatedMicros: be.Uint64(b[48:]),
	}
	switch {
	case m.Kind < Stream || m.Kind > DeadLetters:
		return Meta{}, &VersionError{What: "kind", Found: uint16(m.Kind), Known: uint16(DeadLetters)}
	case b[7] != 0 || be.Uint32(b[56:]) != 0:
		return Meta{}, &CorruptionError{Kind: MetaDamaged, Why: "reserved bytes that this version does not know"}
	case m.Log.IsZero():
		return Meta{}, &CorruptionError{Kind: MetaDamaged, Why: "a log without an id"}
	}
	return m, nil
}
