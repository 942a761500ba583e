package main

import (
	"fmt"
	"strings"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// outcome is what an answer says of a write.
type outcome struct {
	acked   bool
	offset  wire.Opt[id.Offset]
	refused bool                // nothing was written, for certain; neither this nor acked: nobody knows
	reason  *wire.RefusedReason // why, of a numbered or conditional one
	why     *wire.Refusal
}

// judge reads the answer to a write that was sent under an id.
func (r *drun) judge(requestID uint64, got answer) (o outcome, err error) {
	answered := requestID
	switch m := got.message.(type) {
	case nil:
		answered, o.acked = got.ack.RequestID, got.refusal == nil
		o.offset = wire.Opt[id.Offset]{V: got.ack.Offset, Set: got.ack.HasOffset}
	case *wire.PublishOK:
		answered, o.acked, o.offset = m.RequestID, true, m.Offset
	case *wire.CommitOK:
		answered, o.acked, o.offset = m.RequestID, true, wire.Some(m.Offset)
	case *wire.PublishRefused:
		answered, o.refused, o.reason = m.RequestID, true, &m.Reason
	case *wire.PublishError:
		answered = m.RequestID
	case *wire.ErrorAnswer:
	default:
		return o, fmt.Errorf("answered %s", got)
	}
	if answered != requestID {
		return o, fmt.Errorf("answered under id %d, want %d", answered, requestID)
	}
	if f := got.refusal; f != nil {
		o.why = f
		o.refused = f.Code != wire.CodeUnknown && f.Retry != wire.RetryOutcomeUnknown
		r.countRefusal(f, o.refused)
	}
	return o, nil
}

func (r *drun) countRefusal(f *wire.Refusal, definite bool) {
	switch {
	case definite && strings.Contains(f.Message, "no space left"):
		r.marks.hit(dmarkFull)
	case f.Code == wire.CodeStorage && !definite:
		r.marks.hit(dmarkWriteFailed)
	case !definite:
		r.marks.hit(dmarkUnknown)
	}
}
