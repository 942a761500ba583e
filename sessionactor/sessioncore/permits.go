package sessioncore

import (
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Released returns the permits, in bytes, that came free since the last call.
func (s *Stream) Released() int {
	n := s.released
	s.released = 0
	return n
}

// Outcome is what some requests for one shard gave back with their outcome.
type Outcome struct {
	Shard           id.ShardID
	Requests, Bytes int
}

// Admitted notes that an open request was let through to a shard and counts there until its outcome.
func (s *Stream) Admitted(t Token, shard id.ShardID) {
	sl := s.open.get(t)
	sl.admitted, sl.shard = true, shard
}

// Outcomes lists the admitted requests that have got their outcome since the last call; valid until the next call of Settle. Those
// that follow each other for one shard are one.
func (s *Stream) Outcomes() []Outcome {
	list := s.outcomes
	if s.outcomes = list[:0]; cap(list) > outcomesKept {
		s.outcomes = nil
	}
	return list
}

// outcomesKept is for how many shards in turn an idle stream keeps room: requests of one stream mostly go to one.
const outcomesKept = 4

// noteOutcome adds an admitted request to the outcomes.
func (s *Stream) noteOutcome(shard id.ShardID, bytes int) {
	if n := len(s.outcomes); n > 0 && s.outcomes[n-1].Shard == shard {
		s.outcomes[n-1].Requests++
		s.outcomes[n-1].Bytes += bytes
		return
	}
	s.outcomes = append(s.outcomes, Outcome{Shard: shard, Requests: 1, Bytes: bytes})
}

// Bytes is what an open request that is not parked holds in permits.
func (s *Stream) Bytes(t Token) int { return s.open.get(t).bytes }

// Lighten makes an open request hold no permits any more: its frame is let go of. It is for requests that may wait for long and count
// elsewhere, so that they take nothing from others' frames meanwhile. Not for one that counts in the admission.
func (s *Stream) Lighten(t Token) {
	sl := s.open.get(t)
	if sl.admitted {
		panic("sessioncore: a request was let in with more bytes than it is to hold")
	}
	s.held -= sl.bytes
	s.released += sl.bytes
	sl.bytes = 0
}

// Park does the same to a request that counts elsewhere with so many bytes until its outcome: see Unparked.
func (s *Stream) Park(t Token, bytes int) {
	s.Lighten(t)
	sl := s.open.get(t)
	sl.bytes, sl.parked = bytes, true
}

// Unparked returns how many parked requests got their outcome since the last call, and with how many bytes they counted.
func (s *Stream) Unparked() (requests, bytes int) {
	requests, bytes = s.unparked, s.unparkedBytes
	s.unparked, s.unparkedBytes = 0, 0
	return requests, bytes
}

// Asked is the message of an open request of the kind Ask.
func (s *Stream) Asked(t Token) wire.Message { return s.open.get(t).message }
