package groupcore

import (
	"encoding/binary"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Kind says what an entry is about.
type Kind uint8

const (
	// KindPosition is where the group is; its offset in the key is 0.
	KindPosition Kind = iota + 1
	// KindRange is a settled range above the cursor; the key has its first offset.
	KindRange
	// KindRun is a run of records that were handed out once, by one poll; the key has the first.
	KindRun
	// KindNumber is the delivery number of one record that was handed out again.
	KindNumber
	// KindDead is a dead letter. It is the only kind in the log of dead letters, and is in no other.
	KindDead
)

// Entry is a key and its value, decoded.
//
//	key       group_len u8 | group | kind u8 | offset u64
//	position  epoch u64 | born u64 | cursor u64 | deleted u8
//	range     epoch u64 | end u64
//	run       epoch u64 | count u32
//	number    epoch u64 | number u32 | failures u32
//	dead      born u64 | owed u8 | number u32 | failures u32
//
// All keys of a group have the prefix that AppendKeyPrefix makes.
type Entry struct {
	Kind   Kind
	Offset id.Offset
	// Epoch is the epoch of the position; of a dead letter, that in which its group was born.
	Epoch    uint64
	Born     uint64    // of a position: the epoch in which the group was created
	Cursor   id.Offset // of a position: one past the contiguous run of finished records
	Deleted  bool      // of a position: there is no group, but perhaps something left of one
	End      id.Offset // of a range, above Offset
	Count    uint32    // of a run: 1 to wire.MaxGroupRecords
	Number   uint32    // of a number or an owed dead letter: how often it was handed out
	Failures uint32    // and how often that came to nothing
	Owed     bool      // of a dead letter: it is handed out again
}

// Reach is the end of the records that an entry says something of: one past the last of them.
func (e *Entry) Reach() id.Offset {
	switch e.Kind {
	case KindPosition:
		return e.Cursor
	case KindRange:
		return e.End
	case KindRun:
		return e.Offset.Add(uint64(e.Count))
	}
	return e.Offset + 1
}

// cut takes away what an entry says of records at and past end, and reports whether anything is left.
func (e *Entry) cut(end id.Offset) bool {
	switch e.Kind {
	case KindPosition:
		e.Cursor = min(e.Cursor, end)
		return true
	case KindRange:
		e.End = min(e.End, end)
	case KindRun:
		e.Count = uint32(min(uint64(e.Count), max(e.Offset, end).Since(e.Offset)))
	}
	return e.Offset < end
}

// MaxGroupBytes bounds the name of a group: its length is one byte of the key.
const MaxGroupBytes = wire.MaxNameBytes

const keyBytes = 1 + 1 + 8 // beside the group

// AppendKeyPrefix appends what all keys of a group begin with, and no key of another. It panics on a name over MaxGroupBytes.
func AppendKeyPrefix(dst []byte, group string) []byte {
	if len(group) > MaxGroupBytes {
		panic("groupcore: the name of a group is too long")
	}
	return append(append(dst, byte(len(group))), group...)
}

// AppendKey appends the key of an entry.
func AppendKey(dst []byte, group string, kind Kind, offset id.Offset) []byte {
	return binary.BigEndian.AppendUint64(append(AppendKeyPrefix(dst, group), byte(kind)), uint64(offset))
}

// AppendValue appends the value of an entry.
func AppendValue(dst []byte, e *Entry) []byte {
	dst = binary.BigEndian.AppendUint64(dst, e.Epoch)
	switch e.Kind {
	case KindPosition:
		dst = binary.BigEndian.AppendUint64(dst, e.Born)
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.Cursor))
		return append(dst, truth(e.Deleted))
	case KindRange:
		return binary.BigEndian.AppendUint64(dst, uint64(e.End))
	case KindRun:
		return binary.BigEndian.AppendUint32(dst, e.Count)
	case KindNumber:
		return appendNumber(dst, e)
	case KindDead:
		return appendNumber(append(dst, truth(e.Owed)), e)
	}
	panic("groupcore: the value of an unknown kind")
}

