package wire

import "github.com/felixd/felixd/wire/id"

// Reading a bounded piece of a stream, without a subscription.

// OffsetForTime asks for the first record appended at or after a time, needs FeatureRecordTimestamps.
type OffsetForTime struct {
	TenantID, Namespace, Stream string
	Shard                       uint32
	AtMicros                    uint64 // microseconds since the Unix epoch
	RequestID                   uint64
}

// OffsetValue answers OffsetForTime.
type OffsetValue struct {
	Offset    Opt[id.Offset] // unset: no record that can be read is that recent
	RequestID uint64
}

// StreamRead asks for the committed records From..End-1, needs FeatureStreamRead. It never waits.
type StreamRead struct {
	TenantID, Namespace, Stream string
	Shard                       uint32
	From                        id.Offset
	End                         Opt[id.Offset] // one past the last record wanted; unset: the tail
	MaxRecords                  uint32         // 0: as many as the broker gives at once
	MaxBytes                    uint64         // payload bytes, 0: as many as the broker gives at once
	RequestID                   uint64
}

// StreamRecords answers StreamRead.
type StreamRecords struct {
	Records    []StreamRecord
	NextOffset id.Offset // where to read on
	RequestID  uint64
}

// StreamRecord is one record of a StreamRecords.
type StreamRecord struct {
	Offset          id.Offset
	Payload         []byte
	Publisher       Opt[string] // principal, at most MaxPublisherBytes
	TimestampMicros uint64      // append time, microseconds since the Unix epoch
}

// MessageType returns "offset_for_time".
func (*OffsetForTime) MessageType() string { return "offset_for_time" }

func (m *OffsetForTime) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	uintField(f, "shard", &m.Shard)
	uintField(f, "at_micros", &m.AtMicros)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "offset_value".
func (*OffsetValue) MessageType() string { return "offset_value" }

func (m *OffsetValue) fields(f *fields) {
	optUint(f, "offset", &m.Offset)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "stream_read".
func (*StreamRead) MessageType() string { return "stream_read" }

func (m *StreamRead) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	uintField(f, "shard", &m.Shard)
	uintField(f, "from", &m.From)
	optUint(f, "end", &m.End)
	defUint(f, "max_records", &m.MaxRecords)
	defUint(f, "max_bytes", &m.MaxBytes)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "stream_records".
func (*StreamRecords) MessageType() string { return "stream_records" }

func (m *StreamRecords) fields(f *fields) {
	f.streamRecords("records", &m.Records)
	uintField(f, "next_offset", &m.NextOffset)
	uintField(f, "request_id", &m.RequestID)
}

func (r *StreamRecord) fields(f *fields) {
	uintField(f, "offset", &r.Offset)
	f.bytes("payload", &r.Payload)
	f.optStr("publisher", MaxPublisherBytes, &r.Publisher)
	uintField(f, "timestamp_micros", &r.TimestampMicros)
}

const leastStreamRecord = len(`{"offset":0,"payload":"","timestamp_micros":0},`)

func (f *fields) streamRecords(name string, v *[]StreamRecord) {
	if !f.array(name, must) {
		return
	}
	if f.pass == reading {
		*v = make([]StreamRecord, 0, f.room(leastStreamRecord, unlimited))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, StreamRecord{})
		}
		for o := f.object("records."); f.more(&o); {
			(*v)[i].fields(f)
		}
	}
}
