package wire

import "github.com/felixd/felixd/wire/id"

// Publishes that append at most once: numbered by their producer, or bound to an offset.

// ProducerInit asks for a producer id.
type ProducerInit struct{ RequestID uint64 }

// ProducerInitOK answers ProducerInit.
type ProducerInitOK struct {
	RequestID  uint64
	ProducerID uint64 // 64 random bits that the broker chose
}

// PublishIdempotent publishes several records as one numbered batch. It means the same as a binary publish with
// FlagPublishIdempotent, and is always answered: by PublishOK, PublishRefused or PublishError.
type PublishIdempotent struct {
	TenantID, Namespace, Stream string
	Records                     Region // the payloads, ready for the log
	Count                       uint32 // payloads in Records, filled while decoding
	Key                         Opt[[]byte]
	RequestID                   uint64
	ProducerID                  uint64
	Sequence                    uint64 // number of this batch of the producer on its shard, from 0
}

// PublishIf publishes several records if the first of them would get ExpectedOffset, needs FeaturePublishConditional.
// Check and append are one step. It is answered by PublishOK with an offset, PublishRefused, NotLeader or ErrorAnswer.
type PublishIf struct {
	TenantID, Namespace, Stream string
	Records                     Region      // the payloads, ready for the log
	Count                       uint32      // payloads in Records, filled while decoding
	Key                         Opt[[]byte] // unset: shard 0
	ExpectedOffset              id.Offset
	RequestID                   uint64
}

// Publish returns the message in the form of a binary publish. Key and Region are shared with the message, the names
// are copied. Flags are 0, so it is the kind of the request that tells that ProducerID and Sequence mean something.
func (m *PublishIdempotent) Publish() Publish {
	batch := PublishBatchMessage{m.TenantID, m.Namespace, m.Stream, m.Records, m.Count, m.Key, Some(m.RequestID), AckPerBatch}
	p := batch.Publish()
	p.ProducerID, p.Sequence = m.ProducerID, m.Sequence
	return p
}

// Publish returns the message in the form of a binary publish. Key and Region are shared with the message, the names
// are copied. The expected offset is not part of it.
func (m *PublishIf) Publish() Publish {
	batch := PublishBatchMessage{m.TenantID, m.Namespace, m.Stream, m.Records, m.Count, m.Key, Some(m.RequestID), AckPerBatch}
	return batch.Publish()
}

// MessageType returns "producer_init".
func (*ProducerInit) MessageType() string { return "producer_init" }

func (m *ProducerInit) fields(f *fields) { uintField(f, "request_id", &m.RequestID) }

// MessageType returns "producer_init_ok".
func (*ProducerInitOK) MessageType() string { return "producer_init_ok" }

func (m *ProducerInitOK) fields(f *fields) {
	uintField(f, "request_id", &m.RequestID)
	uintField(f, "producer_id", &m.ProducerID)
}

// MessageType returns "publish_idempotent".
func (*PublishIdempotent) MessageType() string { return "publish_idempotent" }

func (m *PublishIdempotent) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.payloads("payloads", &m.Records, &m.Count)
	f.routingKey("key", &m.Key)
	uintField(f, "request_id", &m.RequestID)
	uintField(f, "producer_id", &m.ProducerID)
	uintField(f, "sequence", &m.Sequence)
}

// MessageType returns "publish_if".
func (*PublishIf) MessageType() string { return "publish_if" }

func (m *PublishIf) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.payloads("payloads", &m.Records, &m.Count)
	f.routingKey("key", &m.Key)
	uintField(f, "expected_offset", &m.ExpectedOffset)
	uintField(f, "request_id", &m.RequestID)
}
