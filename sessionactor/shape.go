package sessionactor

import (
	"encoding/base64"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// shape is how one subscriber's events are encoded: what it negotiated decides. Records of ephemeral streams have no
// offsets, so none are sent.
type shape struct {
	shared bool // the plain shared form, which every batch carries ready made
	json   bool
	flags  wire.Flags
	id     uint64
	name   route.Name
	most   *Delivery // of one frame
}

func shapeFor(g wire.Grant, id uint64, name route.Name, most *Delivery) shape {
	s := shape{id: id, name: name, most: most}
	switch {
	case g.Flags.Has(wire.FlagEventBatchShared):
		s.flags = wire.FlagEventBatchShared
	case g.Flags.Has(wire.FlagEventBatch):
		s.flags = wire.FlagEventBatch
	default:
		s.json = true
		return s
	}
	if g.Flags.Has(wire.FlagEventTimestamps) {
		s.flags |= wire.FlagEventTimestamps
	}
	s.shared = s.flags == wire.FlagEventBatchShared
	return s
}

// append encodes a batch for this subscriber alone, in frames of the usual size. lost counts records that have no frame: as
// JSON a record of more than about 12 MiB exceeds what a frame may hold.
func (s *shape) append(dst []byte, b *batch.Batch) (out []byte, lost uint32) {
	for rest := wire.Region(b.Body); len(rest) > 0; {
		var part wire.Region
		var count uint32
		part, count, rest = rest.Cut(s.most.MaxEvents, s.most.MaxBytes)
		if s.json && base64.StdEncoding.EncodedLen(len(part))+jsonEventOverhead > wire.MaxPayload {
			lost += count
			continue
		}
		if s.json {
			dst = wire.AppendJSONFrame(dst, &wire.EventBatchMessage{TenantID: s.name.Tenant, Namespace: s.name.Namespace, Stream: s.name.Name, Records: part, Count: count})
			continue
		}
		e := wire.EventBatch{SubscriptionID: s.id, Count: count, Region: part}
		if s.flags.Has(wire.FlagEventTimestamps) {
			e.Timestamps, e.TimestampMicros = true, b.AppendMicros
		}
		dst = wire.AppendEventBatch(dst, s.flags, &e)
	}
	return dst, lost
}

// jsonEventOverhead is more than an event_batch message of one record has around its payload, in bytes.
const jsonEventOverhead = 4 << 10
