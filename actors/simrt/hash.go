package simrt

// Hash is a running digest of 64 bits over what it is given, in order. The zero value is ready. It is for telling runs apart, not against
// anybody who wants two runs to look the same.
type Hash uint64

// The multipliers are two odd numbers with about half of their bits set, the first of them the one of FNV-1a for 64 bits.
const (
	hashStart = 14695981039346656037
	hashFirst = 1099511628211
	hashMix   = 0x9e3779b97f4a7c15
)

// Add takes numbers.
func (h *Hash) Add(values ...uint64) {
	x := uint64(*h)
	for _, v := range values {
		x = mix(x ^ v)
	}
	*h = Hash(x)
}

// Text takes a string and its length.
func (h *Hash) Text(s string) {
	x := uint64(*h) ^ hashStart
	for i := range len(s) {
		x = (x ^ uint64(s[i])) * hashFirst
	}
	*h = Hash(mix(x ^ uint64(len(s))))
}

// Bytes takes the bytes of p and their number.
func (h *Hash) Bytes(p []byte) {
	x, n := uint64(*h)^hashStart, len(p)
	for ; len(p) >= 8; p = p[8:] {
		v := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
			uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
		x = (x^v)*hashMix ^ x>>29
	}
	for _, b := range p {
		x = (x ^ uint64(b)) * hashFirst
	}
	*h = Hash(mix(x ^ uint64(n)))
}

// mix spreads every bit of x over the whole word.
func mix(x uint64) uint64 {
	x = (x ^ x>>32) * hashMix
	x = (x ^ x>>29) * hashFirst
	return x ^ x>>32
}
