package keyed

import (
	"encoding/binary"
	"math/bits"
)

// hasher is a seeded hash of keys. Who doesn't know the seed can't choose keys that meet in one place of the table.
type hasher struct{ a, b uint64 }

// Odd numbers with about as many ones as zeros; nothing depends on which.
const (
	mixLength = 0x9e3779b97f4a7c15
	mixFirst  = 0xd6e8feb86659fd93
	mixSecond = 0xa0761d6478bd642f
)

func newHasher(seed uint64) hasher {
	return hasher{a: mix(seed^mixFirst, mixLength), b: mix(seed^mixSecond, mixFirst) | 1}
}

// mix is the high and the low half of a product, joined: each bit of the result depends on most bits of both.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// tag is the part of a key's hash that the table goes by.
func (h hasher) tag(key []byte) uint32 {
	le := binary.LittleEndian
	x, p := h.a, key
	for len(p) > 16 {
		x = mix(le.Uint64(p)^h.b, le.Uint64(p[8:])^x)
		p = p[16:]
	}
	var v, w uint64
	switch n := len(p); {
	case n >= 8:
		v, w = le.Uint64(p), le.Uint64(p[n-8:])
	case n >= 4:
		v, w = uint64(le.Uint32(p)), uint64(le.Uint32(p[n-4:]))
	case n > 0:
		v = uint64(p[0]) | uint64(p[n/2])<<8 | uint64(p[n-1])<<16
	}
	x = mix(v^h.b, w^x)
	return uint32(mix(x^h.a, uint64(len(key))*mixLength^h.b) >> 32)
}
