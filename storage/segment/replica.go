package segment

import (
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// ReplicaSize is the length of the replica file, in bytes, without lost ends. Each of those takes LostEndSize more, and there are MaxLostEnds
// at most.
const (
	ReplicaSize = 32
	LostEndSize = 24
	MaxLostEnds = 64
)

// Replica is what a replica has promised: it stores nothing of an older generation than the one here, and it believes nothing that is said of
// records which it has lost. Written to a temporary file, synced, renamed, and its directory synced, before anything is stored or answered
// under a new generation, or at or past a lost end.
//
//	0 u32 magic | 4 u16 version | 6 u16 flags, bit 0: retention held | 8 u64 generation | 16 u64 commit | 24 u32 number of lost ends
//	28 each: u64 end | u64 end of the log of cursors | u64 end of the log of dead letters
//	then u32 checksum over (log, everything before it)
//
// The version is 1 without lost ends, and 2 with some: a program that knows only the former refuses the log.
type Replica struct {
	Generation id.Generation
	Commit     id.Offset // everything before it is committed
	Held       bool      // retention keeps what is at or past Commit
	// Lost is how the log was shorter, when it was opened, than logs beside it say.
	Lost []LostEnd
}

// LostEnd says that a stream's log ended at End when it was opened, and that the logs of its consumer groups knew of more. What they say of
// offsets at or past End, and was written to them below the offsets here, is of records that were lost. 1<<64-1: they could not be read
// since, so all that they hold was written before.
type LostEnd struct{ End, Cursors, DeadLetters id.Offset }

const (
	// held is the only flag of a replica file.
	held = 0x0001
	// lostVersion is the version of a replica file with lost ends.
	lostVersion = 2
)

// Equal reports whether two replica files say the same.
func (r *Replica) Equal(o *Replica) bool {
	return r.Generation == o.Generation && r.Commit == o.Commit && r.Held == o.Held && slices.Equal(r.Lost, o.Lost)
}

// AppendReplica appends the bytes of r to dst. It panics on more than MaxLostEnds.
func AppendReplica(dst []byte, salt Salt, r *Replica) []byte {
	if len(r.Lost) > MaxLostEnds {
		panic("segment: a replica file with too many lost ends")
	}
	start := len(dst)
	dst = be.AppendUint32(dst, replicaMagic)
	version, flags := uint16(Version), uint16(0)
	if len(r.Lost) > 0 {
		version = lostVersion
	}
	if r.Held {
		flags = held
	}
	dst = be.AppendUint16(be.AppendUint16(dst, version), flags)
	dst = be.AppendUint64(dst, uint64(r.Generation))
	dst = be.AppendUint64(dst, uint64(r.Commit))
	dst = be.AppendUint32(dst, uint32(len(r.Lost)))
	for _, l := range r.Lost {
		dst = be.AppendUint64(dst, uint64(l.End))
		dst = be.AppendUint64(dst, uint64(l.Cursors))
		dst = be.AppendUint64(dst, uint64(l.DeadLetters))
	}
	return be.AppendUint32(dst, salt.over(dst[start:]))
}

// DecodeReplica reads the whole of a replica file. Errors are *CorruptionError with Kind ReplicaDamaged, and *VersionError: a log
// whose promises cannot be read is not opened.
func DecodeReplica(b []byte, salt Salt) (Replica, error) {
	damaged := func(why string) (Replica, error) {
		return Replica{}, &CorruptionError{Kind: ReplicaDamaged, Why: why}
	}
	lost := (len(b) - ReplicaSize) / LostEndSize
	if len(b) < ReplicaSize || len(b) != ReplicaSize+lost*LostEndSize || lost > MaxLostEnds {
		return Replica{}, &CorruptionError{Kind: ReplicaDamaged, Expected: ReplicaSize, Found: uint64(len(b)), Why: "the file has another length"}
	}
	known := uint16(Version)
	if lost > 0 {
		known = lostVersion
	}
	if err := sound(b, replicaMagic, ReplicaDamaged, salt); err != nil {
		return Replica{}, err
	}
	switch v := be.Uint16(b[4:]); {
	case v > lostVersion || v == 0:
		return Replica{}, &VersionError{What: "version", Found: v, Known: lostVersion}
	case v != known:
		return damaged("its version has another length")
	}
	flags := be.Uint16(b[6:])
	if flags&^held != 0 || be.Uint32(b[24:]) != uint32(lost) {
		return damaged("flags or reserved bytes that this version does not know")
	}
	r := Replica{Generation: id.Generation(be.Uint64(b[8:])), Commit: id.Offset(be.Uint64(b[16:])), Held: flags&held != 0}
	for at := 28; len(r.Lost) < lost; at += LostEndSize {
		r.Lost = append(r.Lost, LostEnd{id.Offset(be.Uint64(b[at:])), id.Offset(be.Uint64(b[at+8:])), id.Offset(be.Uint64(b[at+16:]))})
	}
	return r, nil
}
