package wire

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/felixd/felixd/wire/id"
)

// An answer to an acked publish, broker to client. The parts in brackets are there when their flag is.
//
//	 u8 status (0 ok, 1 refused)   u64 request_id   u16 n, n bytes message (n is 0 on ok)
//	[code    u16 code, u8 retry]                    refused only
//	[detail  u16 n, reason, u64 retry_after_ms]     refused only
//	[owner   u16 n, node_id, u16 n, addr, u64 generation]
//	[offset  u64 offset]                            ok only

const (
	ackOK      = 0
	ackRefused = 1
)

// Owner says which broker owns the shard of a forwarded publish. It is advice: the client may send later publishes of
// that shard there.
type Owner struct {
	NodeID     string        // at most MaxNameBytes
	Addr       string        // "IP:port" of its client listener; empty when it published none
	Generation id.Generation // of the assignment; a lower one never replaces a higher one
}

// PublishAck is the answer to one acked publish.
type PublishAck struct {
	RequestID uint64
	Refusal   *Refusal  // nil: written
	HasOffset bool      // Offset is known; never together with Refusal
	Offset    id.Offset // of the first record of the batch
	Owner     *Owner    // the publish was forwarded to it; nil when it was not
}

// AppendPublishAck appends the whole frame of the answer to a binary publish, with the optional parts that grant
// allows. A client that cannot read binary acks gets the JSON answer (mission 186). Answers to JSON publishes and to
// idempotent ones are always JSON: use AppendPublishAnswer for those.
func AppendPublishAck(dst []byte, a *PublishAck, grant Grant) []byte {
	if !grant.Flags.Has(FlagPublishAck) {
		return AppendPublishAnswer(dst, a, grant)
	}
	flags := a.ackFlags(grant)
	dst, start := beginFrame(dst, flags)
	if a.Refusal != nil {
		dst = a.appendRefused(dst, flags)
	} else {
		dst = append(dst, ackOK)
		dst = binary.BigEndian.AppendUint64(dst, a.RequestID)
		dst = append(dst, 0, 0)
	}
	if flags.Has(FlagPublishAckOwner) {
		dst = append16(dst, "owner node_id", a.Owner.NodeID)
		dst = append16(dst, "owner addr", a.Owner.Addr)
		dst = binary.BigEndian.AppendUint64(dst, uint64(a.Owner.Generation))
	}
	if flags.Has(FlagPublishAckOffset) {
		dst = binary.BigEndian.AppendUint64(dst, uint64(a.Offset))
	}
	return endFrame(dst, start)
}

// ackFlags picks the parts: what there is to say, as far as the client can read it.
func (a *PublishAck) ackFlags(grant Grant) Flags {
	flags := FlagPublishAck
	if a.Owner != nil {
		flags |= FlagPublishAckOwner
	}
	switch r := a.Refusal; {
	case r == nil && a.HasOffset:
		flags |= FlagPublishAckOffset
	case r != nil && r.sent() != CodeUnknown:
		flags |= FlagPublishAckCode
		if (r.Reason != "" || r.RetryAfterMS != 0) && grant.Flags.Has(FlagPublishAckCode) {
			flags |= FlagPublishAckDetail
		}
	}
	return flags & (grant.Flags | FlagPublishAck)
}

// appendRefused appends status, request id, message and what flags say of code and detail.
func (a *PublishAck) appendRefused(dst []byte, flags Flags) []byte {
	r := a.Refusal
	dst = append(dst, ackRefused)
	dst = binary.BigEndian.AppendUint64(dst, a.RequestID)
	dst = append16(dst, "message", cutText(r.Message))
	if flags.Has(FlagPublishAckCode) {
		dst = binary.BigEndian.AppendUint16(dst, r.sent().binaryNumber())
		dst = append(dst, byte(r.class()))
	}
	if flags.Has(FlagPublishAckDetail) {
		dst = append16(dst, "reason", cutText(r.Reason))
		dst = binary.BigEndian.AppendUint64(dst, r.RetryAfterMS)
	}
	return dst
}

