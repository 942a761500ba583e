package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// JSONError is a JSON payload that is no JSON, or does not follow the message its type names.
type JSONError struct {
	Type  string // message type, as far as it was read
	Field string // member at which it stopped to make sense; empty when it is the text as a whole
	What  string // what is wrong and what would be right
}

func (e *JSONError) Error() string {
	typ, field := e.Type, e.Field
	if typ == "" {
		typ = "JSON message"
	}
	if field != "" {
		field += ": "
	}
	return fmt.Sprintf("decode %s: %s%s", typ, field, e.What)
}

// Is makes errors.Is(err, ErrMalformed) true.
func (e *JSONError) Is(target error) bool { return target == ErrMalformed }

// scanner pulls tokens off a JSON text (RFC 8259) that is already known to be valid UTF-8. The first mistake is kept
// and ends the text, so that callers check once at their end.
type scanner struct {
	in      []byte
	pos     int
	scratch []byte // unescaped text, reused from token to token
	prefix  string // path of the object being read, for error texts
	field   string // member being read, for error texts
	typ     string // message type, for error texts
	err     *JSONError
}

// fail keeps the first mistake.
func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = &JSONError{Type: s.typ, Field: s.prefix + s.field, What: fmt.Sprintf(format, args...)}
	}
	s.pos = len(s.in)
}

// peek skips white space and returns the next byte, 0 at the end of the text (a real NUL byte is no token either).
func (s *scanner) peek() byte {
	for s.pos < len(s.in) {
		switch c := s.in[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// accept consumes c if it is next.
func (s *scanner) accept(c byte) bool {
	if s.peek() != c || s.pos >= len(s.in) {
		return false
	}
	s.pos++
	return true
}

// expect consumes c or fails.
func (s *scanner) expect(c byte, where string) {
	if !s.accept(c) {
		s.failHere("%q expected %s", c, where)
	}
}

// failHere fails with what stands at the current position.
func (s *scanner) failHere(format string, args ...any) {
	if s.err != nil {
		return
	}
	pos, found := s.pos, "end of text"
	if pos < len(s.in) {
		r, _ := utf8.DecodeRune(s.in[pos:])
		found = fmt.Sprintf("%q", r)
	}
	s.fail("%s, found %s at byte %d", fmt.Sprintf(format, args...), found, pos)
}

// word consumes the literal w if it is next.
func (s *scanner) word(w string) bool {
	s.peek()
	if len(s.in)-s.pos < len(w) || string(s.in[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// null consumes null if it is next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.word("null") }

// raw consumes a string and returns what stands between its quotes, borrowed and still escaped. All escapes are
// checked.
func (s *scanner) raw() (text []byte, escaped bool) {
	if s.peek() != '"' {
		s.failHere("a string expected")
		return nil, false
	}
	start := s.pos + 1
	for i := start + plain(s.in[start:]); i < len(s.in); i += plain(s.in[i:]) {
		switch c := s.in[i]; c {
		case '"':
			s.pos = i + 1
			return s.in[start:i], escaped
		case '\\':
			_, n := unescapeOne(s.in[i:])
			if n == 0 {
				s.fail("bad escape in a string at byte %d", i)
				return nil, false
			}
			escaped = true
			i += n
		default:
			s.fail("raw control character 0x%02x in a string at byte %d, escape it", c, i)
			return nil, false
		}
	}
	s.fail("a string that starts at byte %d has no end", start-1)
	return nil, false
}

// plain counts the bytes at the front of b that may stand in a string as they are: no quote, backslash or control
// character. It looks at eight bytes at once: for each of the three, subtracting turns the high bit of a matching byte
// on. A borrow may also mark a byte above a matching one, never one below, and only the lowest mark is used.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		quote, backslash := x^ones*'"', x^ones*'\\'
		marks := ((quote-ones)&^quote | (backslash-ones)&^backslash | (x-ones*0x20)&^x) & highs
		if marks != 0 {
			return n + bits.TrailingZeros64(marks)/8
		}
	}
	for n < len(b) && b[n] != '"' && b[n] != '\\' && b[n] >= 0x20 {
		n++
	}
	return n
}

// text consumes a string of at most limit bytes and returns its contents: borrowed from the text, or from scratch
// until the next token.
func (s *scanner) text(limit int) []byte {
	raw, escaped := s.raw()
	if escaped && len(raw)/maxEscape <= limit { // else too long whatever the escapes say, and not worth a buffer
		raw = s.unescape(raw)
	}
	if len(raw) > limit {
		s.fail("%d bytes are over the limit of %d", len(raw), limit)
		return nil
	}
	return raw
}

// maxEscape is how many bytes of text one byte of contents takes at most: \u0041.
const maxEscape = 6

// unescape returns the contents of a string whose escapes raw has checked, in scratch. The contents are never longer
// than the text, so scratch is made once per string at most.
func (s *scanner) unescape(raw []byte) []byte {
	if cap(s.scratch) < len(raw) {
		s.scratch = make([]byte, 0, len(raw))
	}
	dst := s.scratch[:0]
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			i++
			continue
		}
		r, n := unescapeOne(raw[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}

// unescapeOne reads one escape at the front of b and returns its character and length, 0 when it is none. A surrogate
// counts only as half of a pair.
func unescapeOne(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeHex(b)
	}
	return 0, 0
}

func unescapeHex(b []byte) (r rune, n int) {
	first, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	second, ok := hex4(b[6:])
	if pair := utf16.DecodeRune(first, second); ok && pair != utf8.RuneError {
		return pair, 12
	}
	return 0, 0
}

// hex4 reads \uXXXX at the front of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
