package sessioncore

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// Digest is the state of the stream in 64 bits, for a simulation's trace: streams that took and settled the same have equal digests. What
// was asked is in it by its kind, request id and size; what the token allows is not.
func (s *Stream) Digest() uint64 {
	h := fnv.New64a()
	var buf [8]byte
	add := func(values ...uint64) {
		for _, v := range values {
			binary.LittleEndian.PutUint64(buf[:], v)
			_, _ = h.Write(buf[:]) // a hash takes everything
		}
	}
	add(uint64(s.role), uint64(s.phase), uint64(s.window), uint64(s.grant.Flags), uint64(s.grant.Features), uint64(s.open.first), uint64(s.open.count))
	for i := range s.open.count {
		sl := s.open.at(i)
		add(uint64(sl.form), uint64(sl.kind), sl.requestID.V, uint64(sl.bytes), bit(sl.parked), bit(sl.settled), uint64(len(sl.answer)))
		_, _ = h.Write(sl.answer)
	}
	for i := range s.overdue {
		add(uint64(s.overdue[i].token), uint64(s.overdue[i].bytes))
	}
	add(uint64(len(s.out)), uint64(s.waiting), uint64(s.sending), uint64(s.held), uint64(s.released), uint64(s.cost), uint64(s.dropped), bit(s.draining))
	add(uint64(s.unparked), uint64(s.unparkedBytes))
	_, _ = h.Write(s.out)
	_, _ = io.WriteString(h, s.Ended())
	return h.Sum64()
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
