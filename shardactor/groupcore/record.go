package groupcore

import (
	"encoding/binary"
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// Op is what a record of a group's log does to its key.
type Op uint8

const (
	// Put gives the key a value.
	Put Op = iota + 1
	// Delete removes the key.
	Delete
	// Moved says the value again, with the version that it had. A compaction appends it.
	Moved
)

// Record is one record of the logs of cursors and dead letters: one payload in the body of a batch of kind Records.
//
//	op u8 (1 put) | key_len u16 | key | value
//	op u8 (2 delete) | key_len u16 | key
//	op u8 (3 moved) | version u64 | key_len u16 | key | value
//
// Integers are big-endian. The newest record of a key says all there is to know of it.
type Record struct {
	Op         Op
	Version    id.Offset // of Moved: the offset of the Put that gave the key its value
	Key, Value []byte    // borrowed from what they were decoded from
}

const lengthPrefix = 4

// RecordError says why bytes are not a record of a group's log.
type RecordError struct{ What string }

func (e *RecordError) Error() string { return "decode group record: " + e.What }

func wrong(format string, args ...any) error { return &RecordError{What: fmt.Sprintf(format, args...)} }

// AppendRecord appends a record with its length in front, in four bytes: one of those that make up a batch body.
func AppendRecord(dst []byte, r Record) []byte {
	at := len(dst)
	dst = AppendPayload(append(dst, 0, 0, 0, 0), r)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-lengthPrefix))
	return dst
}

// AppendPayload appends a record without its length. It panics on a key that is longer than a u16 says, or an unknown Op.
func AppendPayload(dst []byte, r Record) []byte {
	if r.Op < Put || r.Op > Moved || len(r.Key) > 1<<16-1 {
		panic(fmt.Sprintf("groupcore: a record of operation %d with a key of %d bytes", r.Op, len(r.Key)))
	}
	dst = append(dst, byte(r.Op))
	if r.Op == Moved {
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Version))
	}
	dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(r.Key))), r.Key...)
	if r.Op == Delete {
		return dst
	}
	return append(dst, r.Value...)
}

// DecodeRecord reads one payload, without the length in front. The result borrows from it. The error is a *RecordError. What the key and
// the value say is read by DecodeEntry.
func DecodeRecord(payload []byte) (Record, error) {
	if len(payload) == 0 {
		return Record{}, wrong("it is empty")
	}
	r, rest := Record{Op: Op(payload[0])}, payload[1:]
	switch r.Op {
	case Put, Delete:
	case Moved:
		if len(rest) < 8 {
			return Record{}, wrong("%d bytes are too few for a version", len(rest))
		}
		r.Version, rest = id.Offset(binary.BigEndian.Uint64(rest)), rest[8:]
	default:
		return Record{}, wrong("unknown operation %d; a later version may know it", payload[0])
	}
	if len(rest) < 2 {
		return Record{}, wrong("%d bytes are too few for the length of a key", len(rest))
	}
	n := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; n > len(rest) {
		return Record{}, wrong("key of %d bytes, %d are left", n, len(rest))
	}
	r.Key, r.Value = rest[:n:n], rest[n:]
	if r.Op == Delete && len(r.Value) > 0 {
		return Record{}, wrong("a delete has %d bytes behind its key", len(r.Value))
	}
	return r, nil
}
