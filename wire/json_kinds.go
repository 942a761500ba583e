package wire

import (
	"encoding/base64"
	"math"
)

// The kinds of members. Each method reads or writes one member, see fields.

const unlimited = math.MaxInt // bounded by the payload alone

// unsigned is every integer type of the protocol.
type unsigned interface{ ~uint16 | ~uint32 | ~uint64 }

// str is a string of at most limit bytes.
func (f *fields) str(name string, limit int, v *string) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = appendString(f.out, *v)
		return
	}
	*v = f.scanner.string(limit)
}

// optStr is an optional string of at most limit bytes.
func (f *fields) optStr(name string, limit int, v *Opt[string]) {
	switch {
	case !f.at(name, may):
	case f.pass == writing:
		if v.Set {
			f.put(name)
			f.out = appendString(f.out, v.V)
		}
	case f.null():
		*v = Opt[string]{}
	default:
		*v = Some(f.scanner.string(limit))
	}
}

// uintField is an integer in the range of its type.
func uintField[T unsigned](f *fields, name string, v *T) {
	if !f.at(name, must) {
		return
	}
	switch f.pass {
	case writing:
		f.put(name)
		f.out = appendUint(f.out, uint64(*v))
	case asking:
		f.requestID = Some(uint64(*v))
	default:
		*v = T(f.scanner.uint(uint64(^T(0))))
	}
}

// optUint is an optional integer in the range of its type.
func optUint[T unsigned](f *fields, name string, v *Opt[T]) {
	switch {
	case !f.at(name, may):
	case f.pass == writing:
		if v.Set {
			f.put(name)
			f.out = appendUint(f.out, uint64(v.V))
		}
	case f.pass == asking:
		f.requestID = Opt[uint64]{V: uint64(v.V), Set: v.Set}
	case f.null():
		*v = Opt[T]{}
	default:
		*v = Some(T(f.scanner.uint(uint64(^T(0)))))
	}
}

// nullUint is an optional integer that senders write as null when it is not there.
func nullUint[T unsigned](f *fields, name string, v *Opt[T]) {
	if f.pass == writing && !v.Set {
		f.put(name)
		f.out = append(f.out, "null"...)
		return
	}
	optUint(f, name, v)
}

// bytes is a base64 string.
func (f *fields) bytes(name string, v *[]byte) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = appendBase64String(f.out, *v)
		return
	}
	*v = f.scanner.bytes()
}

// optBytes is an optional base64 string.
func (f *fields) optBytes(name string, v *Opt[[]byte]) {
	if f.pass == writing && !v.Set {
		return
	}
	f.bytesOrNull(name, may, v)
}

// nullBytes is a base64 string or null; the member itself is required.
func (f *fields) nullBytes(name string, v *Opt[[]byte]) { f.bytesOrNull(name, must, v) }

func (f *fields) bytesOrNull(name string, need required, v *Opt[[]byte]) {
	switch {
	case !f.at(name, need):
	case f.pass == writing:
		f.put(name)
		if v.Set {
			f.out = appendBase64String(f.out, v.V)
		} else {
			f.out = append(f.out, "null"...)
		}
	case f.null():
		*v = Opt[[]byte]{}
	default:
		*v = Some(f.scanner.bytes())
	}
}

// payload is one base64 string, kept as a region of one record so that it can go to the log as it is.
func (f *fields) payload(name string, v *Region) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		p, _, _ := v.Next()
		f.out = appendBase64String(f.out, p)
		return
	}
	start := f.pos
	raw, _ := f.raw()
	f.pos = start
	if f.err == nil {
		*v = f.appendRecord(make(Region, 0, PayloadOverhead+base64.StdEncoding.DecodedLen(len(raw))))
	}
}

// appendRecord consumes a base64 string and appends it to the region.
func (f *fields) appendRecord(r Region) Region {
	start := len(r)
	r = append(r, 0, 0, 0, 0)
	r = f.appendBase64(r)
	n := len(r) - start - PayloadOverhead
	r[start], r[start+1], r[start+2], r[start+3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return r
}

// payloads is an array of base64 strings, kept as a region. The text is walked twice: first to know how much the region
// takes at most, so that it is allocated once and by what is there.
func (f *fields) payloads(name string, v *Region, count *uint32) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = appendPayloads(f.out, *v)
		return
	}
	start, room := f.pos, 0
	for f.nextElement(f.pos == start) {
		raw, _ := f.raw()
		room += PayloadOverhead + base64.StdEncoding.DecodedLen(len(raw))
	}
	if f.err != nil {
		return
	}
	f.pos = start
	region, n := make(Region, 0, room), uint32(0)
	for f.nextElement(n == 0) {
		region = f.appendRecord(region)
		n++
	}
	*v, *count = region, n
}

func appendPayloads(dst []byte, r Region) []byte {
	dst = append(dst, '[')
	first := true
	for p, rest, ok := r.Next(); ok; p, rest, ok = rest.Next() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendBase64String(dst, p)
	}
	return append(dst, ']')
}

// names T,N and one more name.
func (f *fields) names(tenant, namespace *string, third string, v *string) {
	f.name3(0, "tenant_id", tenant)
	f.name3(1, "namespace", namespace)
	f.name3(2, third, v)
}

// name3 is the i-th of three names. One that is that of the last message shares its memory.
func (f *fields) name3(i int, name string, v *string) {
	switch {
	case !f.at(name, must):
	case f.pass == writing:
		f.put(name)
		f.out = appendString(f.out, *v)
	default:
		text := f.text(MaxNameBytes)
		if f.known == nil {
			*v = string(text)
			return
		}
		if f.known[i] != string(text) {
			f.known[i] = string(text)
		}
		*v = f.known[i]
	}
}
