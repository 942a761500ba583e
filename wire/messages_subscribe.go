package wire

import "github.com/felixd/felixd/wire/id"

// Subscribing, and the JSON messages of event streams.

// StartKind says where a reader begins.
type StartKind uint8

const (
	// StartLatest begins with what is published from now on.
	StartLatest StartKind = iota
	// StartEarliest begins with the oldest record there is.
	StartEarliest
	// StartOffset begins at an offset: the first record the reader has not seen.
	StartOffset
)

// Start is where a subscription begins.
type Start struct {
	Kind   StartKind
	Offset id.Offset // for StartOffset
}

// Subscribe asks for the events of one shard.
type Subscribe struct {
	TenantID, Namespace, Stream string
	SubscriptionID              Opt[uint64] // of old clients; the broker chooses the id
	Start                       Opt[Start]  // unset: latest
	Shard                       Opt[uint32] // unset: 0
	QueueCapacity               Opt[uint32] // batches the broker may queue, needs FeatureSubscribeQueue
}

// Subscribed accepts a Subscribe.
type Subscribed struct {
	SubscriptionID uint64
	StartOffset    Opt[id.Offset] // first offset that will be delivered
	LiveOffset     Opt[id.Offset] // what lies below is history, what comes from it on is live
	QueueCapacity  Opt[uint32]    // granted, when asked for
}

// CursorReason says why a start offset cannot be served.
type CursorReason uint8

const (
	// CursorTooOld: the records were dropped already.
	CursorTooOld CursorReason = iota
	// CursorInFuture: the log does not reach that far.
	CursorInFuture
)

// String returns the name on the wire.
func (r CursorReason) String() string {
	if r == CursorInFuture {
		return "in_future"
	}
	return "too_old"
}

// SubscribeCursorError refuses a start offset.
type SubscribeCursorError struct {
	Reason    CursorReason
	Requested id.Offset
	Available id.Offset // the oldest record kept, or the tail
}

// EventStreamHello is the first frame of an event stream.
type EventStreamHello struct{ SubscriptionID uint64 }

// EventMessage is one event.
type EventMessage struct {
	TenantID, Namespace, Stream string
	Record                      Region // the payload as a region of exactly one record
	Offset                      Opt[id.Offset]
}

// EventBatchMessage is several consecutive events.
type EventBatchMessage struct {
	TenantID, Namespace, Stream string
	Records                     Region         // the payloads
	Count                       uint32         // payloads in Records, filled while decoding
	BaseOffset                  Opt[id.Offset] // of payload 0; payload i is at base+i
}

// ShardMoved is the last frame of an event stream whose shard goes to another broker.
type ShardMoved struct {
	SubscriptionID uint64
	ResumeFrom     Opt[id.Offset] // first offset not offered to this reader
	NodeID         Opt[string]    // of the new owner, a hint
	Addr           Opt[string]    // "IP:port" of the new owner, a hint
	Generation     id.Generation
}

// SubscriptionLagged is the last frame of an event stream that fell behind.
type SubscriptionLagged struct {
	SubscriptionID uint64
	ResumeFrom     id.Offset
}

// MessageType returns "subscribe".
func (*Subscribe) MessageType() string { return "subscribe" }

func (m *Subscribe) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	optUint(f, "subscription_id", &m.SubscriptionID)
	f.optStart("start", &m.Start)
	optUint(f, "shard", &m.Shard)
	optUint(f, "queue_capacity", &m.QueueCapacity)
}

// MessageType returns "subscribed".
func (*Subscribed) MessageType() string { return "subscribed" }

func (m *Subscribed) fields(f *fields) {
	uintField(f, "subscription_id", &m.SubscriptionID)
	optUint(f, "start_offset", &m.StartOffset)
	optUint(f, "live_offset", &m.LiveOffset)
	optUint(f, "queue_capacity", &m.QueueCapacity)
}

// MessageType returns "subscribe_cursor_error".
func (*SubscribeCursorError) MessageType() string { return "subscribe_cursor_error" }

func (m *SubscribeCursorError) fields(f *fields) {
	f.cursorReason("reason", &m.Reason)
	uintField(f, "requested", &m.Requested)
	uintField(f, "available", &m.Available)
}

// MessageType returns "event_stream_hello".
func (*EventStreamHello) MessageType() string { return "event_stream_hello" }

func (m *EventStreamHello) fields(f *fields) {
	uintField(f, "subscription_id", &m.SubscriptionID)
}

// MessageType returns "event".
func (*EventMessage) MessageType() string { return "event" }

func (m *EventMessage) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.payload("payload", &m.Record)
	optUint(f, "offset", &m.Offset)
}

// MessageType returns "event_batch".
func (*EventBatchMessage) MessageType() string { return "event_batch" }

func (m *EventBatchMessage) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.payloads("payloads", &m.Records, &m.Count)
	optUint(f, "base_offset", &m.BaseOffset)
}

// MessageType returns "shard_moved".
func (*ShardMoved) MessageType() string { return "shard_moved" }

func (m *ShardMoved) fields(f *fields) {
	uintField(f, "subscription_id", &m.SubscriptionID)
	optUint(f, "resume_from", &m.ResumeFrom)
	f.optStr("node_id", MaxNameBytes, &m.NodeID)
	f.optStr("addr", MaxNameBytes, &m.Addr)
	uintField(f, "generation", &m.Generation)
}

// MessageType returns "subscription_lagged".
func (*SubscriptionLagged) MessageType() string { return "subscription_lagged" }

func (m *SubscriptionLagged) fields(f *fields) {
	uintField(f, "subscription_id", &m.SubscriptionID)
	uintField(f, "resume_from", &m.ResumeFrom)
}

func (f *fields) cursorReason(name string, v *CursorReason) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = appendString(f.out, v.String())
		return
	}
	switch text := f.text(MaxTypeBytes); string(text) {
	case "too_old":
		*v = CursorTooOld
	case "in_future":
		*v = CursorInFuture
	default:
		f.fail(`%.32q is neither "too_old" nor "in_future"`, text)
	}
}
