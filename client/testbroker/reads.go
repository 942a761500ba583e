package testbroker

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Page bounds of stream_read.
const (
	pageRecords = 100
	pageBytes   = 4 << 20
)

// shardLog finds a shard of a durable stream, or refuses the request.
func (b *Broker) shardLog(s *Stream, namespace, stream string, shard uint32) *log {
	logs := b.logs[namespace+"/"+stream]
	switch {
	case len(logs) == 0:
		s.Refuse(wire.Refuse(wire.CodeNotFound, "stream "+stream+" is not known here"))
	case !b.options.Durable:
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "an in-memory stream has no log"))
	case int(shard) >= len(logs):
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "the stream has no such shard"))
	default:
		return logs[shard]
	}
	return nil
}

func (b *Broker) read(s *Stream, m *wire.StreamRead) {
	l := b.shardLog(s, m.Namespace, m.Stream, m.Shard)
	if l == nil {
		return
	}
	if refused := l.cursor(m.From); refused != nil {
		s.Send(refused)
		return
	}
	s.Send(l.page(m))
}

// page is what one read returns. Its next offset is past the holes behind its last record, but never past the end asked for.
func (l *log) page(m *wire.StreamRead) *wire.StreamRecords {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.tail
	if m.End.Set {
		end = min(end, m.End.V)
	}
	answer := &wire.StreamRecords{RequestID: m.RequestID, NextOffset: max(end, m.From)}
	most, bytes := uint32(pageRecords), uint64(pageBytes)
	if m.MaxRecords > 0 {
		most = min(most, m.MaxRecords)
	}
	if m.MaxBytes > 0 {
		bytes = min(bytes, m.MaxBytes)
	}
	var taken uint64
	for _, r := range l.records[l.find(m.From):] {
		if r.offset >= end {
			break
		}
		if n := len(answer.Records); n > 0 && (uint32(n) == most || taken+uint64(len(r.payload)) > bytes) {
			answer.NextOffset = r.offset
			break
		}
		taken += uint64(len(r.payload))
		answer.Records = append(answer.Records, wire.StreamRecord{
			Offset: r.offset, Payload: r.payload, Publisher: wire.Some("tester"), TimestampMicros: uint64(r.at.UnixMicro()),
		})
	}
	return answer
}

func (b *Broker) offsetForTime(s *Stream, m *wire.OffsetForTime) {
	l := b.shardLog(s, m.Namespace, m.Stream, m.Shard)
	if l == nil {
		return
	}
	s.Send(&wire.OffsetValue{RequestID: m.RequestID, Offset: l.since(time.UnixMicro(int64(m.AtMicros)))})
}

// since is the first record appended at or after a time.
func (l *log) since(at time.Time) wire.Opt[id.Offset] {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if !r.at.Before(at) {
			return wire.Some(r.offset)
		}
	}
	return wire.Opt[id.Offset]{}
}
