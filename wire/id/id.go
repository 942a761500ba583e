// Package id holds the unit types that the wire and the storage layers share: what a log may know of the
// protocol that fills it. Units that must not be mixed are types of their own, so that adding a byte count to an
// offset does not compile.
package id

import (
	"encoding/hex"
	"strconv"
)

// Offset is the position of one record in a shard's log. The first record of a log has offset 0; offsets are
// consecutive in claim order and are never reused within one incarnation of a log.
type Offset uint64

// Add returns the offset n records further on. It is the only arithmetic an offset knows.
func (o Offset) Add(n uint64) Offset { return o + Offset(n) }

// Since returns how many records lie between from and o; 0 when o is not past from.
func (o Offset) Since(from Offset) uint64 {
	if o <= from {
		return 0
	}
	return uint64(o - from)
}

func (o Offset) String() string { return strconv.FormatUint(uint64(o), 10) }

// Generation numbers the assignments of one shard: whoever may write was named by exactly one generation. It only
// grows. 0 means "no assignment yet".
type Generation uint64

func (g Generation) String() string { return strconv.FormatUint(uint64(g), 10) }

// Incarnation tells two resources apart that had the same name one after the other. It is drawn when a stream or a
// cache is created; 0 is never drawn.
type Incarnation uint64

// LogID names one log: the same 128 random bits on every replica of the shard, others after the log was re-created.
type LogID [16]byte

func (l LogID) String() string { return hex.EncodeToString(l[:]) }

// IsZero reports whether no id was ever given.
func (l LogID) IsZero() bool { return l == LogID{} }

// ShardID is the number a node gives to a shard replica it hosts. It means nothing to other nodes; full names appear
// only in events (metrics and actor paths use this number, so that their cardinality does not follow the catalog).
type ShardID uint32

func (s ShardID) String() string { return strconv.FormatUint(uint64(s), 10) }
