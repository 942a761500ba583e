package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// Events, broker to client, on an event stream. The parts in brackets are there when their flag is.
//
//	[event_batch u64 subscription_id]      not in the shared form
//	[offsets     u64 base_offset]          offset of payload 0; payload i is at base+i
//	[skipped     u64 skipped_before]       offsets just below base_offset that hold no event
//	[publisher   u8 n, n bytes]
//	 u32 count
//	 count times: [timestamps u64 micros]  u32 n, n bytes payload
//
// The shared form without timestamps ends in the stored region itself, which is why it is the normal one.

// EventBatch is a batch of events to be encoded.
type EventBatch struct {
	SubscriptionID  uint64    // written with FlagEventBatch
	HasOffset       bool      // BaseOffset means something; without it FlagEventOffsets must not be set
	BaseOffset      id.Offset // of the first payload, written with FlagEventOffsets
	SkippedBefore   uint64    // written with FlagEventSkipped
	Publisher       []byte    // at most MaxPublisherBytes, written with FlagEventPublisher
	Timestamps      bool      // TimestampMicros means something; without it FlagEventTimestamps must not be set
	TimestampMicros uint64    // append time of all events of the batch, microseconds since the Unix epoch
	Count           uint32    // payloads in Region
	Region          Region    // payloads only; timestamps are put between them while encoding
}

// AppendEventBatch appends the whole frame of e, in the form that flags name, to dst. Legal flags are those of
// CheckServerToClient with one of the two event bits; it panics on others, on flags that e has no value for, and on a
// publisher longer than MaxPublisherBytes.
func AppendEventBatch(dst []byte, flags Flags, e *EventBatch) []byte {
	checkEventBatch(flags, e)
	dst, start := beginFrame(dst, flags)
	dst = appendEventPrefix(dst, flags, e)
	if !flags.Has(FlagEventTimestamps) {
		return endFrame(append(dst, e.Region...), start)
	}
	for p, rest, ok := e.Region.Next(); ok; p, rest, ok = rest.Next() {
		dst = binary.BigEndian.AppendUint64(dst, e.TimestampMicros)
		dst = AppendPayload(dst, p)
	}
	return endFrame(dst, start)
}

func checkEventBatch(flags Flags, e *EventBatch) {
	if err := flags.CheckServerToClient(); err != nil || flags&eventBases == 0 {
		panic(fmt.Sprintf("wire: encode event batch: flags 0x%04x are no legal event batch", uint16(flags)))
	}
	if flags.Has(FlagEventOffsets) && !e.HasOffset || flags.Has(FlagEventTimestamps) && !e.Timestamps {
		panic(fmt.Sprintf("wire: encode event batch: flags 0x%04x ask for a value the batch does not have", uint16(flags)))
	}
}

// AppendEventHeader appends what stands in front of the region in the frame of e: those bytes and e.Region, sent one after the other,
// are what AppendEventBatch appends. It panics as that does, on FlagEventTimestamps, whose region is not the stored one, and on a region
// that does not fit a frame.
func AppendEventHeader(dst []byte, flags Flags, e *EventBatch) []byte {
	checkEventBatch(flags, e)
	if flags.Has(FlagEventTimestamps) {
		panic("wire: encode event header: timestamps stand between the payloads")
	}
	dst, start := beginFrame(dst, flags)
	dst = appendEventPrefix(dst, flags, e)
	length := uint64(len(dst)-start-HeaderSize) + uint64(len(e.Region))
	if length > 1<<32-1 {
		panic(fmt.Sprintf("wire: encode event header: region of %d bytes does not fit a frame", len(e.Region)))
	}
	PutHeader(dst[start:], Header{Flags: flags, Length: uint32(length)})
	return dst
}

// appendEventPrefix appends everything up to and with the count.
func appendEventPrefix(dst []byte, flags Flags, e *EventBatch) []byte {
	if flags.Has(FlagEventBatch) {
		dst = binary.BigEndian.AppendUint64(dst, e.SubscriptionID)
	}
	if flags.Has(FlagEventOffsets) {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.BaseOffset))
	}
	if flags.Has(FlagEventSkipped) {
		dst = binary.BigEndian.AppendUint64(dst, e.SkippedBefore)
	}
	if flags.Has(FlagEventPublisher) {
		if len(e.Publisher) > MaxPublisherBytes {
			panic(fmt.Sprintf("wire: encode event batch: publisher of %d bytes does not fit its u8 length", len(e.Publisher)))
		}
		dst = append(dst, byte(len(e.Publisher)))
		dst = append(dst, e.Publisher...)
	}
	return binary.BigEndian.AppendUint32(dst, e.Count)
}

