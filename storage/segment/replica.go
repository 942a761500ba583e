package segment

import "github.com/felixd/felixd/wire/id"

// ReplicaSize is the length of the replica file, in bytes.
const ReplicaSize = 32

// Replica is what a replica has promised: it stores nothing of an older generation than the one here. Written to a temporary file,
// synced, renamed, and its directory synced, before anything is stored or answered under a new generation.
//
//	0 u32 magic | 4 u16 version | 6 u16 flags, bit 0: retention held | 8 u64 generation | 16 u64 commit | 24 u32 reserved 0
//	28 u32 checksum over (log, 0..28)
type Replica struct {
	Generation id.Generation
	Commit     id.Offset // everything before it is committed
	Held       bool      // retention keeps what is at or past Commit
}

// held is the only flag of a replica file.
const held = 0x0001

// AppendReplica appends the ReplicaSize bytes of r to dst.
func AppendReplica(dst []byte, salt Salt, r *Replica) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, replicaMagic)
	dst = be.AppendUint16(dst, Version)
	flags := uint16(0)
	if r.Held {
		flags = held
	}
	dst = be.AppendUint16(dst, flags)
	dst = be.AppendUint64(dst, uint64(r.Generation))
	dst = be.AppendUint64(dst, uint64(r.Commit))
	dst = be.AppendUint32(dst, 0)
	return be.AppendUint32(dst, salt.over(dst[start:]))
}

// DecodeReplica reads the whole of a replica file. Errors are *CorruptionError with Kind ReplicaDamaged, and *VersionError: a log
// whose promises cannot be read is not opened.
func DecodeReplica(b []byte, salt Salt) (Replica, error) {
	if err := whole(b, ReplicaSize, replicaMagic, ReplicaDamaged, salt); err != nil {
		return Replica{}, err
	}
	flags := be.Uint16(b[6:])
	if flags&^held != 0 || be.Uint32(b[24:]) != 0 {
		return Replica{}, &CorruptionError{Kind: ReplicaDamaged, Why: "flags or reserved bytes that this version does not know"}
	}
	return Replica{Generation: id.Generation(be.Uint64(b[8:])), Commit: id.Offset(be.Uint64(b[16:])), Held: flags&held != 0}, nil
}
