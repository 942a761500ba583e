package sessioncore

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// refusedText is the prose of publish_refused.
func refusedText(r *wire.RefusedReason) string {
	switch r.Kind {
	case wire.RefusedSequenceGap:
		return fmt.Sprintf("the sequence is past the next one, which is %d; send that first", r.Expected)
	case wire.RefusedUnknownProducer:
		return "the producer is not known to the shard, and its sequence does not begin at 0; ask for a new producer id"
	case wire.RefusedSequenceExpired:
		return "the sequence is older than what the shard remembers; whether its batch was appended cannot be told any more"
	case wire.RefusedSequenceReused:
		return "the sequence was used for other payloads; nothing was appended"
	case wire.RefusedNotLeader:
		return "another broker serves the shard; send the batch there under the same sequence"
	case wire.RefusedOffsetMismatch:
		return fmt.Sprintf("the next offset of the shard is %d; nothing was appended", r.Tail)
	}
	return "nothing was appended"
}

// appendRefused writes why a numbered or conditional publish was not appended. A client that cannot read publish_refused, or not this
// reason, gets a fatal error with the reason's name: the one thing it must not get is publish_ok for what was not stored.
func (s *Stream) appendRefused(dst []byte, sl *slot, r *wire.RefusedReason) []byte {
	text := refusedText(r)
	if sl.form == formMessage { // publish_if and commit: who sends them reads the answer
		return wire.AppendJSONFrame(dst, &wire.PublishRefused{RequestID: wire.RequestIDOf(sl.message).V, Reason: *r, Message: text})
	}
	readable := s.grant.Features.Has(wire.FeatureIdempotentProducer) && (r.Kind != wire.RefusedSequenceReused || s.grant.Features.Has(wire.FeatureSequenceReused))
	if !readable {
		f := wire.Refuse(wire.CodeInvalidRequest, text).WithReason(r.Kind.String(), 0)
		if r.Kind == wire.RefusedNotLeader {
			f = wire.Refuse(wire.CodeNotLeader, text)
		}
		return wire.AppendPublishAnswer(dst, s.publishAck(sl, Answer{Refusal: &f}), s.grant)
	}
	return wire.AppendJSONFrame(dst, &wire.PublishRefused{RequestID: sl.requestID.V, Reason: *r, Message: text})
}
