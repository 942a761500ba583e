package wire

import (
	"encoding/binary"
	"fmt"
)

// A publish, client to broker. The parts in brackets are there when their flag is.
//
//	[acked      u64 request_id, u8 ack_mode]       request_id is always the first 8 bytes
//	[idempotent u64 producer_id, u64 sequence]
//	[keyed      u16 n, n bytes key]
//	 u16 n, tenant   u16 n, namespace   u16 n, stream
//	 u32 count       region of count payloads

// AckMode says whether, and at which grain, a publisher wants an answer. The broker answers both kinds once per batch.
type AckMode uint8

const (
	// AckNone wants no answer, not even to a mistake.
	AckNone AckMode = 0
	// AckPerMessage is what a client asks for that publishes one record at a time.
	AckPerMessage AckMode = 1
	// AckPerBatch asks for one answer for the whole batch.
	AckPerBatch AckMode = 2
)

// String returns the name of the mode in JSON messages: "none", "per_message" or "per_batch".
func (m AckMode) String() string {
	switch m {
	case AckNone:
		return "none"
	case AckPerMessage:
		return "per_message"
	case AckPerBatch:
		return "per_batch"
	}
	return fmt.Sprintf("ack_mode_%d", uint8(m))
}

// ParseAckMode is the inverse of String for the three modes; false for any other name.
func ParseAckMode(name string) (AckMode, bool) {
	for m := AckNone; m <= AckPerBatch; m++ {
		if m.String() == name {
			return m, true
		}
	}
	return AckNone, false
}

// Publish is one publish, however it was encoded. All byte fields of a decoded one are borrowed from the payload.
type Publish struct {
	Flags        Flags   // of its frame; 0 for one that did not come in a binary frame
	RequestID    uint64  // echoed in the answer
	HasRequestID bool    // an answer can name this publish
	Ack          AckMode // AckNone: never answer
	ProducerID   uint64  // FlagPublishIdempotent
	Sequence     uint64  // FlagPublishIdempotent: number of this batch, from 0
	Keyed        bool    // route by Key; an empty key is a key
	Key          []byte  // at most MaxKeyBytes
	Tenant       []byte  // UTF-8, at most MaxNameBytes, like the next two
	Namespace    []byte
	Stream       []byte
	Count        uint32 // payloads in Region; 0 is legal
	Region       Region // the payloads, as the log stores them
	PayloadBytes int    // sum of the payload lengths
}

// Decode reads the payload of a frame with the given flags into p, replacing all of it. It allocates nothing unless it
// fails. The error is a *FlagsError or a *LayoutError; even then RequestID is filled whenever an acked frame has the
// 8 bytes, so that the mistake can be answered under its id.
func (p *Publish) Decode(flags Flags, payload []byte) error {
	*p = Publish{Flags: flags}
	if flags.Has(FlagPublishBatch|FlagPublishAcked) && len(payload) >= 8 {
		p.RequestID, p.HasRequestID = binary.BigEndian.Uint64(payload), true
	}
	if err := flags.CheckClientToServer(); err != nil {
		return err
	}
	if !flags.Has(FlagPublishBatch) {
		return &FlagsError{Flags: flags, Bits: FlagPublishBatch, Why: "a publish needs it and it is not set"}
	}
	r := reader{rest: payload, layout: "publish"}
	if flags.Has(FlagPublishAcked) {
		p.readAcked(&r)
	}
	if flags.Has(FlagPublishKeyed) {
		p.Keyed, p.Key = true, r.bytes16("key")
	}
	p.Tenant = r.text16("tenant_id", MaxNameBytes)
	p.Namespace = r.text16("namespace", MaxNameBytes)
	p.Stream = r.text16("stream", MaxNameBytes)
	p.Count = r.u32("count")
	p.Region, p.PayloadBytes = r.region(p.Count)
	return r.failure()
}

// readAcked reads what only acked publishes have. An idempotent batch is one unit with one sequence, so a per-message
// answer to it would mean nothing and is refused.
func (p *Publish) readAcked(r *reader) {
	r.u64("request_id")
	p.Ack = AckMode(r.u8("ack_mode"))
	if p.Ack != AckPerMessage && p.Ack != AckPerBatch {
		r.fail("ack_mode", "%d is neither 1 (per_message) nor 2 (per_batch)", uint8(p.Ack))
	}
	if !p.Flags.Has(FlagPublishIdempotent) {
		return
	}
	if p.Ack != AckPerBatch {
		r.fail("ack_mode", "an idempotent publish needs 2 (per_batch)")
	}
	p.ProducerID = r.u64("producer_id")
	p.Sequence = r.u64("sequence")
}

// AppendPublish appends the whole frame of p to dst. Its parts follow from p.Flags, or, when those are 0, from Ack and
// Keyed (an idempotent publish has to name its flags). Count and Region are taken as they are. It panics on flags that
// no client may send and on fields too long for the layout.
func AppendPublish(dst []byte, p *Publish) []byte {
	flags := p.frameFlags()
	dst, start := beginFrame(dst, flags)
	if flags.Has(FlagPublishAcked) {
		dst = binary.BigEndian.AppendUint64(dst, p.RequestID)
		dst = append(dst, byte(p.Ack))
	}
	if flags.Has(FlagPublishIdempotent) {
		dst = binary.BigEndian.AppendUint64(dst, p.ProducerID)
		dst = binary.BigEndian.AppendUint64(dst, p.Sequence)
	}
	if flags.Has(FlagPublishKeyed) {
		dst = append16(dst, "key", p.Key)
	}
	dst = append16(dst, "tenant_id", p.Tenant)
	dst = append16(dst, "namespace", p.Namespace)
	dst = append16(dst, "stream", p.Stream)
	dst = binary.BigEndian.AppendUint32(dst, p.Count)
	return endFrame(append(dst, p.Region...), start)
}

// frameFlags returns the flags to encode p with.
func (p *Publish) frameFlags() Flags {
	flags := p.Flags
	if flags == 0 {
		flags = FlagPublishBatch
		if p.Ack != AckNone {
			flags |= FlagPublishAcked
		}
		if p.Keyed {
			flags |= FlagPublishKeyed
		}
	}
	if flags.CheckClientToServer() != nil || !flags.Has(FlagPublishBatch) {
		panic(fmt.Sprintf("wire: encode publish: flags 0x%04x are no legal publish", uint16(flags)))
	}
	return flags
}
