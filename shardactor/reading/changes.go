package reading

import (
	"encoding/binary"
	"math"

	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// CacheDecoder is the keyed.Decoder of a cache's log. Errors are *RecordError.
func CacheDecoder(payload []byte, _ id.Offset, _ keyed.Lookup) (keyed.Change, error) {
	r, err := DecodeRecord(payload)
	if err != nil {
		return keyed.Change{}, err
	}
	c := keyed.Change{Key: r.Key, Value: r.Value, ExpiresAtMillis: r.ExpiresAtMillis, Version: r.Version}
	switch r.Op {
	case OpPut:
		c.Kind = keyed.Put
	case OpDelete:
		c.Kind = keyed.Delete
	case OpMove:
		c.Kind = keyed.Move
	case OpExpire:
		c.Kind = keyed.Expire
	}
	return c, nil
}

// EncodeMove is the keyed.Encoder of a cache's log.
func EncodeMove(dst []byte, e keyed.Entry) []byte {
	return appendPayload(dst, Record{Op: OpMove, ExpiresAtMillis: e.ExpiresAtMillis, Version: e.Version, Key: e.Key, Value: e.Value})
}

// CounterDecoder is the keyed.Decoder of a log of counters: a counter's value in the index is its sum, 8 bytes. An add whose sum is not
// what the log said before and the delta make is an error. Where the log does not say what was before, since its head was removed, the sum
// is taken as it is; so is that of a checkpoint, which the fold ignores if it comes too late. Errors are *CounterRecordError.
func CounterDecoder(payload []byte, _ id.Offset, old keyed.Lookup) (keyed.Change, error) {
	r, err := DecodeCounterRecord(payload)
	if err != nil {
		return keyed.Change{}, err
	}
	if before, known := old(r.Key); known && r.Op == CounterAdd {
		if want, ok := addSums(sumOf(before), r.Delta); !ok || want != r.Sum {
			return keyed.Change{}, wrongCounter("sum %d after a delta of %d, and it was %d", r.Sum, r.Delta, sumOf(before))
		}
	}
	c := keyed.Change{Kind: keyed.Put, Key: r.Key, Value: sumIn(payload, r.Op)}
	if r.Op == CounterCheckpoint {
		c.Kind, c.Version = keyed.Move, r.Version
	}
	return c, nil
}

// EncodeCheckpoint is the keyed.Encoder of a log of counters.
func EncodeCheckpoint(dst []byte, e keyed.Entry) []byte {
	return appendCounterPayload(dst, CounterRecord{Op: CounterCheckpoint, Sum: sumOf(e.Value), Version: e.Version, Key: e.Key})
}

// sumOf reads a sum as the index keeps it.
func sumOf(value []byte) int64 {
	if len(value) != sumBytes {
		panic("reading: a counter's value is not a sum")
	}
	return int64(binary.BigEndian.Uint64(value))
}

// addSums adds, and reports whether the sum fits.
func addSums(a, b int64) (int64, bool) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, false
	}
	return a + b, true
}