// AppendPublishAnswer appends the JSON frame of the answer, publish_ok or publish_error. The offset is named only to
// a client that offered FlagPublishAckOffset, code and detail only to one that offered FeatureErrorCodes.
func AppendPublishAnswer(dst []byte, a *PublishAck, grant Grant) []byte {
	if a.Refusal != nil {
		return AppendJSONFrame(dst, &PublishError{RequestID: a.RequestID, Failure: FailureOf(*a.Refusal, grant)})
	}
	ok := PublishOK{RequestID: a.RequestID}
	if a.HasOffset && grant.Flags.Has(FlagPublishAckOffset) {
		ok.Offset = Some(a.Offset)
	}
	return AppendJSONFrame(dst, &ok)
}

// DecodePublishAck reads the payload of a frame with the given flags. Texts are copied. A refusal that came without a
// code has CodeUnknown and no class. The error is a *FlagsError or a *LayoutError.
func DecodePublishAck(flags Flags, payload []byte) (PublishAck, error) {
	if err := flags.CheckServerToClient(); err != nil {
		return PublishAck{}, err
	}
	if !flags.Has(FlagPublishAck) {
		return PublishAck{}, &FlagsError{Flags: flags, Bits: FlagPublishAck, Why: "a publish ack needs it and it is not set"}
	}
	r := reader{rest: payload, layout: "publish ack"}
	status := r.u8("status")
	a := PublishAck{RequestID: r.u64("request_id")}
	message := r.lossyText("message")
	checkAckStatus(&r, status, flags, message)
	if status == ackRefused {
		a.Refusal = &Refusal{Message: message}
	}
	if flags.Has(FlagPublishAckCode) {
		readAckCode(&r, flags, a.Refusal)
	}
	if flags.Has(FlagPublishAckOwner) {
		a.Owner = &Owner{
			NodeID:     string(r.text16("owner node_id", MaxNameBytes)),
			Addr:       string(r.text16("owner addr", MaxNameBytes)),
			Generation: id.Generation(r.u64("owner generation")),
		}
	}
	if flags.Has(FlagPublishAckOffset) {
		a.HasOffset, a.Offset = true, id.Offset(r.u64("offset"))
	}
	if err := r.failure(); err != nil {
		return PublishAck{}, err
	}
	return a, nil
}

// checkAckStatus refuses what the flags cannot tell apart: they say which parts follow, the status says what happened.
func checkAckStatus(r *reader, status uint8, flags Flags, message string) {
	switch {
	case status != ackOK && status != ackRefused:
		r.fail("status", "%d is neither 0 (ok) nor 1 (refused)", status)
	case status == ackOK && message != "":
		r.fail("message", "an ok carries none, this one has %d bytes", len(message))
	case status == ackOK && flags.Has(FlagPublishAckCode):
		r.fail("status", "ok, but the flags announce an error code")
	case status == ackRefused && flags.Has(FlagPublishAckOffset):
		r.fail("status", "refused, but the flags announce an offset")
	}
}

// readAckCode fills code, class, reason and pause. refusal is nil only after a mistake, when nothing is read.
func readAckCode(r *reader, flags Flags, refusal *Refusal) {
	if refusal == nil || r.err != nil {
		return
	}
	refusal.Code = codeOf(r.u16("code"))
	refusal.Retry = retryOf(r.u8("retry"))
	if flags.Has(FlagPublishAckDetail) {
		refusal.Reason = r.lossyText("reason")
		refusal.RetryAfterMS = r.u64("retry_after_ms")
	}
}

// lossyText reads a u16 length and a text, in which bytes that are no UTF-8 become question marks: prose of a peer is
// worth keeping.
func (r *reader) lossyText(field string) string {
	b := r.bytes16(field)
	if utf8.Valid(b) {
		return string(b)
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}
