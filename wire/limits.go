package wire

// Every bound that both sides of a connection must agree on, or that protects the broker from one. One constant, one
// reason. limits_test.go asserts how they relate.

const (
	kib = 1 << 10
	mib = 1 << 20
)

const (
	// MaxPayload is the longest frame payload, in bytes, on an authenticated stream (default of the setting
	// FELIX_MAX_FRAME_BYTES). The reference client takes no longer frame, so a broker that sent one would lose it.
	MaxPayload = 16 * mib
	// MaxPreauthPayload is the longest payload, in bytes, before auth. A token fits with room; nobody unknown can make
	// the broker hold more than this per stream.
	MaxPreauthPayload = 64 * kib
	// MaxTokenBytes bounds a token in bytes. Below MaxPreauthPayload by enough for tenant, flags and JSON escapes.
	MaxTokenBytes = 48 * kib
	// FirstBodyAllocation is how many bytes the buffer of a body starts with. Small enough that a thousand streams
	// announcing 16 MiB cost 64 MiB and not 16 GiB; large enough for any ordinary frame in one piece.
	FirstBodyAllocation = 64 * kib

	// PublishWindow is how many acked publishes of one stream may be unanswered. It bounds the pending ring of a lane;
	// the reference client keeps 64 in flight, so 256 never holds it back.
	PublishWindow = 256
	// ConnPublishBytes bounds publish payload bytes that one connection has in flight. At it the broker stops reading,
	// and QUIC flow control carries the pressure to the client. Equal to MaxPayload, so that the largest legal frame
	// always fits an idle connection.
	ConnPublishBytes = 16 * mib
	// NodePublishBytes bounds publish payload bytes in flight on the whole node: four connections at their bound.
	NodePublishBytes = 64 * mib

	// MaxStreams is how many client streams of each direction one connection may have open. A Python client opens 41
	// at once and the reference client counts on 1024 before it opens another connection.
	MaxStreams = 1024
	// PreauthStreamsRead is how many unauthenticated streams of one connection are read at once; others wait. Token
	// checks cost CPU, and 16 keep a client's start-up burst moving.
	PreauthStreamsRead = 16
	// PreauthStreamsMax closes a connection that opened more streams than this before its first successful auth: no
	// known client opens a second stream before the first is authenticated.
	PreauthStreamsMax = 64
	// AuthTimeoutMillis closes a connection on which no stream authenticated within this many milliseconds.
	AuthTimeoutMillis = 10_000
	// MaxSubscriptionsPerConn bounds subscriptions and watches of one principal on one connection; more are refused
	// limit_exceeded. Each holds a stream, a cursor and a goroutine.
	MaxSubscriptionsPerConn = 4096
	// MaxSubscriptionsPerConnTotal bounds those of all principals of one connection: room for four that use theirs up.
	MaxSubscriptionsPerConnTotal = 4 * MaxSubscriptionsPerConn
	// NodeSubscriptions bounds those of all connections: sixteen connections with as many as one may have. An idle one costs about 18 KB, so
	// that they are 5 GB at most.
	NodeSubscriptions = 16 * MaxSubscriptionsPerConnTotal

	// MaxNameBytes bounds tenant, namespace, stream, cache and node names on the wire, in bytes. The catalog allows
	// 128; the wire leaves room so that a too long name is answered by the catalog in its own words.
	MaxNameBytes = 255
	// MaxKeyBytes bounds a routing key in bytes: its length is a u16.
	MaxKeyBytes = 65535
	// MaxCacheKeyBytes bounds a cache key in bytes. JSON has no length field to bound it, so the bound is that of a
	// routing key: every key that is hashed to a shard then fits a u16 wherever it is stored.
	MaxCacheKeyBytes = 65535
	// MaxPublisherBytes bounds a principal named on an event batch, in bytes: its length is a u8. Longer principals
	// are refused when a token is checked.
	MaxPublisherBytes = 255
	// MaxErrorTextBytes bounds the prose of an error, in bytes; longer text is cut at a character boundary. Enough for
	// a sentence with three names in it, and small enough for any answer to fit its reserved room.
	MaxErrorTextBytes = 2048

	// EventBatchMaxEvents is how many events one event frame carries at most. A frame is the unit in which a slow
	// reader's queue is counted (mission 225).
	EventBatchMaxEvents = 64
	// EventBatchMaxBytes is how many payload bytes one event frame carries at most; a single larger event still travels
	// alone (mission 226).
	EventBatchMaxBytes = 64 * kib
	// EventBatchMaxDelayMicros is how long, in microseconds, queued events may wait to be joined; a lone event never
	// waits.
	EventBatchMaxDelayMicros = 250

	// SubscriberQueueCapacity is how many batches the broker queues for a reader that asked for no other number.
	SubscriberQueueCapacity = 512
	// SubscriberQueueCapacityMax is the most a reader may ask for.
	SubscriberQueueCapacityMax = 4096
	// SubscriberQueueBytes bounds what one reader's queue may hold, in bytes of batches, whatever its capacity. One batch is
	// always taken by an empty queue, however large.
	SubscriberQueueBytes = 8 * mib
	// NodeReaderBytes bounds what a node keeps for readers after the streams' own memory has let go of it: 32 readers
	// with a whole queue of their own; readers of one stream that stand at the same place share theirs.
	NodeReaderBytes = 256 * mib
	// ClientQueue is how many frames, and how many events, a client queues per subscription before it drops live ones.
	ClientQueue = 256

	// MaxTypeBytes bounds the type of a JSON message and the names of its choices, in bytes. The longest of the protocol
	// has 23; what is longer is refused rather than echoed in an answer.
	MaxTypeBytes = 255
	// MaxJSONDepth bounds how deep the objects and arrays of a JSON payload may nest. The deepest message of the
	// protocol has 4 levels (shard_inspect_info); unknown members may bring their own.
	MaxJSONDepth = 32
	// MaxShardOwners bounds the entries of a shard_owners_view: decoded entries are about three times larger than the
	// shortest JSON that describes them, so the list needs a bound of its own.
	MaxShardOwners = 1024
	// MaxConsumerBytes bounds the name of a consumer in a group, in bytes: it is kept with every claim of its member.
	MaxConsumerBytes = 128
	// MaxGroupRecords bounds the entries of a group_records, which is what one poll hands out at most. Decoded entries are
	// about three times larger than the shortest JSON that describes them.
	MaxGroupRecords = 1000
	// MaxShardReplicas bounds every list of nodes or replicas in the view of a shard. A shard has 3 or 5 of them; the
	// rest is room for moves and for learners.
	MaxShardReplicas = 64
	// InspectPage is how many entries a page of subscriptions has when the request names no number.
	InspectPage = 100
	// MaxInspectPage bounds the entries of a page of subscriptions, so that one answer fits a frame many times over.
	MaxInspectPage = 1000
)
