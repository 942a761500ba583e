package wire

import (
	"math"
	"strconv"
)

// Kinds of members that have a default when they are absent, and signed integers.

// boolField is a boolean.
func (f *fields) boolField(name string, v *bool) { f.boolean(name, must, v) }

// defBool is a boolean that is false when it is absent, and always written.
func (f *fields) defBool(name string, v *bool) { f.boolean(name, may, v) }

// flag is a boolean that is false when it is absent, and left out when it is false.
func (f *fields) flag(name string, v *bool) {
	if f.pass != writing || *v {
		f.boolean(name, may, v)
	}
}

func (f *fields) boolean(name string, need required, v *bool) {
	switch {
	case !f.at(name, need):
	case f.pass == writing:
		f.put(name)
		f.out = strconv.AppendBool(f.out, *v)
	case need == may && f.null():
		*v = false
	default:
		*v = f.scanner.bool()
	}
}

// optBool is an optional boolean.
func (f *fields) optBool(name string, v *Opt[bool]) {
	switch {
	case !f.at(name, may):
	case f.pass == writing:
		if v.Set {
			f.put(name)
			f.out = strconv.AppendBool(f.out, v.V)
		}
	case f.null():
		*v = Opt[bool]{}
	default:
		*v = Some(f.scanner.bool())
	}
}

// defUint is an integer that is 0 when it is absent, and always written.
func defUint[T unsigned](f *fields, name string, v *T) {
	o := Some(*v)
	if optUint(f, name, &o); f.pass == reading {
		*v = o.V
	}
}

// countUint is an integer that is 0 when it is absent, and left out when it is 0.
func countUint[T unsigned](f *fields, name string, v *T) {
	if f.pass != writing || *v != 0 {
		defUint(f, name, v)
	}
}

// intField is a signed integer.
func (f *fields) intField(name string, v *int64) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = strconv.AppendInt(f.out, *v, 10)
		return
	}
	*v = f.scanner.int()
}

// optInt is an optional signed integer.
func (f *fields) optInt(name string, v *Opt[int64]) {
	switch {
	case !f.at(name, may):
	case f.pass == writing:
		if v.Set {
			f.put(name)
			f.out = strconv.AppendInt(f.out, v.V, 10)
		}
	case f.null():
		*v = Opt[int64]{}
	default:
		*v = Some(f.scanner.int())
	}
}

// bool consumes true or false.
func (s *scanner) bool() bool {
	switch {
	case s.word("true"):
		return true
	case s.word("false"):
	default:
		s.failHere("true or false expected")
	}
	return false
}

// int consumes an integer in the range of i64. The rules are those of uint, and a minus sign is allowed; -0 is no
// integer here either.
func (s *scanner) int() int64 {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		s.failHere("an integer expected")
		return 0
	}
	text, integer := s.number()
	if s.err != nil {
		return 0
	}
	digits, limit := text, uint64(math.MaxInt64)
	negative := text[0] == '-'
	if negative {
		digits, limit = text[1:], 1<<63
	}
	v, ok := decimal(digits, limit)
	if !integer || !ok || negative && v == 0 {
		s.fail("%s is no integer between %d and %d", text[:min(len(text), 32)], int64(math.MinInt64), int64(math.MaxInt64))
		return 0
	}
	if negative {
		return -int64(v) // -(1<<63) wraps to itself, which is the value meant
	}
	return int64(v)
}
