package sessionactor

import (
	"encoding/base64"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// shape is how one subscriber's events are encoded: what it negotiated decides. Records of ephemeral streams have no
// offsets, so none are sent.
type shape struct {
	shared  bool // the plain shared form, which batches carry ready made
	json    bool
	skipped bool // it reads how many offsets hold no event
	flags   wire.Flags
	id      uint64
	name    route.Name
	most    *Delivery // of one frame
}

func shapeFor(g wire.Grant, id uint64, entry *shardactor.Entry, most *Delivery) shape {
	s := shape{id: id, name: entry.Name, most: most}
	switch {
	case g.Flags.Has(wire.FlagEventBatchShared):
		s.flags = wire.FlagEventBatchShared
	case g.Flags.Has(wire.FlagEventBatch):
		s.flags = wire.FlagEventBatch
	default: // who reads no binary events was granted no offsets either
		s.json = true
		return s
	}
	if entry.Durable {
		s.flags |= g.Flags & wire.FlagEventOffsets
		s.skipped = g.Flags.Has(wire.FlagEventSkipped)
	}
	s.flags |= g.Flags & wire.FlagEventTimestamps
	s.shared = s.flags == wire.FlagEventBatchShared
	return s
}

// event is what the frames of a batch have in common, and the place of the first of them.
func (s *shape) event(b *batch.Batch, skipped uint64) wire.EventBatch {
	return wire.EventBatch{SubscriptionID: s.id, HasOffset: true, BaseOffset: b.Base, SkippedBefore: skipped, Timestamps: true, TimestampMicros: b.AppendMicros}
}

// cut takes from a region of count records what goes into the next frame.
func (s *shape) cut(r wire.Region, count uint32) (head wire.Region, n uint32, rest wire.Region) {
	if count == 1 || int64(count) <= int64(s.most.MaxEvents) && len(r) <= s.most.MaxBytes {
		return r, count, nil
	}
	return r.Cut(s.most.MaxEvents, s.most.MaxBytes)
}

// fits reports whether a frame can hold the event: as JSON a record of more than about 12 MiB exceeds what one may hold.
func (s *shape) fits(e *wire.EventBatch) bool {
	return !s.json || base64.StdEncoding.EncodedLen(len(e.Region))+jsonEventOverhead <= wire.MaxPayload
}

// apart reports whether a frame is a header and the region as it is stored.
func (s *shape) apart() bool { return !s.json && !s.flags.Has(wire.FlagEventTimestamps) }

func (s *shape) header(dst []byte, e *wire.EventBatch) []byte {
	return wire.AppendEventHeader(dst, s.flagsOf(e), e)
}

// append encodes a whole frame.
func (s *shape) append(dst []byte, e *wire.EventBatch) []byte {
	if s.json {
		return wire.AppendJSONFrame(dst, &wire.EventBatchMessage{TenantID: s.name.Tenant, Namespace: s.name.Namespace, Stream: s.name.Name, Records: e.Region, Count: e.Count})
	}
	return wire.AppendEventBatch(dst, s.flagsOf(e), e)
}

// flagsOf adds what only some frames say.
func (s *shape) flagsOf(e *wire.EventBatch) wire.Flags {
	if s.skipped && e.SkippedBefore > 0 {
		return s.flags | wire.FlagEventSkipped
	}
	return s.flags
}

// jsonEventOverhead is more than an event_batch message of one record has around its payload, in bytes.
const jsonEventOverhead = 4 << 10