func appendNumber(dst []byte, e *Entry) []byte {
	dst = binary.BigEndian.AppendUint32(dst, e.Number)
	return binary.BigEndian.AppendUint32(dst, e.Failures)
}

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// valueBytes is the length of a value of each kind.
var valueBytes = [...]int{KindPosition: 25, KindRange: 16, KindRun: 12, KindNumber: 16, KindDead: 17}

// DecodeKey reads a key. The group borrows from it; of the entry only the kind and the offset are set. The error is a *RecordError.
func DecodeKey(key []byte) (group []byte, e Entry, err error) {
	if len(key) < keyBytes || len(key) != keyBytes+int(key[0]) {
		return nil, Entry{}, wrong("a key of %d bytes does not have the length it names", len(key))
	}
	rest := key[1+int(key[0]):]
	e = Entry{Kind: Kind(rest[0]), Offset: id.Offset(binary.BigEndian.Uint64(rest[1:]))}
	if e.Kind < KindPosition || e.Kind > KindDead {
		return nil, Entry{}, wrong("unknown kind %d; a later version may know it", rest[0])
	}
	if e.Kind == KindPosition && e.Offset != 0 {
		return nil, Entry{}, wrong("a position with the offset %s in its key", e.Offset)
	}
	return key[1 : 1+int(key[0])], e, nil
}

// DecodeEntry reads a key and its value. The group borrows from the key. The error is a *RecordError.
func DecodeEntry(key, value []byte) (group []byte, e Entry, err error) {
	group, e, err = DecodeKey(key)
	if err != nil {
		return nil, Entry{}, err
	}
	if len(value) != valueBytes[e.Kind] {
		return nil, Entry{}, wrong("kind %d has %d bytes, not %d", e.Kind, len(value), valueBytes[e.Kind])
	}
	e.Epoch = binary.BigEndian.Uint64(value)
	rest, flagged := value[8:], byte(0)
	switch e.Kind {
	case KindPosition:
		e.Born, e.Cursor = binary.BigEndian.Uint64(rest), id.Offset(binary.BigEndian.Uint64(rest[8:]))
		flagged = rest[16]
		e.Deleted = flagged == 1
	case KindRange:
		e.End = id.Offset(binary.BigEndian.Uint64(rest))
	case KindRun:
		e.Count = binary.BigEndian.Uint32(rest)
	case KindNumber:
		e.Number, e.Failures = binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
	case KindDead:
		flagged = rest[0]
		e.Owed = flagged == 1
		e.Number, e.Failures = binary.BigEndian.Uint32(rest[1:]), binary.BigEndian.Uint32(rest[5:])
	}
	if flagged > 1 {
		return nil, Entry{}, wrong("a flag of kind %d is %d", e.Kind, flagged)
	}
	if err := e.verify(); err != nil {
		return nil, Entry{}, err
	}
	return group, e, nil
}

// verify finds what no group writes.
func (e *Entry) verify() error {
	switch {
	case e.Epoch == 0:
		return wrong("kind %d has the epoch 0; the first is 1", e.Kind)
	case e.Kind == KindPosition && (e.Born == 0 || e.Born > e.Epoch):
		return wrong("a group of epoch %d was born in epoch %d", e.Epoch, e.Born)
	case e.Deleted && e.Cursor != 0:
		return wrong("a group that was deleted is at %s", e.Cursor)
	case e.Kind == KindRange && e.End <= e.Offset:
		return wrong("a range from %s to %s", e.Offset, e.End)
	case e.Kind == KindRun && (e.Count == 0 || e.Count > wire.MaxGroupRecords || uint64(e.Offset)+uint64(e.Count) < uint64(e.Offset)):
		return wrong("a run of %d records from %s", e.Count, e.Offset)
	}
	return nil
}
