package shardactor

// Digest is the state of the shard's core in 64 bits, for a simulation's trace. Call it where Receive may be called.
func (s *Shard) Digest() uint64 { return s.core.Digest() }
