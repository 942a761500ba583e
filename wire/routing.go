package wire

// Routing is how a stream maps keys to shards. It is fixed when the stream is created; caches always use modulo.
type Routing uint8

const (
	// RoutingModulo takes the hash modulo the number of shards. It is the default.
	RoutingModulo Routing = iota
	// RoutingJumpHash is the jump consistent hash of Lamping and Veach ("A Fast, Minimal Memory, Consistent Hash
	// Algorithm", 2014), seeded with the same hash.
	RoutingJumpHash
)

// String returns the name on the wire: "modulo" or "jump_hash".
func (r Routing) String() string {
	if r == RoutingJumpHash {
		return "jump_hash"
	}
	return "modulo"
}

// ParseRouting is the inverse of String; false for any other name.
func ParseRouting(name string) (Routing, bool) {
	switch name {
	case "modulo":
		return RoutingModulo, true
	case "jump_hash":
		return RoutingJumpHash, true
	}
	return RoutingModulo, false
}

// KeyHash is the hash by which every client and broker picks the shard of a key: 64-bit FNV-1a, then the finaliser of
// SplitMix64, because FNV alone leaves the low bits of similar keys too much alike for a modulo.
func KeyHash(key []byte) uint64 {
	const (
		fnvOffset = 0xcbf29ce484222325
		fnvPrime  = 0x100000001b3
	)
	h := uint64(fnvOffset)
	for _, b := range key {
		h = (h ^ uint64(b)) * fnvPrime
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Shard returns the shard of a record, in 0..shards-1. A record without a key goes to shard 0; an empty key is a key
// and is hashed. 0 or 1 shards give 0.
func (r Routing) Shard(key []byte, keyed bool, shards uint32) uint32 {
	if !keyed || shards <= 1 {
		return 0
	}
	h := KeyHash(key)
	if r == RoutingJumpHash {
		return jump(h, shards)
	}
	return uint32(h % uint64(shards))
}

// jump follows the random walk of the paper: from bucket b the next bucket is b+1 divided by a fraction drawn from
// the seed. The order of the two floating-point operations is part of the protocol.
func jump(seed uint64, shards uint32) uint32 {
	var b, j int64
	for b = -1; j < int64(shards); {
		b = j
		seed = seed*2862933555777941757 + 1
		step := float64(1<<31) / float64(seed>>33+1)
		j = int64(float64(b+1) * step)
	}
	return uint32(b)
}
