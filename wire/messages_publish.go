package wire

import "github.com/felixd/felixd/wire/id"

// Publishing in JSON, for clients without binary frames. The Go names end in Message where the plain name is that of
// the binary form.

// PublishMessage publishes one record.
type PublishMessage struct {
	TenantID, Namespace, Stream string
	Record                      Region      // the payload as a region of exactly one record, ready for the log
	Key                         Opt[[]byte] // at most MaxKeyBytes
	RequestID                   Opt[uint64] // needed when Ack asks for an answer
	Ack                         AckMode
}

// PublishBatchMessage publishes several records under one key.
type PublishBatchMessage struct {
	TenantID, Namespace, Stream string
	Records                     Region // the payloads, ready for the log
	Count                       uint32 // payloads in Records
	Key                         Opt[[]byte]
	RequestID                   Opt[uint64]
	Ack                         AckMode
}

// PublishOK answers one acked publish that was taken.
type PublishOK struct {
	RequestID uint64
	Offset    Opt[id.Offset] // of the first record; only to clients that offered FlagPublishAckOffset
}

// Publish returns the message in the form of a binary publish, so that both take one way from there. Key and Region
// are shared with the message, the names are copied.
func (m *PublishMessage) Publish() Publish {
	batch := PublishBatchMessage{m.TenantID, m.Namespace, m.Stream, m.Record, 1, m.Key, m.RequestID, m.Ack}
	return batch.Publish()
}

// Publish returns the message in the form of a binary publish. Key and Region are shared with the message, the names
// are copied.
func (m *PublishBatchMessage) Publish() Publish {
	return Publish{
		RequestID: m.RequestID.V, HasRequestID: m.RequestID.Set, Ack: m.Ack,
		Keyed: m.Key.Set, Key: m.Key.V,
		Tenant: []byte(m.TenantID), Namespace: []byte(m.Namespace), Stream: []byte(m.Stream),
		Count: m.Count, Region: m.Records, PayloadBytes: len(m.Records) - int(m.Count)*PayloadOverhead,
	}
}

// MessageType returns "publish".
func (*PublishMessage) MessageType() string { return "publish" }

func (m *PublishMessage) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.payload("payload", &m.Record)
	f.routingKey("key", &m.Key)
	optUint(f, "request_id", &m.RequestID)
	f.ack("ack", &m.Ack)
}

// MessageType returns "publish_batch".
func (*PublishBatchMessage) MessageType() string { return "publish_batch" }

func (m *PublishBatchMessage) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.payloads("payloads", &m.Records, &m.Count)
	f.routingKey("key", &m.Key)
	optUint(f, "request_id", &m.RequestID)
	f.ack("ack", &m.Ack)
}

// MessageType returns "publish_ok".
func (*PublishOK) MessageType() string { return "publish_ok" }

func (m *PublishOK) fields(f *fields) {
	uintField(f, "request_id", &m.RequestID)
	optUint(f, "offset", &m.Offset)
}

// routingKey is an optional base64 string of at most MaxKeyBytes bytes.
func (f *fields) routingKey(name string, v *Opt[[]byte]) {
	f.optBytes(name, v)
	if f.pass == reading && f.field == name && len(v.V) > MaxKeyBytes {
		f.fail("%d bytes are over the limit of %d", len(v.V), MaxKeyBytes)
	}
}

// ack is an optional mode; none is left out.
func (f *fields) ack(name string, v *AckMode) {
	switch {
	case !f.at(name, may):
	case f.pass == writing:
		if *v != AckNone {
			f.put(name)
			f.out = appendString(f.out, v.String())
		}
	case f.null():
		*v = AckNone
	default:
		text := f.text(MaxTypeBytes)
		mode, ok := ParseAckMode(string(text))
		if !ok {
			f.fail(`%.32q is none of "none", "per_message", "per_batch"`, text)
		}
		*v = mode
	}
}
