package sessioncore

import (
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Answer is the outcome of a request.
type Answer struct {
	// Refusal is nil when it was done.
	Refusal *wire.Refusal
	// Message answers a request of the kind Ask, ready to be sent.
	Message wire.Message
	// Frame is the same as a whole frame, for a message that takes long to encode. It is borrowed.
	Frame []byte
	// Refused, when not nil, is why a numbered or conditional publish was not appended. Refusal is nil then.
	Refused *wire.RefusedReason
	// HasOffset and Offset are where a publish begins, on streams that have a log.
	HasOffset bool
	Offset    id.Offset
	// Found and Value answer a cache request without Message: what a get read or a delete removed. Value is borrowed.
	Found bool
	Value []byte
	// Applied says that a conditional cache write was done. HasVersion and Version are the version that it wrote, or that the key has; or
	// that of what a get found.
	Applied    bool
	HasVersion bool
	Version    id.Offset
	// Sum is a counter with what was added.
	Sum int64
}

// Settle gives a request its outcome. Answers that are due now are in Out, permits that came free in Released. A token
// that is not open is a broken invariant: somebody answered twice.
func (s *Stream) Settle(t Token, a Answer) {
	sl := s.open.get(t)
	if sl == nil || sl.settled {
		panic(fmt.Sprintf("sessioncore: request %d was answered twice", t))
	}
	if sl.parked {
		s.unparked++
		s.unparkedBytes += sl.bytes
	} else {
		s.held -= sl.bytes
		s.released += sl.bytes
	}
	if sl.admitted {
		s.noteOutcome(sl.shard, sl.bytes)
	}
	s.respond(t, sl, a)
}

// respond encodes the answer to an open request, and lets what is due by that move to Out.
func (s *Stream) respond(t Token, sl *slot, a Answer) {
	sl.settled = true
	if t != s.open.first {
		sl.answer = s.encode(nil, sl, a)
		s.waiting += len(sl.answer)
		sl.message, sl.unsupported = nil, nil
		return
	}
	s.out = s.encode(s.out, sl, a)
	s.open.pop()
	for s.open.count > 0 && s.open.at(0).settled {
		s.out = append(s.out, s.open.at(0).answer...)
		s.waiting -= len(s.open.at(0).answer)
		s.open.pop()
	}
}

// Abandon is for a stream or connection that is gone: nobody will read an answer. What is open stays so, with its permits,
// until its outcome: a client must not get rid of what it holds by going away.
func (s *Stream) Abandon(why string) {
	s.gone = true
	s.released += s.cost
	s.cost = 0
	s.out, s.waiting, s.sending = nil, 0, 0
	for i := range s.open.count {
		s.open.at(i).answer = nil
	}
	s.End(why)
}

// IsOpen reports whether the request still waits for its outcome.
func (s *Stream) IsOpen(t Token) bool {
	sl := s.open.get(t)
	return sl != nil && !sl.settled
}

// encode writes an answer in the form its request calls for, with nothing in it that the client did not offer.
func (s *Stream) encode(dst []byte, sl *slot, a Answer) []byte {
	if s.role == wire.RolePublishOnly || s.gone {
		return dst
	}
	if a.Refused != nil && sl.form != formSilent {
		return s.appendRefused(dst, sl, a.Refused)
	}
	switch sl.form {
	case formSilent:
		return dst
	case formBinaryAck:
		return wire.AppendPublishAck(dst, s.publishAck(sl, a), s.grant)
	case formPublishAns:
		return wire.AppendPublishAnswer(dst, s.publishAck(sl, a), s.grant)
	}
	if a.Refusal != nil {
		return wire.AppendJSONFrame(dst, s.errorAnswer(*a.Refusal))
	}
	if a.Frame != nil {
		return append(dst, a.Frame...)
	}
	if a.Message != nil {
		return wire.AppendJSONFrame(dst, a.Message)
	}
	return s.appendDone(dst, sl.message, a)
}

// appendDone writes that a request of the form message was done; to a cache request it repeats what was asked.
func (s *Stream) appendDone(dst []byte, asked wire.Message, a Answer) []byte {
	value := wire.Opt[[]byte]{V: a.Value, Set: a.Found}
	version := wire.Opt[uint64]{V: uint64(a.Version), Set: a.HasVersion}
	switch m := asked.(type) {
	case *wire.PublishIf: // the offset is the point of it, and every client that asks reads it
		return wire.AppendJSONFrame(dst, &wire.PublishOK{RequestID: m.RequestID, Offset: wire.Opt[id.Offset]{V: a.Offset, Set: a.HasOffset}})
	case *wire.Commit:
		return wire.AppendJSONFrame(dst, &wire.CommitOK{RequestID: m.RequestID, Offset: a.Offset})
	case *wire.CachePut:
		if !m.RequestID.Set {
			return wire.AppendJSONFrame(dst, &wire.OK{})
		}
		return wire.AppendJSONFrame(dst, &wire.CacheOK{RequestID: m.RequestID.V})
	case *wire.CacheGet:
		version.Set = version.Set && a.Found && s.grant.Features.Has(wire.FeatureCacheConditional)
		return wire.AppendJSONFrame(dst, &wire.CacheValue{TenantID: m.TenantID, Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, Value: value, RequestID: m.RequestID, Version: version})
	case *wire.CacheDelete:
		return wire.AppendJSONFrame(dst, &wire.CacheValue{TenantID: m.TenantID, Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, Value: value, RequestID: m.RequestID})
	case *wire.CachePutIf:
		return wire.AppendJSONFrame(dst, &wire.CacheConditionResult{Applied: a.Applied, Version: version, RequestID: m.RequestID})
	case *wire.CacheDeleteIf:
		return wire.AppendJSONFrame(dst, &wire.CacheConditionResult{Applied: a.Applied, Version: version, RequestID: m.RequestID})
	case *wire.CounterAdd:
		return wire.AppendJSONFrame(dst, &wire.CounterValue{Value: wire.Some(a.Sum), RequestID: m.RequestID})
	}
	panic(fmt.Sprintf("sessioncore: no answer for %T", asked))
}

func (s *Stream) publishAck(sl *slot, a Answer) *wire.PublishAck {
	ack := &wire.PublishAck{RequestID: sl.requestID.V, Refusal: a.Refusal}
	if a.Refusal == nil {
		ack.HasOffset, ack.Offset = a.HasOffset, a.Offset
	}
	return ack
}

// errorAnswer is the message error, with a code only for a client that reads codes.
func (s *Stream) errorAnswer(f wire.Refusal) wire.Message {
	return wire.ErrorOf(f, s.grant)
}

// Silent reports whether an open request gets no answer whatever becomes of it.
func (s *Stream) Silent(t Token) bool {
	sl := s.open.get(t)
	return sl != nil && sl.form == formSilent
}
