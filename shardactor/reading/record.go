package reading

import (
	"encoding/binary"
	"fmt"
)

// A cache record is what one put or delete appends to a cache's log: one payload in the body of a batch.
//
//	op u8 (1 put, 2 delete) | expires_at_millis u64 | key_len u32 | key | value
//
// Integers are big-endian. expires_at_millis is absolute wall-clock time since the Unix epoch, 0 = never; it is fixed
// when the write is claimed, so that it survives a restart. A delete carries no value and expiry 0.
const (
	opPut    = 1
	opDelete = 2

	recordHeader = 1 + 8 + 4
	lengthPrefix = 4 // of the payload inside the batch body
)

// Record is one decoded cache write. Key and Value are borrowed from the body it was decoded from.
type Record struct {
	Delete          bool
	ExpiresAtMillis uint64
	Key             []byte
	Value           []byte
}

// AppendRecord appends the batch body (one length-prefixed payload) of a cache write.
func AppendRecord(dst []byte, r Record) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(recordHeader+len(r.Key)+len(r.Value)))
	op := byte(opPut)
	if r.Delete {
		op = opDelete
	}
	dst = append(dst, op)
	dst = binary.BigEndian.AppendUint64(dst, r.ExpiresAtMillis)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Key)))
	dst = append(dst, r.Key...)
	return append(dst, r.Value...)
}

// StampExpiry fixes the absolute end of a put that lives ttl milliseconds from now, in the body AppendRecord made. A ttl of
// 0 ends at once.
func StampExpiry(body []byte, nowMillis, ttlMillis uint64) {
	end := nowMillis + ttlMillis
	if end < nowMillis || end > maxExpiryMillis { // later than a clock can say: the last moment it can
		end = maxExpiryMillis
	}
	binary.BigEndian.PutUint64(body[lengthPrefix+1:], end)
}

// maxExpiryMillis is the latest end of an entry: the year 9999, which every clock and client can express.
const maxExpiryMillis = 253402300799999

// BodySize is the length of AppendRecord's result for a key and a value.
func BodySize(key, value int) int { return lengthPrefix + recordHeader + key + value }

// RecordError says why a batch body is not a cache write.
type RecordError struct{ What string }

func (e *RecordError) Error() string { return "decode cache record: " + e.What }

// DecodeRecord reads the body of a batch of a cache log. The result borrows from body.
func DecodeRecord(body []byte) (Record, error) {
	if len(body) < lengthPrefix+recordHeader {
		return Record{}, &RecordError{What: fmt.Sprintf("%d bytes are too few", len(body))}
	}
	if n := binary.BigEndian.Uint32(body); uint64(n) != uint64(len(body)-lengthPrefix) {
		return Record{}, &RecordError{What: fmt.Sprintf("payload of %d bytes in a body of %d", n, len(body))}
	}
	p := body[lengthPrefix:]
	keyLen := binary.BigEndian.Uint32(p[9:])
	if uint64(keyLen) > uint64(len(p)-recordHeader) {
		return Record{}, &RecordError{What: fmt.Sprintf("key of %d bytes in a payload of %d", keyLen, len(p))}
	}
	r := Record{ExpiresAtMillis: binary.BigEndian.Uint64(p[1:]), Key: p[recordHeader : recordHeader+int(keyLen)], Value: p[recordHeader+int(keyLen):]}
	switch p[0] {
	case opPut:
	case opDelete:
		if r.Delete = true; len(r.Value) != 0 || r.ExpiresAtMillis != 0 {
			return Record{}, &RecordError{What: "a delete carries a value or an expiry"}
		}
	default:
		return Record{}, &RecordError{What: fmt.Sprintf("unknown operation %d", p[0])}
	}
	return r, nil
}
