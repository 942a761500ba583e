package wire

import (
	"bytes"
	"encoding/base64"
)

// strictBase64 is the standard alphabet with padding, and with the unused bits of the last character required to be
// 0, so that every byte string has exactly one encoding.
var strictBase64 = base64.StdEncoding.Strict()

// number consumes a number and returns its text. integer is false for one with a fraction or an exponent.
func (s *scanner) number() (text []byte, integer bool) {
	s.peek()
	start := s.pos
	i := start
	if i < len(s.in) && s.in[i] == '-' {
		i++
	}
	digits := s.digits(i)
	if digits == 0 || digits > 1 && s.in[i] == '0' {
		s.failHere("a value expected")
		return nil, false
	}
	i += digits
	integer = true
	if i < len(s.in) && s.in[i] == '.' {
		n := s.digits(i + 1)
		if n == 0 {
			s.fail("a number at byte %d has no digit after its point", start)
			return nil, false
		}
		i += 1 + n
		integer = false
	}
	if i < len(s.in) && s.in[i]|0x20 == 'e' {
		i++
		if i < len(s.in) && (s.in[i] == '+' || s.in[i] == '-') {
			i++
		}
		n := s.digits(i)
		if n == 0 {
			s.fail("a number at byte %d has no digit in its exponent", start)
			return nil, false
		}
		i += n
		integer = false
	}
	s.pos = i
	return s.in[start:i], integer
}

// digits counts the decimal digits from position i on.
func (s *scanner) digits(i int) int {
	n := 0
	for i+n < len(s.in) && s.in[i+n] >= '0' && s.in[i+n] <= '9' {
		n++
	}
	return n
}

// uint consumes an integer of 0..limit. 1.0, 1e3, "1" and -0 are no integers of this protocol; values up to the last
// u64 keep every digit.
func (s *scanner) uint(limit uint64) uint64 {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		s.failHere("an integer expected")
		return 0
	}
	text, integer := s.number()
	if s.err != nil {
		return 0
	}
	v, ok := decimal(text, limit)
	if !integer || !ok {
		s.fail("%s is no integer between 0 and %d", text[:min(len(text), 32)], limit)
		return 0
	}
	return v
}

// decimal returns the value of decimal digits; false for one over limit and for text with a minus sign or a point in it.
func decimal(digits []byte, limit uint64) (v uint64, ok bool) {
	for _, c := range digits {
		d := uint64(c - '0')
		if d > 9 || d > limit || v > (limit-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// string consumes a string of at most limit bytes and returns a copy.
func (s *scanner) string(limit int) string {
	return string(s.text(limit))
}

// appendBase64 consumes a base64 string and appends its bytes to dst.
func (s *scanner) appendBase64(dst []byte) []byte {
	return s.decodeBase64(dst, s.text(unlimited))
}

// decodeBase64 appends the bytes of base64 to dst, or fails.
func (s *scanner) decodeBase64(dst, text []byte) []byte {
	if s.err != nil {
		return dst
	}
	if bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0 { // the standard decoder skips line breaks
		s.fail("base64 with a line break in it")
		return dst
	}
	out, err := strictBase64.AppendDecode(dst, text)
	if err != nil {
		s.fail("no padded standard base64 (alphabet with + and /): %v", err)
		return dst
	}
	return out
}

// bytes consumes a base64 string and returns its bytes, never nil, in a buffer that is allocated once.
func (s *scanner) bytes() []byte {
	text := s.text(unlimited)
	if s.err != nil {
		return nil
	}
	return s.decodeBase64(make([]byte, 0, base64.StdEncoding.DecodedLen(len(text))), text)
}

// skip consumes one value of any kind, checking its syntax. It nests no deeper than MaxJSONDepth.
func (s *scanner) skip() {
	var open [MaxJSONDepth]byte // the closing bytes that are owed
	depth := 0
	for s.err == nil {
		depth = s.skipOpen(&open, depth)
		if s.err == nil {
			depth = s.skipClosed(&open, depth)
		}
		if depth == 0 {
			return
		}
	}
}

// skipOpen consumes a scalar, or the opening of an object or array up to its first value. An empty one is consumed as a
// whole.
func (s *scanner) skipOpen(open *[MaxJSONDepth]byte, depth int) int {
	switch c := s.peek(); c {
	case '"':
		s.raw()
	case '{', '[':
		if depth == MaxJSONDepth {
			s.fail("nested deeper than %d levels", MaxJSONDepth)
			return depth
		}
		s.pos++
		if s.accept(c + 2) { // '}' and ']' follow two after their openings
			return depth
		}
		open[depth] = c + 2
		depth++
		if c == '{' {
			s.key()
		}
		return s.skipOpen(open, depth)
	case 't', 'f', 'n':
		if !s.word("true") && !s.word("false") && !s.word("null") {
			s.failHere("a value expected")
		}
	default:
		s.number()
	}
	return depth
}

// skipClosed consumes what follows a value: closings, and then a comma up to the next value.
func (s *scanner) skipClosed(open *[MaxJSONDepth]byte, depth int) int {
	for depth > 0 && s.err == nil {
		if s.accept(open[depth-1]) {
			depth--
			continue
		}
		s.expect(',', "between two values")
		if open[depth-1] == '}' {
			s.key()
		}
		return depth
	}
	return depth
}

// key consumes the name of a member and its colon, and returns the name. A name longer than any that is known is
// returned as it stands there, escapes and all.
func (s *scanner) key() []byte {
	name, escaped := s.raw()
	if escaped && len(name) <= maxEscape*MaxTypeBytes {
		name = s.unescape(name)
	}
	s.expect(':', "after the name of a member")
	return name
}
