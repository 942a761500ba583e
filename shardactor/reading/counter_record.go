package reading

import (
	"encoding/binary"
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// CounterOp is what a record of a log of counters does.
type CounterOp uint8

const (
	// CounterAdd adds Delta; Sum is what comes out.
	CounterAdd CounterOp = iota + 1
	// CounterCheckpoint says the sum again, with the version that it had. A compaction appends it.
	CounterCheckpoint
)

// A counter record is one payload in the body of a batch of kind Records:
//
//	op u8 (1 add) | delta i64 | sum i64 | key_len u32 | key
//	op u8 (2 checkpoint) | sum i64 | version u64 | key_len u32 | key
//
// Integers are big-endian. The sum is that after the record, so that each record alone says what its counter is: a log whose head is gone
// folds to the same sums.
const (
	sumBytes      = 8
	counterHeader = opBytes + 8 + 8 + lengthPrefix
)

// CounterRecord is one decoded record of a log of counters. Key is borrowed from what it was decoded from.
type CounterRecord struct {
	Op      CounterOp
	Delta   int64     // of an add
	Sum     int64     // after the record
	Version id.Offset // of a checkpoint: the offset of the add that made the sum
	Key     []byte
}

// CounterRecordSize is the length of AppendCounterRecord's result for a key of so many bytes.
func CounterRecordSize(key int) int { return lengthPrefix + counterHeader + key }

// AppendCounterRecord appends a record with its length in front: one of those that make up a batch body.
func AppendCounterRecord(dst []byte, r CounterRecord) []byte {
	return appendCounterPayload(binary.BigEndian.AppendUint32(dst, uint32(counterHeader+len(r.Key))), r)
}

func appendCounterPayload(dst []byte, r CounterRecord) []byte {
	dst = append(dst, byte(r.Op))
	switch r.Op {
	case CounterAdd:
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Delta))
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Sum))
	case CounterCheckpoint:
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Sum))
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Version))
	default:
		panic(fmt.Sprintf("reading: a counter record of unknown operation %d", r.Op))
	}
	return appendBytes(dst, r.Key)
}

// CounterRecordError says why bytes are not a counter record, or not one that can follow what the log said before.
type CounterRecordError struct{ What string }

func (e *CounterRecordError) Error() string { return "decode counter record: " + e.What }

func wrongCounter(format string, args ...any) error {
	return &CounterRecordError{What: fmt.Sprintf(format, args...)}
}

// DecodeCounterRecord reads one payload of a batch of a log of counters, without the length in front. The result borrows from it. The
// error is a *CounterRecordError.
func DecodeCounterRecord(payload []byte) (CounterRecord, error) {
	if len(payload) < counterHeader {
		return CounterRecord{}, wrongCounter("%d bytes are too few", len(payload))
	}
	first, second := binary.BigEndian.Uint64(payload[opBytes:]), binary.BigEndian.Uint64(payload[opBytes+8:])
	r := CounterRecord{Op: CounterOp(payload[0]), Key: payload[counterHeader:]}
	switch r.Op {
	case CounterAdd:
		r.Delta, r.Sum = int64(first), int64(second)
	case CounterCheckpoint:
		r.Sum, r.Version = int64(first), id.Offset(second)
	default:
		return CounterRecord{}, wrongCounter("unknown operation %d; a later version may know it", payload[0])
	}
	if n := binary.BigEndian.Uint32(payload[counterHeader-lengthPrefix:]); uint64(n) != uint64(len(r.Key)) {
		return CounterRecord{}, wrongCounter("key of %d bytes, %d are left", n, len(r.Key))
	}
	return r, nil
}

// sumIn is where a payload has its sum, as the index keeps it.
func sumIn(payload []byte, op CounterOp) []byte {
	at := opBytes
	if op == CounterAdd {
		at += 8
	}
	return payload[at : at+sumBytes : at+sumBytes]
}
