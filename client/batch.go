package client

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// batch is a frame of events that were not all handed out yet. Its bytes belong to the events.
type batch struct {
	binary wire.DecodedEvents // either the rest of a binary frame
	region wire.Region        // or of a JSON one

	shard     uint32
	count     uint32 // events in the frame
	bytes     int    // of the frame's payload
	hasOffset bool
	next      id.Offset // of the next event
	skipped   uint64    // before the next event
	gap       bool      // before the next event
	publisher string
}

// pop hands out the next event.
func (b *batch) pop() (Event, bool) {
	payload, micros, ok := b.binary.Next()
	if !ok {
		payload, b.region, ok = b.region.Next()
	}
	if !ok {
		return Event{}, false
	}
	e := Event{
		Payload: payload, Shard: b.shard, HasOffset: b.hasOffset, SkippedBefore: b.skipped, Gap: b.gap, Publisher: b.publisher,
	}
	if b.hasOffset {
		e.Offset = b.next
		b.next = b.next.Add(1)
	}
	if b.binary.Timestamps {
		e.Time = time.UnixMicro(int64(micros))
	}
	b.skipped, b.gap = 0, false // they are said of the first event
	return e, true
}

// decodeEvents makes a batch of a frame of an event stream. What is no events is an error: the reason of the stream's end.
func decodeEvents(op string, subscription uint64, header wire.Header, payload []byte) (batch, error) {
	if header.Flags == 0 {
		return decodeMessage(op, payload)
	}
	events, err := wire.DecodeEventBatch(header.Flags, payload)
	if err != nil {
		return batch{}, &ProtocolError{Op: op, What: fmt.Sprintf("a frame with flags 0x%04x", uint16(header.Flags)), Err: err}
	}
	if header.Flags.Has(wire.FlagEventBatch) && events.SubscriptionID != subscription {
		return batch{}, &ProtocolError{Op: op, What: fmt.Sprintf("events of subscription %d on the stream of %d", events.SubscriptionID, subscription)}
	}
	return batch{
		binary: events, count: events.Count, bytes: len(payload), hasOffset: events.HasOffset, next: events.BaseOffset,
		skipped: events.SkippedBefore, publisher: string(events.Publisher),
	}, nil
}

// decodeMessage reads a JSON frame: events for a client without binary ones, or the reason of the end.
func decodeMessage(op string, payload []byte) (batch, error) {
	m, err := wire.DecodeJSON(payload)
	if err != nil {
		return batch{}, &ProtocolError{Op: op, What: "a message that does not decode", Err: err}
	}
	switch m := m.(type) {
	case *wire.EventMessage:
		return regionBatch(m.Record, m.Offset, len(payload)), nil
	case *wire.EventBatchMessage:
		return regionBatch(m.Records, m.BaseOffset, len(payload)), nil
	case *wire.ShardMoved:
		return batch{}, movedError(op, m)
	case *wire.SubscriptionLagged:
		return batch{}, &SubscriptionLaggedError{Op: op, ResumeFrom: m.ResumeFrom}
	}
	return batch{}, refusalOf(op, m)
}

func movedError(op string, m *wire.ShardMoved) error {
	return &ShardMovedError{Op: op, ResumeFrom: m.ResumeFrom, NodeID: m.NodeID.V, Addr: m.Addr.V, Generation: m.Generation}
}

func regionBatch(region wire.Region, base wire.Opt[id.Offset], bytes int) batch {
	return batch{region: region, count: region.Count(), bytes: bytes, hasOffset: base.Set, next: base.V}
}
