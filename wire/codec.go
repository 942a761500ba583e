package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrMalformed marks every error that says a payload does not follow its layout: LayoutError and JSONError. The frame
// boundary is still good, so the stream may go on after such a frame.
var ErrMalformed = errors.New("malformed payload")

// LayoutError is a binary payload that does not follow the layout its flags name.
type LayoutError struct {
	Layout string // "publish", "publish ack", "event batch" or "region"
	Field  string // the field at which it stopped to make sense
	What   string // what is wrong and what would be right
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("decode %s: %s: %s", e.Layout, e.Field, e.What)
}

// Is makes errors.Is(err, ErrMalformed) true.
func (e *LayoutError) Is(target error) bool { return target == ErrMalformed }

// reader takes fields off the front of a binary payload. The first mistake is kept; after it every field reads as
// zero, so that a decoder checks once at its end.
type reader struct {
	rest   []byte
	layout string
	err    *LayoutError
}

// fail keeps the first mistake.
func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = &LayoutError{Layout: r.layout, Field: field, What: fmt.Sprintf(format, args...)}
	}
	r.rest = nil
}

// failure returns the first mistake as an error, nil when there was none.
func (r *reader) failure() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// take returns the next n bytes, borrowed.
func (r *reader) take(field string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if len(r.rest) < n {
		r.failShort(field, n)
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// failShort is apart from take so that the happy path stays small enough to inline and free of allocation.
func (r *reader) failShort(field string, n int) {
	r.fail(field, "%d bytes needed, %d left", n, len(r.rest))
}

func (r *reader) u8(field string) uint8 {
	if b := r.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16(field string) uint16 {
	if b := r.take(field, 2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32(field string) uint32 {
	if b := r.take(field, 4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(field string) uint64 {
	if b := r.take(field, 8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// bytes16 reads a u16 length and that many bytes, borrowed.
func (r *reader) bytes16(field string) []byte { return r.take(field, int(r.u16(field))) }

// text16 reads a u16 length and that many bytes, which must be UTF-8 and at most limit long. Borrowed.
func (r *reader) text16(field string, limit int) []byte {
	b := r.bytes16(field)
	if len(b) > limit {
		r.fail(field, "%d bytes are over the limit of %d", len(b), limit)
		return nil
	}
	if !utf8.Valid(b) {
		r.fail(field, "not valid UTF-8")
		return nil
	}
	return b
}

// region reads count length-prefixed payloads and cuts off what follows them.
func (r *reader) region(count uint32) (Region, int) {
	if r.err != nil {
		return nil, 0
	}
	region, size, err := CheckRegion(r.rest, count)
	if err != nil {
		le := err.(*LayoutError) // CheckRegion returns no other type
		le.Layout = r.layout
		r.err = le
		return nil, 0
	}
	return region, size
}

// append16 appends a u16 length and s. Longer strings are a broken invariant of the caller: names, keys and addresses
// are bounded where they enter.
func append16[T string | []byte](dst []byte, field string, s T) []byte {
	if len(s) > 1<<16-1 {
		panic(fmt.Sprintf("wire: %s of %d bytes does not fit its u16 length", field, len(s)))
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

// cutText returns s cut to at most MaxErrorTextBytes, at a character boundary.
func cutText(s string) string {
	if len(s) <= MaxErrorTextBytes {
		return s
	}
	end := MaxErrorTextBytes
	for end > MaxErrorTextBytes-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
