package sessionactor

import (
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// ErrWouldBlock says that a stream has no room for a write now.
var ErrWouldBlock = errors.New("write would block")

// ErrUnsent is the ErrWouldBlock of a stream that has room, of which so much was tried that has to be sent first: it says nothing about whether
// its client reads. Who gets it waits in a Write.
var ErrUnsent = fmt.Errorf("%w: what was taken before has not left", ErrWouldBlock)

// ErrStreamsKept says that a connection has too many streams whose end its client has not acknowledged.
var ErrStreamsKept = errors.New("the client has not acknowledged the end of too many event streams")

// Authenticator verifies the tokens that clients send.
type Authenticator interface {
	// Authenticate returns what the token allows in the tenant, or why it is not taken.
	Authenticate(tenant, token string, now time.Time) (sessioncore.Grants, *wire.Refusal)
}

// Options is what the sessions of a node share.
type Options struct {
	Table *shardactor.Table
	Auth  Authenticator
	// Offer is what the broker tells clients that it serves.
	Offer wire.Offer
	// Brokers are the addresses that clients may use, told to whoever asks for the topology.
	Brokers []wire.Broker
	// Admission bounds the requests that were let through to shards and have no outcome, fairly by tenant; what does not fit
	// is refused.
	Admission *Admission
	// Frames bounds frames that were read and whose requests have no outcome, those that are being judged included; a lane
	// that finds no room stops reading. It is larger than the admission, so that a tenant that is over its share is told so
	// and does not hold up others.
	Frames *actors.Credit
	// Polls bounds the polls of groups that are with their shards, of a connection and of the node. They hold nothing of Frames then.
	Polls *Parking
	// Parked does the same for reads of logs and for subscribes, which may wait for a disk or for answers before theirs, until their own.
	Parked *Parking
	// Partial is the node's bound on frames that are being read, beyond 64 KiB for each stream.
	Partial *storage.Budget
	// ConnBytes is what Frames is, for one connection, in bytes. One shard may have half of it.
	ConnBytes int
	// QueueWait is how long an answered request that finds no room for it at its shard waits, instead of being refused; 0 is not at
	// all. With IngressWait a publish that is not answered waits for as long as it takes, instead of being dropped.
	QueueWait   time.Duration
	IngressWait bool
	// Answers is the node's bound on answers that wait because their clients do not read.
	Answers *Answers
	// AckWait is how long a write to a durable stream that is answered waits for its outcome before it is answered as unknown; 0 is for
	// as long as it takes.
	AckWait time.Duration
	// AckAtClaim acknowledges publishes to durable streams when they are queued for the log, without an offset, unless their client asks
	// for more: what is acknowledged then may still be lost.
	AckAtClaim bool
	// Reads is how many reads of logs one connection may have under way, each of which may wait for the disk, and NodeReads the same for
	// the node; further ones wait.
	Reads     int
	NodeReads *actors.Credit
	// ReadWait is how long a read of a log that has its places may take before it is answered as failed and gives them back, 0 for as long as it
	// takes; Overdue knows those of the node that have not come back.
	ReadWait time.Duration
	Overdue  *Overdue
	// ReadRecords is how many records one answer to a stream_read has at most, however many were asked for; at least 1.
	ReadRecords int
	// NodeSnapshots bounds what one watch of a cache holds of current values that come before its first change, in bytes: 128 for each,
	// its key, and its value unless that is one that is read from the log. A watch of more is refused, and its client can watch
	// longer prefixes. All watches of the node hold four times as much at most, those of a connection twice, and a tenant has always room for
	// one. A watch whose client takes nothing for 10 s lets go of them, and tells it where to go on.
	NodeSnapshots *Snapshots
	// Large bounds what event streams keep in hand beyond 64 KiB each until their clients have taken it: records and values that were read from
	// disk for one of them, and frames that are made for one. What finds no room is written piece by piece.
	Large *LargePages
	// Subscriptions counts the subscriptions and watches of all connections against Delivery.PerNode.
	Subscriptions *storage.Budget
	// ProducerIDs draws the ids of idempotent producers.
	ProducerIDs *ProducerIDs
	// Window is how many requests may be open on one stream.
	Window int
	// FrameBytes is the longest payload of a frame that a client may send once it is signed in, see sessioncore.Stream.TakeAtMost.
	FrameBytes uint32
	// AuthTimeout closes a connection on which no stream authenticated, and one on which some stream takes longer.
	AuthTimeout time.Duration
	// PreauthStreams are read at once before they authenticated; PreauthStreamsMax may be open before the first one did.
	PreauthStreams, PreauthStreamsMax int
	// Preauth is the node's bound on such streams beyond the first of each connection, in streams.
	Preauth *storage.Budget
	// Delivery is how events go to subscribers.
	Delivery Delivery
	// Runtime runs the pumps.
	Runtime Runtime
	Clock   actors.Clock
	Events  actors.EventSink
	Metrics *Metrics
	// Timings are the stages of requests; nil measures nothing.
	Timings *stages.Timings
	// Suspects remembers whose requests made shards fail.
	Suspects *Suspects
}

// DefaultOptions are the bounds of wire/limits.go. Table, Auth, Offer, Clock, Events and Metrics are the caller's; Timings are off.
func DefaultOptions() Options {
	return Options{
		Runtime:       Goroutines(),
		Admission:     NewAdmission(sessioncore.DefaultAdmission(actors.ExecutorsDefault, wire.NodePublishBytes)),
		Frames:        actors.NewCredit(1, wire.NodePublishBytes+JudgedFrames),
		Polls:         NewPolls(sessioncore.DefaultPolls()),
		Parked:        NewParked(sessioncore.DefaultParked()),
		Partial:       storage.NewBudget(nodePartialFrames),
		ConnBytes:     wire.ConnPublishBytes,
		Answers:       NewAnswers(NodeAnswers),
		Suspects:      NewSuspects(),
		AckWait:       2 * time.Second,
		Reads:         connReads,
		NodeReads:     actors.NewCredit(1, nodeReads),
		ReadWait:      readWait,
		Overdue:       NewOverdue(),
		ReadRecords:   rangeRecords,
		NodeSnapshots: NewSnapshots(watchSnapshotBytes),
		Large:         NewLargePages(sessioncore.DefaultLarge()),
		ProducerIDs:   NewProducerIDs(randomID),
		Window:        wire.PublishWindow,
		FrameBytes:    wire.MaxPayload,

		AuthTimeout:    wire.AuthTimeoutMillis * time.Millisecond,
		PreauthStreams: wire.PreauthStreamsRead, PreauthStreamsMax: wire.PreauthStreamsMax,
		Preauth:  storage.NewBudget(nodePreauthStreams),
		Delivery: DefaultDelivery(), Subscriptions: storage.NewBudget(int64(DefaultDelivery().PerNode)),
	}
}

// connReads and nodeReads bound the reads that are under way: each may hold 4 MiB of records and their answer of up to 16 MiB, and while it
// waits for the disk one of the places there that all readers of a node share. A connection has few, so that several can wait for a slow
// disk and leave places to others.
const (
	connReads = 4
	nodeReads = 32
)

// readWait is longer than what disks take that work, and shorter than what callers wait. Many more reads than a disk does in that time do not
// wait for it: they wait for their places.
const readWait = 3 * time.Second

// JudgedFrames is what Frames holds beyond the admission, in bytes: a few of the largest frames on their way to being
// refused or let in.
const JudgedFrames = 4 * wire.MaxPayload

// NodeAnswers bounds the answers of a node that wait because clients do not read them, in bytes: 64 streams with as much as one may
// owe, or a hundred thousand that owe a few hundred bytes each.
const NodeAnswers = 64 << 20

// nodePreauthStreams bounds the streams of a node whose client has not signed in yet, beyond the first of each connection: what
// strangers hold is then 20 MiB at most, at 9 KiB for a stream, and not that times their connections. No known client opens a
// second stream before the first has authenticated.
const nodePreauthStreams = 2048

// nodePartialFrames bounds the unfinished frames of a node, in bytes: sixteen of the largest. It only holds what is on its
// way into memory, and a stream that does not fit is told to repeat.
const nodePartialFrames = 16 * wire.MaxPayload

// EphemeralOffer is what a broker without a storage directory serves: streams and caches in memory. It offers nothing it
// cannot do, so a client finds out from auth_ok and not from a refusal.
func EphemeralOffer() wire.Offer {
	return wire.Offer{
		HasFlags: true,
		Flags: wire.FlagPublishBatch | wire.FlagEventBatch | wire.FlagEventBatchShared | wire.FlagPublishAcked | wire.FlagPublishAck |
			wire.FlagEventOffsets | wire.FlagPublishKeyed | wire.FlagPublishAckCode | wire.FlagPublishAckDetail | wire.FlagPublishAckOffset |
			wire.FlagEventTimestamps,
		Features: wire.FeatureTopology | wire.FeatureCacheDelete | wire.FeatureStreamShards | wire.FeatureCacheShards |
			wire.FeatureErrorCodes | wire.FeatureUnsupported | wire.FeaturePublishPipeline | wire.FeatureStreamPublishWindow |
			wire.FeatureShardOwners | wire.FeatureSubscribeQueue | wire.FeatureCacheConditional,
	}
}

// DurableOffer is what a broker with a storage directory serves: all of EphemeralOffer, and what takes a log that lasts. Naming the shard
// of a publish (FeatureHiExplicitShard) is not in it: the protocol has no layout for that. Neither are publishers of records
// (FeatureGroupPublisher): they are not stored.
func DurableOffer() wire.Offer {
	o := EphemeralOffer()
	o.Flags |= wire.FlagEventSkipped | wire.FlagPublishIdempotent
	o.Features |= wire.FeatureCacheWatch | wire.FeatureCacheWatchRetained | wire.FeatureCounters
	o.Features |= wire.FeatureIdempotentProducer | wire.FeatureSequenceReused | wire.FeatureShardMoved | wire.FeatureSubscriptionLagged |
		wire.FeatureAtomicCommit | wire.FeatureAckOnCommit | wire.FeatureRecordTimestamps | wire.FeaturePublishConditional | wire.FeatureStreamRead
	o.Features |= wire.FeatureConsumerGroup | wire.FeatureGroupDeadLetters | wire.FeatureGroupConsumer | wire.FeatureGroupSkipped |
		wire.FeatureGroupAdmin | wire.FeatureGroupClaimControl
	return o
}
