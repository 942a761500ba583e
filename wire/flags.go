package wire

import (
	"fmt"
	"strings"
)

// Flags is the bit set of a frame header: which layout the payload has and which optional parts it carries. A side
// sets only bits that the other side has advertised.
type Flags uint16

const (
	// FlagPublishBatch (client, base): a publish.
	FlagPublishBatch Flags = 0x0001
	// FlagEventBatch (broker, base): events of one subscription, its id in the payload.
	FlagEventBatch Flags = 0x0002
	// FlagEventBatchShared (broker, base): events without a subscription id, one encoding for all readers.
	FlagEventBatchShared Flags = 0x0004
	// FlagPublishAcked (client, on FlagPublishBatch): the publish wants an answer and carries a request id.
	FlagPublishAcked Flags = 0x0008
	// FlagPublishAck (broker, base): the answer to an acked publish.
	FlagPublishAck Flags = 0x0010
	// FlagEventOffsets (broker, on an event batch): the offset of the first event.
	FlagEventOffsets Flags = 0x0020
	// FlagPublishKeyed (client, on FlagPublishBatch): a routing key.
	FlagPublishKeyed Flags = 0x0040
	// FlagPublishAckOwner (broker, on FlagPublishAck): who owns the shard; the publish was forwarded.
	FlagPublishAckOwner Flags = 0x0080
	// FlagPublishIdempotent (client, on an acked publish): producer id and sequence.
	FlagPublishIdempotent Flags = 0x0100
	// FlagPublishAckCode (broker, on a failed ack): error code and retry class.
	FlagPublishAckCode Flags = 0x0200
	// FlagPublishAckDetail (broker, on FlagPublishAckCode): reason and pause.
	FlagPublishAckDetail Flags = 0x0400
	// FlagEventSkipped (broker, on FlagEventOffsets): how many offsets before the first event hold no event.
	FlagEventSkipped Flags = 0x0800
	// FlagPublishAckOffset (broker, on a successful ack): the offset of the first record.
	FlagPublishAckOffset Flags = 0x1000
	// FlagEventPublisher (broker, on an event batch): the principal that published.
	FlagEventPublisher Flags = 0x2000
	// FlagEventTimestamps (broker, on an event batch): the append time before every event.
	FlagEventTimestamps Flags = 0x4000

	// KnownFlags is every bit this version understands. A frame with another bit is refused, never masked.
	KnownFlags Flags = 0x7FFF
	// LegacyFlags is the frozen set of the first protocol version, kept for reference: felixd does not assume it of a
	// peer that advertised nothing (mission 186).
	LegacyFlags Flags = 0x0007

	eventBases = FlagEventBatch | FlagEventBatchShared
)

// flagNames in bit order, for error texts.
var flagNames = [...]string{
	"publish_batch", "event_batch", "event_batch_shared", "publish_acked", "publish_ack", "event_offsets",
	"publish_keyed", "publish_ack_owner", "publish_idempotent", "publish_ack_code", "publish_ack_detail",
	"event_skipped", "publish_ack_offset", "event_publisher", "event_timestamps", "reserved_0x8000",
}

// Has reports whether all of bits are set.
func (f Flags) Has(bits Flags) bool { return f&bits == bits }

// String lists the names of the bits, joined by "+"; "json" when none is set.
func (f Flags) String() string {
	if f == 0 {
		return "json"
	}
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// CheckClientToServer reports whether a client may send a frame with exactly these flags: 0 (JSON), or a publish
// batch with a legal set of modifiers. The error is a *FlagsError.
func (f Flags) CheckClientToServer() error {
	if err := f.checkKnown(); err != nil || f == 0 {
		return err
	}
	const legal = FlagPublishBatch | FlagPublishAcked | FlagPublishKeyed | FlagPublishIdempotent
	switch {
	case f&^legal != 0:
		return &FlagsError{Flags: f, Bits: f &^ legal, Why: "only a broker sends them"}
	case !f.Has(FlagPublishBatch):
		return &FlagsError{Flags: f, Bits: f, Why: "they modify a publish batch (0x0001), which is not set"}
	case f.Has(FlagPublishIdempotent) && !f.Has(FlagPublishAcked):
		return &FlagsError{Flags: f, Bits: FlagPublishIdempotent, Why: "an idempotent publish must be acked (0x0008)"}
	}
	return nil
}

// CheckServerToClient reports whether a broker may send a frame with exactly these flags: 0 (JSON), an answer to a
// publish, or an event batch, each with a legal set of modifiers. The error is a *FlagsError.
func (f Flags) CheckServerToClient() error {
	if err := f.checkKnown(); err != nil || f == 0 {
		return err
	}
	switch {
	case f.Has(FlagPublishAck):
		return f.checkAck()
	case f&eventBases != 0:
		return f.checkEvents()
	}
	return &FlagsError{Flags: f, Bits: f, Why: "no bit names a layout that a broker sends"}
}

func (f Flags) checkAck() error {
	const legal = FlagPublishAck | FlagPublishAckOwner | FlagPublishAckCode | FlagPublishAckDetail | FlagPublishAckOffset
	switch {
	case f&^legal != 0:
		return &FlagsError{Flags: f, Bits: f &^ legal, Why: "they do not belong to a publish ack"}
	case f.Has(FlagPublishAckDetail) && !f.Has(FlagPublishAckCode):
		return &FlagsError{Flags: f, Bits: FlagPublishAckDetail, Why: "a detail needs a code (0x0200)"}
	case f.Has(FlagPublishAckOffset) && f.Has(FlagPublishAckCode):
		return &FlagsError{Flags: f, Bits: FlagPublishAckOffset | FlagPublishAckCode, Why: "an offset belongs to success and a code to failure"}
	}
	return nil
}

func (f Flags) checkEvents() error {
	const legal = eventBases | FlagEventOffsets | FlagEventSkipped | FlagEventPublisher | FlagEventTimestamps
	switch {
	case f&^legal != 0:
		return &FlagsError{Flags: f, Bits: f &^ legal, Why: "they do not belong to an event batch"}
	case f.Has(eventBases):
		return &FlagsError{Flags: f, Bits: eventBases, Why: "a batch is either shared or of one subscription"}
	case f.Has(FlagEventSkipped) && !f.Has(FlagEventOffsets):
		return &FlagsError{Flags: f, Bits: FlagEventSkipped, Why: "skipped offsets need a base offset (0x0020)"}
	}
	return nil
}

func (f Flags) checkKnown() error {
	if unknown := f &^ KnownFlags; unknown != 0 {
		return &FlagsError{Flags: f, Bits: unknown, Unknown: true, Why: "they are not known to this version and were never offered"}
	}
	return nil
}

// FlagsError is a frame whose flags are unknown or do not go together. Its payload has no known layout; the frame
// boundary is still good, so the payload may be skipped and the frame answered invalid_request.
type FlagsError struct {
	Flags   Flags  // all flags of the frame
	Bits    Flags  // those that are wrong
	Unknown bool   // Bits are outside KnownFlags, rather than a wrong combination
	Why     string // the rule they break
}

func (e *FlagsError) Error() string {
	return fmt.Sprintf("read frame: flags 0x%04x: refuse bits 0x%04x (%s): %s", uint16(e.Flags), uint16(e.Bits), e.Bits, e.Why)
}
