package client

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// take makes a frame the current batch. An error is the end of the subscription.
func (s *Subscription) take(header wire.Header, payload []byte) error {
	if header.Flags == 0 {
		return s.takeMessage(payload)
	}
	events, err := wire.DecodeEventBatch(header.Flags, payload)
	if err != nil {
		return &ProtocolError{Op: s.op, What: fmt.Sprintf("a frame with flags 0x%04x", uint16(header.Flags)), Err: err}
	}
	if header.Flags.Has(wire.FlagEventBatch) && events.SubscriptionID != s.events.id {
		return &ProtocolError{Op: s.op, What: fmt.Sprintf("events of subscription %d on the stream of %d", events.SubscriptionID, s.events.id)}
	}
	s.batch = batch{binary: events, hasOffset: events.HasOffset, next: events.BaseOffset, skipped: events.SkippedBefore, publisher: string(events.Publisher)}
	return nil
}

// takeRegion makes the payloads of a JSON message the current batch.
func (s *Subscription) takeRegion(region wire.Region, base wire.Opt[id.Offset]) {
	s.batch = batch{region: region, hasOffset: base.Set, next: base.V}
}

// takeMessage reads a JSON frame: events for a client without binary ones, or the reason of the end.
func (s *Subscription) takeMessage(payload []byte) error {
	m, err := wire.DecodeJSON(payload)
	if err != nil {
		return &ProtocolError{Op: s.op, What: "a message that does not decode", Err: err}
	}
	switch m := m.(type) {
	case *wire.EventMessage:
		s.takeRegion(m.Record, m.Offset)
		return nil
	case *wire.EventBatchMessage:
		s.takeRegion(m.Records, m.BaseOffset)
		return nil
	case *wire.ShardMoved:
		return &ShardMovedError{Op: s.op, ResumeFrom: m.ResumeFrom, NodeID: m.NodeID.V, Addr: m.Addr.V, Generation: m.Generation}
	case *wire.SubscriptionLagged:
		return &SubscriptionLaggedError{Op: s.op, ResumeFrom: m.ResumeFrom}
	}
	return refusalOf(s.op, m)
}

// batch is a frame of events that were not all handed out yet: either the rest of a binary frame, whose bytes are
// borrowed from the frame reader, or of a JSON one.
type batch struct {
	binary wire.DecodedEvents
	region wire.Region

	hasOffset bool
	next      id.Offset // of the next event
	skipped   uint64    // before the next event
	publisher string
}

// pop hands out the next event of the current batch.
func (s *Subscription) pop() (Event, bool) {
	b := &s.batch
	payload, micros, ok := b.binary.Next()
	if !ok {
		payload, b.region, ok = b.region.Next()
	}
	if !ok {
		return Event{}, false
	}
	e := Event{
		Payload: append([]byte{}, payload...), Shard: s.shard,
		HasOffset: b.hasOffset, SkippedBefore: b.skipped, Publisher: b.publisher,
	}
	if b.hasOffset {
		e.Offset = b.next
		b.next = b.next.Add(1)
	}
	if b.binary.Timestamps {
		e.Time = time.UnixMicro(int64(micros))
	}
	b.skipped = 0 // it is said of the first event
	return e, true
}
