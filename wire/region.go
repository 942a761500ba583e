package wire

import (
	"encoding/binary"
	"fmt"
)

// Region is the body shared by publishes, event batches and stored batches: one after the other, the length of a
// payload as u32 and the payload.
//
//	+--------+---------+--------+---------+--
//	| u32 n0 | n0 bytes| u32 n1 | n1 bytes| ...
//	+--------+---------+--------+---------+--
//
// A value of this type obtained from CheckRegion, Cut or AppendPayload holds whole payloads and nothing else. It is
// the very byte string the log stores, so that a reader sends stored bytes behind a frame header and never encodes
// them again. A Region borrows the buffer it was cut from.
type Region []byte

// PayloadOverhead is what the length in front of each payload costs, in bytes.
const PayloadOverhead = 4

// CheckRegion reads count payloads from the front of b and returns the region that holds exactly them, and the sum of
// their lengths without the length fields. Bytes after the last payload are ignored and cut off, as all decoders of
// this protocol do. A count that the bytes cannot hold is refused before they are walked. The error is a *LayoutError.
func CheckRegion(b []byte, count uint32) (region Region, payloadBytes int, err error) {
	if uint64(count) > uint64(len(b)/PayloadOverhead) {
		return nil, 0, regionError("count", "%d payloads cannot fit the %d bytes that follow", count, len(b))
	}
	pos := 0
	for i := uint32(0); i < count; i++ {
		if len(b)-pos < PayloadOverhead {
			return nil, 0, regionError("payload length", "payload %d of %d is cut short: %d bytes left, 4 needed", i, count, len(b)-pos)
		}
		n := binary.BigEndian.Uint32(b[pos:])
		pos += PayloadOverhead
		if uint64(n) > uint64(len(b)-pos) {
			return nil, 0, regionError("payload", "payload %d of %d announces %d bytes, %d are left", i, count, n, len(b)-pos)
		}
		pos += int(n)
		payloadBytes += int(n)
	}
	return Region(b[:pos:pos]), payloadBytes, nil
}

func regionError(field, format string, args ...any) error {
	return &LayoutError{Layout: "region", Field: field, What: fmt.Sprintf(format, args...)}
}

// AppendPayload appends the length of p and p to dst, which thereby stays a region.
func AppendPayload(dst []byte, p []byte) []byte {
	if uint64(len(p)) > 1<<32-1 {
		panic(fmt.Sprintf("wire: payload of %d bytes does not fit its u32 length", len(p)))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(p)))
	return append(dst, p...)
}

// Next returns the first payload and the region after it. ok is false at the end. The payload is borrowed. It panics
// on bytes that never were a region.
func (r Region) Next() (payload []byte, rest Region, ok bool) {
	if len(r) == 0 {
		return nil, nil, false
	}
	end := PayloadOverhead + int(binary.BigEndian.Uint32(r))
	return r[PayloadOverhead:end:end], r[end:], true
}

// Count returns how many payloads the region holds, by walking it.
func (r Region) Count() uint32 {
	var n uint32
	for _, rest, ok := r.Next(); ok; _, rest, ok = rest.Next() {
		n++
	}
	return n
}

// Cut splits the region at a payload boundary: head holds as many payloads as fit maxEvents and maxBytes (counted in
// region bytes, the length fields included), but at least one, so that a payload over the bound still travels alone.
// Nothing is copied. An empty region gives an empty head and a count of 0.
func (r Region) Cut(maxEvents int, maxBytes int) (head Region, headCount uint32, rest Region) {
	pos := 0
	for pos < len(r) {
		end := pos + PayloadOverhead + int(binary.BigEndian.Uint32(r[pos:]))
		if headCount > 0 && (int(headCount) >= maxEvents || end > maxBytes) {
			break
		}
		pos = end
		headCount++
	}
	return r[:pos:pos], headCount, r[pos:]
}
