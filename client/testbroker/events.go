package testbroker

import (
	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Events is an event stream.
type Events struct {
	ID     uint64
	stream *quic.SendStream
}

// OpenEvents opens an event stream with a new id and says hello on it.
func (s *Stream) OpenEvents() *Events {
	e := s.OpenEventsSilently()
	e.Send(&wire.EventStreamHello{SubscriptionID: e.ID})
	return e
}

// OpenEventsSilently opens an event stream with a new id and leaves the hello to the test.
func (s *Stream) OpenEventsSilently() *Events {
	s.Broker.mu.Lock()
	s.Broker.lastSub++
	e := &Events{ID: s.Broker.lastSub}
	s.Broker.mu.Unlock()
	stream, err := s.Conn.OpenUniStreamSync(s.Conn.Context())
	if err == nil {
		e.stream = stream
	}
	return e
}

// Send writes a message.
func (e *Events) Send(m wire.Message) { e.Raw(wire.AppendJSONFrame(nil, m)) }

// Batch writes events in the layout that flags name.
func (e *Events) Batch(flags wire.Flags, b wire.EventBatch) {
	e.Raw(wire.AppendEventBatch(nil, flags, &b))
}

// Raw writes bytes; false when the client no longer wants them.
func (e *Events) Raw(b []byte) bool {
	if e.stream == nil {
		return false
	}
	_, err := e.stream.Write(b)
	return err == nil
}

// Finish ends the stream in order.
func (e *Events) Finish() { _ = e.stream.Close() }

// Reset breaks the stream off.
func (e *Events) Reset() { e.stream.CancelWrite(9) }

// Stopped is closed when the client stopped the stream or the connection ended.
func (e *Events) Stopped() <-chan struct{} { return e.stream.Context().Done() }

// Region makes the body of a batch.
func Region(payloads ...string) wire.Region {
	var r wire.Region
	for _, p := range payloads {
		r = wire.AppendPayload(r, []byte(p))
	}
	return r
}

func (b *Broker) subscribe(s *Stream, m *wire.Subscribe) {
	logs := b.logs[m.Namespace+"/"+m.Stream]
	switch {
	case len(logs) == 0:
		s.Refuse(wire.Refuse(wire.CodeNotFound, "stream "+m.Stream+" is not known here"))
		return
	case int(m.Shard.V) >= len(logs):
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "the stream has no such shard"))
		return
	case m.Start.V.Kind == wire.StartOffset && !b.options.Durable:
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "an in-memory stream has no offsets to start at"))
		return
	}
	l := logs[m.Shard.V]
	base, at := l.bounds()
	switch m.Start.V.Kind {
	case wire.StartEarliest:
		at = base
	case wire.StartOffset:
		if refused := l.cursor(m.Start.V.Offset); refused != nil {
			s.Send(refused)
			return
		}
		at = m.Start.V.Offset
	}
	e := s.OpenEvents()
	if e.stream == nil {
		return
	}
	answer := &wire.Subscribed{SubscriptionID: e.ID}
	if b.options.Durable {
		_, tail := l.bounds()
		answer.StartOffset, answer.LiveOffset = wire.Some(at), wire.Some(tail)
	}
	if m.QueueCapacity.Set {
		answer.QueueCapacity = wire.Some(min(m.QueueCapacity.V, wire.SubscriberQueueCapacityMax))
	}
	s.Send(answer)
	b.work.Go(func() { b.deliver(e, l, at, s.Grant) })
}

// deliver writes what the log has and gets, until the client stops the stream. A client that does not read holds it up; one
// that retention overtook has lagged.
func (b *Broker) deliver(e *Events, l *log, at id.Offset, grant wire.Grant) {
	for {
		records, skipped, more, gone := l.next(at, orDefault(b.options.BatchSize, wire.EventBatchMaxEvents))
		if gone {
			e.Send(&wire.SubscriptionLagged{SubscriptionID: e.ID, ResumeFrom: at})
			e.Finish()
			return
		}
		if len(records) == 0 {
			select {
			case <-more:
				continue
			case <-e.stream.Context().Done():
				return
			}
		}
		if !e.Raw(b.encode(records, skipped, grant)) {
			return
		}
		at = records[len(records)-1].offset.Add(1)
	}
}

// encode makes one frame of records with consecutive offsets.
func (b *Broker) encode(records []record, skipped uint64, grant wire.Grant) []byte {
	flags := wire.FlagEventBatchShared
	batch := wire.EventBatch{HasOffset: b.options.Durable, BaseOffset: records[0].offset, Count: uint32(len(records))}
	if b.options.Durable {
		flags |= grant.Flags & (wire.FlagEventOffsets | wire.FlagEventTimestamps)
		if skipped > 0 && grant.Flags.Has(wire.FlagEventSkipped) {
			flags |= wire.FlagEventSkipped
			batch.SkippedBefore = skipped
		}
	}
	if flags.Has(wire.FlagEventTimestamps) {
		batch.Timestamps = true
		batch.TimestampMicros = uint64(records[0].at.UnixMicro())
	}
	for _, r := range records {
		batch.Region = wire.AppendPayload(batch.Region, r.payload)
	}
	return wire.AppendEventBatch(nil, flags, &batch)
}