// SharedEventHeaderSize is the length of what stands in front of the region in a plain shared event frame.
const SharedEventHeaderSize = HeaderSize + 4

// PutSharedEventHeader writes into b[:16] the frame header and count of the plain shared form (flags exactly 0x0004):
// those bytes followed by the region are a whole frame. It panics when b is shorter or regionLen does not fit a frame.
func PutSharedEventHeader(b []byte, count uint32, regionLen int) {
	if uint64(regionLen) > 1<<32-1-4 {
		panic(fmt.Sprintf("wire: encode event batch: region of %d bytes does not fit a frame", regionLen))
	}
	_ = b[SharedEventHeaderSize-1]
	PutHeader(b, Header{Flags: FlagEventBatchShared, Length: uint32(4 + regionLen)})
	binary.BigEndian.PutUint32(b[HeaderSize:], count)
}

// DecodedEvents is a decoded event batch. Its bytes are borrowed from the payload. Next iterates over its events.
type DecodedEvents struct {
	Flags          Flags     // which of the following are meaningful
	SubscriptionID uint64    // FlagEventBatch
	HasOffset      bool      // FlagEventOffsets
	BaseOffset     id.Offset // of the first event
	SkippedBefore  uint64    // FlagEventSkipped
	Publisher      []byte    // FlagEventPublisher
	Timestamps     bool      // FlagEventTimestamps
	Count          uint32    // events in the batch
	rest           []byte    // what Next has not returned yet: whole events and nothing else
}

// Next returns the next event; timestampMicros is 0 unless Timestamps is set. ok is false after the last one. The
// payload is borrowed.
func (d *DecodedEvents) Next() (payload []byte, timestampMicros uint64, ok bool) {
	if len(d.rest) == 0 {
		return nil, 0, false
	}
	if d.Timestamps {
		timestampMicros = binary.BigEndian.Uint64(d.rest)
		d.rest = d.rest[8:]
	}
	payload, rest, _ := Region(d.rest).Next()
	d.rest = rest
	return payload, timestampMicros, true
}

// DecodeEventBatch reads the payload of an event frame with the given flags. All events are checked before it
// returns, so Next cannot fail. The error is a *FlagsError or a *LayoutError.
func DecodeEventBatch(flags Flags, payload []byte) (DecodedEvents, error) {
	if err := flags.CheckServerToClient(); err != nil {
		return DecodedEvents{}, err
	}
	if flags&eventBases == 0 {
		return DecodedEvents{}, &FlagsError{Flags: flags, Bits: eventBases, Why: "an event batch needs one of them and none is set"}
	}
	d := DecodedEvents{Flags: flags, HasOffset: flags.Has(FlagEventOffsets), Timestamps: flags.Has(FlagEventTimestamps)}
	r := reader{rest: payload, layout: "event batch"}
	if flags.Has(FlagEventBatch) {
		d.SubscriptionID = r.u64("subscription_id")
	}
	if d.HasOffset {
		d.BaseOffset = id.Offset(r.u64("base_offset"))
	}
	if flags.Has(FlagEventSkipped) {
		d.SkippedBefore = r.u64("skipped_before")
	}
	if flags.Has(FlagEventPublisher) {
		d.Publisher = r.take("publisher", int(r.u8("publisher_len")))
	}
	d.Count = r.u32("count")
	if d.Timestamps {
		d.rest = r.stampedRegion(d.Count)
	} else {
		region, _ := r.region(d.Count)
		d.rest = region
	}
	if err := r.failure(); err != nil {
		return DecodedEvents{}, err
	}
	return d, nil
}

// stampedRegion checks count events with a timestamp each and returns exactly their bytes.
func (r *reader) stampedRegion(count uint32) []byte {
	const overhead = 8 + PayloadOverhead
	if uint64(count) > uint64(len(r.rest)/overhead) {
		r.fail("count", "%d stamped events cannot fit the %d bytes that follow", count, len(r.rest))
		return nil
	}
	all := r.rest
	for i := uint32(0); i < count && r.err == nil; i++ {
		r.u64("timestamp_micros")
		if n := r.u32("payload length"); uint64(n) <= uint64(len(r.rest)) {
			r.take("payload", int(n))
		} else {
			r.fail("payload", "event %d of %d announces %d bytes, %d are left", i, count, n, len(r.rest))
		}
	}
	if r.err != nil {
		return nil
	}
	return all[:len(all)-len(r.rest)]
}
