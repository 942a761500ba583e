package reading

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/felixd/felixd/wire/id"
)

// Op is what a record of a cache's log does.
type Op uint8

const (
	// OpPut gives the key a value; its version is the record's offset.
	OpPut Op = iota + 1
	// OpDelete removes the key.
	OpDelete
	// OpMove says again what the key had: value, expiry and version. A compaction appends it; nobody is told of it.
	OpMove
	// OpExpire removes the key if it still has the version that the record names. The shard's owner appends it for an entry that has ended.
	OpExpire
)

// A cache record is one payload in the body of a batch of kind Records, which may hold several:
//
//	put, delete      op u8 | expires_at_millis u64 | key_len u32 | key | value
//	move, expire     op u8 | expires_at_millis u64 | version u64 | key_len u32 | key | value
//
// Integers are big-endian. expires_at_millis is absolute wall-clock time since the Unix epoch, 0 = never; it is fixed when the write is
// claimed, so that it survives a restart. Deletes and expiries carry no value and expiry 0.
const (
	opBytes      = 1
	expiryBytes  = 8
	versionBytes = 8
	lengthPrefix = 4 // of a payload inside the batch body, and of a key inside the payload

	// maxExpiryMillis is the latest end of an entry: the year 9999, which every clock and client can express.
	maxExpiryMillis = 253402300799999
)

// Record is one decoded record of a cache's log. Key and Value are borrowed from what it was decoded from.
type Record struct {
	Op              Op
	ExpiresAtMillis uint64    // of puts and moves; 0 = never
	Version         id.Offset // that a move gives and an expiry asks for
	Key             []byte
	Value           []byte // of puts and moves
}

func (o Op) known() bool      { return o >= OpPut && o <= OpExpire }
func (o Op) hasVersion() bool { return o == OpMove || o == OpExpire }
func (o Op) hasValue() bool   { return o == OpPut || o == OpMove }

// header is the length of a payload in front of its key.
func (o Op) header() int {
	n := opBytes + expiryBytes + lengthPrefix
	if o.hasVersion() {
		n += versionBytes
	}
	return n
}

// RecordSize is the length of AppendRecord's result for a key and a value of so many bytes.
func RecordSize(op Op, key, value int) int { return lengthPrefix + op.header() + key + value }

// AppendRecord appends a record with its length in front: one of those that make up a batch body. What its Op has no use for is not
// written.
func AppendRecord(dst []byte, r Record) []byte {
	n := r.Op.header() + len(r.Key)
	if r.Op.hasValue() {
		n += len(r.Value)
	}
	return appendPayload(binary.BigEndian.AppendUint32(dst, uint32(n)), r)
}

func appendPayload(dst []byte, r Record) []byte {
	if !r.Op.known() {
		panic(fmt.Sprintf("reading: a cache record of unknown operation %d", r.Op))
	}
	if !r.Op.hasValue() {
		r.ExpiresAtMillis, r.Value = 0, nil
	}
	dst = append(dst, byte(r.Op))
	dst = binary.BigEndian.AppendUint64(dst, r.ExpiresAtMillis)
	if r.Op.hasVersion() {
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Version))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Key)))
	dst = append(dst, r.Key...)
	return append(dst, r.Value...)
}

// Expiry is the absolute end, in milliseconds since the Unix epoch, of an entry that lives ttl milliseconds from now. A ttl of 0 ends at
// once; the latest end is that of the year 9999.
func Expiry(nowMillis, ttlMillis uint64) uint64 {
	end := nowMillis + ttlMillis
	if end < nowMillis || end > maxExpiryMillis {
		return maxExpiryMillis
	}
	return max(end, 1) // 0 would be never
}

// RecordError says why bytes are not a cache record.
type RecordError struct{ What string }

func (e *RecordError) Error() string { return "decode cache record: " + e.What }

func wrongRecord(format string, args ...any) error {
	return &RecordError{What: fmt.Sprintf(format, args...)}
}

// DecodeRecord reads one payload of a batch of a cache's log, without the length in front. The result borrows from it. The error is a
// *RecordError.
func DecodeRecord(payload []byte) (Record, error) {
	if len(payload) < opBytes {
		return Record{}, wrongRecord("it is empty")
	}
	r := Record{Op: Op(payload[0])}
	if !r.Op.known() {
		return Record{}, wrongRecord("unknown operation %d; a later version may know it", payload[0])
	}
	header := r.Op.header()
	if len(payload) < header {
		return Record{}, wrongRecord("%d bytes are too few", len(payload))
	}
	r.ExpiresAtMillis = binary.BigEndian.Uint64(payload[opBytes:])
	if r.Op.hasVersion() {
		r.Version = id.Offset(binary.BigEndian.Uint64(payload[opBytes+expiryBytes:]))
	}
	n := binary.BigEndian.Uint32(payload[header-lengthPrefix:])
	rest := payload[header:]
	if uint64(n) > uint64(len(rest)) {
		return Record{}, wrongRecord("key of %d bytes, %d are left", n, len(rest))
	}
	r.Key, r.Value = rest[:n:n], rest[n:len(rest):len(rest)]
	if !r.Op.hasValue() && (len(r.Value) != 0 || r.ExpiresAtMillis != 0) {
		return Record{}, wrongRecord("operation %d carries a value or an expiry", r.Op)
	}
	return r, nil
}

// Records yields the records of a batch body in their order: the first one is at the batch's Base, the others follow. What is wrong with a
// body is yielded last, as a *RecordError; the records before are good.
func Records(body []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for rest := body; len(rest) > 0; {
			var payload []byte
			var err error
			if payload, rest, err = cutPayload(rest); err != nil {
				yield(Record{}, err)
				return
			}
			r, err := DecodeRecord(payload)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// cutPayload cuts one length and payload off a body.
func cutPayload(body []byte) (payload, rest []byte, err error) {
	if len(body) < lengthPrefix {
		return nil, nil, wrongRecord("%d bytes are too few for the length of a record", len(body))
	}
	n := binary.BigEndian.Uint32(body)
	if body = body[lengthPrefix:]; uint64(n) > uint64(len(body)) {
		return nil, nil, wrongRecord("record of %d bytes, %d are left", n, len(body))
	}
	return body[:n:n], body[n:], nil
}
