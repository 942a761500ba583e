package segment

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/felixd/felixd/wire/id"
)

// The files of a log's directory, beside its segments.
const (
	MetaName    = "log.meta"
	MarkName    = "durable.mark"
	ReplicaName = "replica"

	logSuffix      = ".log"
	indexSuffix    = ".index"
	snapshotSuffix = ".snap"

	// TempSuffix ends the name of a file that is not finished. A plan deletes it, see IsTemp.
	TempSuffix = ".tmp"
	// LockName is the lock of a store's root.
	LockName = "LOCK"
	// DeletedName is the directory below a store's root to which logs are set aside that are to be deleted.
	DeletedName = "deleted"
	// SalvagedName is the directory below a store's root where repairs keep what they take out of a log.
	SalvagedName = "salvaged"
)

// LogKind is what a log is for. It decides below which directory the log lies.
type LogKind uint8

const (
	// Stream holds the records of a stream's shard.
	Stream LogKind = iota + 1
	// Cache holds the entries of a cache's shard.
	Cache
	// Counters holds the counters of a cache's shard.
	Counters
	// Groups holds the cursors of a shard's consumer groups.
	Groups
	// DeadLetters holds what a shard's consumer groups gave up on.
	DeadLetters
)

var kindRoots = [...]string{Stream: "", Cache: "caches", Counters: "counters", Groups: "groups", DeadLetters: "dead-letters"}

// LogKinds are all kinds, in order. The caller owns the slice.
func LogKinds() []LogKind { return []LogKind{Stream, Cache, Counters, Groups, DeadLetters} }

// Root is the directory below a store's root that holds logs of this kind; "" is the root itself.
func (k LogKind) Root() string {
	if int(k) < len(kindRoots) {
		return kindRoots[k]
	}
	return k.String()
}

// String is the name of the kind: "streams" or its root. It is a part of NameHash and never changes.
func (k LogKind) String() string {
	switch {
	case k == Stream:
		return "streams"
	case k >= Cache && k <= DeadLetters:
		return kindRoots[k]
	}
	return fmt.Sprintf("kind_%d", uint8(k))
}

// Key names a shard: the shard of a stream or of a cache.
type Key struct {
	Tenant, Namespace, Name string
	Shard                   uint32
}

// Hash is FNV-1a 64 over tenant, namespace and name, each an 8-byte big-endian length and its bytes, and then the shard as 4 bytes.
func (k *Key) Hash() uint64 {
	h := uint64(fnvOffset)
	for _, part := range []string{k.Tenant, k.Namespace, k.Name} {
		h = fnv(h, string(be.AppendUint64(nil, uint64(len(part)))))
		h = fnv(h, part)
	}
	return fnv(h, string(be.AppendUint32(nil, k.Shard)))
}

// FNV-1a with 64 bits, as in draft-eastlake-fnv section 5.
const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

func fnv(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// NameHash is what segments and log.meta carry: the hash of a key (Key.Hash) continued over the name of the kind. It follows from
// the directory's name and place, so that a tool needs no key.
func NameHash(keyHash uint64, kind LogKind) uint64 { return fnv(keyHash, kind.String()) }

// componentMost bounds each name inside a directory name, in bytes. The hash tells apart what it cuts off.
const componentMost = 32

// DirName is the directory of a log: readable-hash-incarnation. The readable part is for people: names cut to 32 bytes and joined by _,
// with a _ for every byte outside A-Z, a-z, 0-9 and -. The key's hash and the incarnation, 16 hex digits each, tell logs apart.
func DirName(k *Key, incarnation id.Incarnation) string {
	var b strings.Builder
	for _, part := range []string{k.Tenant, k.Namespace, k.Name} {
		for _, c := range []byte(part[:min(len(part), componentMost)]) {
			if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
				c = '_'
			}
			b.WriteByte(c)
		}
		b.WriteByte('_')
	}
	fmt.Fprintf(&b, "%d-%016x-%016x", k.Shard, k.Hash(), uint64(incarnation))
	return b.String()
}

// ParseDirName takes hash and incarnation out of a directory name; false if the name is none of DirName.
func ParseDirName(name string) (keyHash uint64, incarnation id.Incarnation, ok bool) {
	if len(name) < 35 || name[len(name)-17] != '-' || name[len(name)-34] != '-' {
		return 0, 0, false
	}
	keyHash, ok = hex16(name[len(name)-33 : len(name)-17])
	inc, fine := hex16(name[len(name)-16:])
	return keyHash, id.Incarnation(inc), ok && fine
}

// hex16 reads 16 lower-case hex digits, and nothing else.
func hex16(s string) (uint64, bool) {
	v, err := strconv.ParseUint(s, 16, 64)
	return v, err == nil && fmt.Sprintf("%016x", v) == s
}

// FileName is the name of a segment: its id in 20 digits and ".log".
func FileName(segmentID uint64) string { return fmt.Sprintf("%020d", segmentID) + logSuffix }

// IndexName is the name of a segment's index.
func IndexName(segmentID uint64) string { return fmt.Sprintf("%020d", segmentID) + indexSuffix }

// SnapshotName is the file of a snapshot. The name is one of the program's own: letters and dashes.
func SnapshotName(name string) string { return name + snapshotSuffix }

// ParseFileName takes the id out of a segment's name. Only 20 digits count: other spellings of a number are other files.
func ParseFileName(name string) (uint64, bool) { return parseID(name, logSuffix) }

// ParseIndexName does it for an index.
func ParseIndexName(name string) (uint64, bool) { return parseID(name, indexSuffix) }

// IsTemp reports whether a name is that of one of a log's own files before it was finished. Others that end alike belong to somebody else.
func IsTemp(name string) bool {
	of, ok := strings.CutSuffix(name, TempSuffix)
	if !ok {
		return false
	}
	_, isSegment := ParseFileName(of)
	_, isIndex := ParseIndexName(of)
	return isSegment || isIndex || of == MetaName || of == MarkName || of == ReplicaName || strings.HasSuffix(of, snapshotSuffix)
}

func parseID(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	return v, err == nil
}
