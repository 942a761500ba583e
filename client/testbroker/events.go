package testbroker

import (
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// log is one shard of a stream.
type log struct {
	mu      sync.Mutex
	records [][]byte
	more    chan struct{} // closed and replaced with each append
}

func newLogs(shards uint32) []*log {
	logs := make([]*log, shards)
	for i := range logs {
		logs[i] = &log{more: make(chan struct{})}
	}
	return logs
}

func (l *log) append(r wire.Region) (first int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = len(l.records)
	for p, rest, ok := r.Next(); ok; p, rest, ok = rest.Next() {
		l.records = append(l.records, p)
	}
	close(l.more)
	l.more = make(chan struct{})
	return first
}

// Append adds records to a shard of a stream, "namespace/stream", as a publish would, and returns the position of the first.
func (b *Broker) Append(stream string, shard uint32, records wire.Region) (first int) {
	return b.logs[stream][shard].append(records)
}

// after returns up to n records from a position, and a channel that tells when there are more.
func (l *log) after(at, n int) ([][]byte, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.records[at:min(at+n, len(l.records))], l.more
}

func (l *log) end() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

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
	at := l.end()
	switch m.Start.V.Kind {
	case wire.StartEarliest:
		at = 0
	case wire.StartOffset:
		if m.Start.V.Offset > id.Offset(at) {
			s.Send(&wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: m.Start.V.Offset, Available: id.Offset(at)})
			return
		}
		at = int(m.Start.V.Offset)
	}
	e := s.OpenEvents()
	if e.stream == nil {
		return
	}
	answer := &wire.Subscribed{SubscriptionID: e.ID}
	if b.options.Durable {
		answer.StartOffset, answer.LiveOffset = wire.Some(id.Offset(at)), wire.Some(id.Offset(l.end()))
	}
	if m.QueueCapacity.Set {
		answer.QueueCapacity = wire.Some(min(m.QueueCapacity.V, wire.SubscriberQueueCapacityMax))
	}
	s.Send(answer)
	b.work.Go(func() { b.deliver(e, l, at, s.Grant) })
}

// deliver writes what the log has and gets, until the client stops the stream. A client that does not read holds it up.
func (b *Broker) deliver(e *Events, l *log, at int, grant wire.Grant) {
	flags := wire.FlagEventBatchShared
	if b.options.Durable && grant.Flags.Has(wire.FlagEventOffsets) {
		flags |= wire.FlagEventOffsets
	}
	for {
		records, more := l.after(at, orDefault(b.options.BatchSize, wire.EventBatchMaxEvents))
		if len(records) == 0 {
			select {
			case <-more:
				continue
			case <-e.stream.Context().Done():
				return
			}
		}
		batch := wire.EventBatch{HasOffset: b.options.Durable, BaseOffset: id.Offset(at), Count: uint32(len(records))}
		for _, r := range records {
			batch.Region = wire.AppendPayload(batch.Region, r)
		}
		if !e.Raw(wire.AppendEventBatch(nil, flags, &batch)) {
			return
		}
		at += len(records)
	}
}
