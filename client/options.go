package client

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// Defaults of Options.
const (
	// DefaultServerName is what a broker's certificate must name unless Options say otherwise.
	DefaultServerName = "localhost"
	// DefaultPublishStreams is how many streams publishes are spread over: answers of one stream come in order, so a shard
	// that stalls holds back only the shards that share its stream.
	DefaultPublishStreams = 8
	// DefaultCacheStreams is the same for cache requests.
	DefaultCacheStreams = 8
	// DefaultPublishInflightBytes bounds what all unanswered publishes of a client hold, in bytes: enough to keep a fast
	// broker busy over a round trip of some milliseconds.
	DefaultPublishInflightBytes = 4 << 20
	// DefaultPublishQueueDepth is how many requests a stream has under way when the broker grants no window.
	DefaultPublishQueueDepth = 64
	// DefaultPublishChunkBytes is how many bytes of small frames are joined into one write.
	DefaultPublishChunkBytes = 64 << 10
	// DefaultSubQueueCapacity is how many batches QueueDropNew keeps for one subscription.
	DefaultSubQueueCapacity = wire.ClientQueue
	// DefaultEventRouterMaxPending is how many event streams and subscriptions of one connection may wait for each other.
	DefaultEventRouterMaxPending = 16384
	// DefaultAckTimeout is how long an answer may take before its stream is given up.
	DefaultAckTimeout = 30 * time.Second
	// DefaultAttempts is how often opening a stream, reading metadata or subscribing is tried.
	DefaultAttempts = 5
	// DefaultDialTimeout is how long one dial may take, look-up of the name and handshake included. A handshake is two round
	// trips, and its lost packets are sent again after a fraction of a second.
	DefaultDialTimeout = 2 * time.Second
)

// PublishSharding says how publishes are spread over streams.
type PublishSharding uint8

const (
	// HashStream gives each shard one stream: its publishes keep their order. It is the default.
	HashStream PublishSharding = iota
	// RoundRobin takes the streams in turn: more parallel, and in any order.
	RoundRobin
)

// Options says which broker to use and as whom. Addrs, TenantID and one of Token, TokenProvider and TokenSource are needed;
// a zero elsewhere means the default. OptionsFromEnv fills them from the environment; Pooled, LowLatency and HighThroughput
// set the sizes of the pools.
type Options struct {
	// Addrs are "host:port" of brokers, tried in order until one takes the client. Any broker of a cluster will do: the
	// client asks it for the others and tries those too, unless NoDiscovery is set.
	Addrs       []string
	NoDiscovery bool
	// TenantID is the tenant the client acts for.
	TenantID string
	// Token proves the right to it. TokenProvider or TokenSource, if set, is asked instead each time a stream authenticates,
	// once more when a broker refused the token; TokenProvider must be quick or heed ctx, and safe for concurrent use.
	Token         string
	TokenProvider func(ctx context.Context) (string, error)
	TokenSource   *TokenSource

	// CAPEM, or the content of CAFile, are the trust anchors; without either the platform's are used. The certificate is
	// always verified.
	CAPEM  []byte
	CAFile string
	// ServerName is what the certificate must name, of every broker; DefaultServerName if empty.
	ServerName string
	// OfferALPN offers the application protocol "felix/1". Off by default.
	OfferALPN bool
	// Certificate is presented to a broker that asks for one; nil for none. Replacing its content rotates it.
	Certificate *transport.CertSource

	// PublishConns, EventConns and CacheConns give publishes, subscriptions and cache requests that many connections of
	// their own to each broker; 0 means the one connection shared by all that have 0.
	PublishConns, EventConns, CacheConns int
	// PublishStreams and CacheStreams are how many streams requests to a broker are spread over; each is opened when first
	// needed, on the connections in turn.
	PublishStreams, CacheStreams int
	// PublishSharding says how publishes are spread over them.
	PublishSharding PublishSharding
	// PublishInflightBytes bounds the bytes of unanswered publishes, of which one shard may have half, so that one that stands
	// still leaves room for the others. A publish that finds no room waits; one larger than the bound goes alone.
	PublishInflightBytes int64
	// PublishQueueDepth is how many requests a stream has under way when the broker grants no window, as for the cache.
	PublishQueueDepth int
	// PublishChunkBytes is up to how many bytes small frames are joined into one write.
	PublishChunkBytes int

	// The windows, in bytes; see ReceiveWindowBytes for what they add up to. A receive window is how much a broker may have
	// sent that was not read, per connection and per stream; it starts small and grows up to this while the reader keeps up.
	// A send window bounds the bytes of unanswered requests per connection (cache requests; subscribe requests); publishes
	// have PublishInflightBytes. The shared connection takes the largest of those it carries.
	EventConnRecvWindow, EventStreamRecvWindow, EventSendWindow uint64
	CacheConnRecvWindow, CacheStreamRecvWindow, CacheSendWindow uint64

	// SubQueuePolicy and SubQueueCapacity are the client-side queue of subscriptions that do not say otherwise; the capacity
	// is in batches. BrokerSubQueueCapacity is asked of the broker for those; 0 leaves it to the broker.
	SubQueuePolicy         QueuePolicy
	SubQueueCapacity       int
	BrokerSubQueueCapacity uint32
	// EventRouterMaxPending bounds, per connection, the event streams and subscriptions that wait for each other.
	EventRouterMaxPending int
	// MaxFrameBytes is the longest payload of a frame, both ways; at most wire.MaxPayload, which is the default.
	MaxFrameBytes int

	// AckTimeout is how long an answer may take before its stream is given up and its requests end as unknown.
	AckTimeout time.Duration
	// Attempts is how often what is safe to repeat is tried. The pauses between grow from 200 ms to 2 s, fully jittered.
	Attempts int
	// RetryDeadline, if set, ends repetition that would go on past it. There is none by default: below the duration of a
	// single try it would leave no room for a second.
	RetryDeadline time.Duration
	// DialTimeout bounds each dial. A call that finds nobody at any address fails after at most Attempts times the number
	// of addresses (those that brokers named included) times this, and pauses of at most 3 s together: 13 s with the defaults
	// and one address. Calls at the same time fail together, not one after the other.
	DialTimeout time.Duration

	// Publishers and Timestamps ask for the publisher and the append time of each event. Publishers does so for the records of
	// groups too, whose append time always comes.
	Publishers, Timestamps bool
	// AckOnCommit asks for acknowledgements only after the write, with offsets, from brokers that leave it to the client.
	AckOnCommit bool

	// Hooks are told what happens.
	Hooks Hooks
}

// complete returns o with defaults filled in, or an *ArgumentError.
func (o Options) complete() (Options, error) {
	if err := o.check(); err != nil {
		return Options{}, err
	}
	if o.TokenSource != nil {
		o.TokenProvider = o.TokenSource.Token
	}
	o.ServerName = orDefault(o.ServerName, DefaultServerName)
	o.PublishStreams = orDefault(o.PublishStreams, DefaultPublishStreams)
	o.CacheStreams = orDefault(o.CacheStreams, DefaultCacheStreams)
	o.PublishInflightBytes = orDefault(o.PublishInflightBytes, DefaultPublishInflightBytes)
	o.PublishQueueDepth = orDefault(o.PublishQueueDepth, DefaultPublishQueueDepth)
	o.PublishChunkBytes = orDefault(o.PublishChunkBytes, DefaultPublishChunkBytes)
	o.SubQueuePolicy = orDefault(o.SubQueuePolicy, QueueBlock)
	o.SubQueueCapacity = orDefault(o.SubQueueCapacity, DefaultSubQueueCapacity)
	o.EventRouterMaxPending = orDefault(o.EventRouterMaxPending, DefaultEventRouterMaxPending)
	o.MaxFrameBytes = orDefault(o.MaxFrameBytes, wire.MaxPayload)
	o.AckTimeout = orDefault(o.AckTimeout, DefaultAckTimeout)
	o.Attempts = orDefault(o.Attempts, DefaultAttempts)
	o.DialTimeout = orDefault(o.DialTimeout, DefaultDialTimeout)
	o = o.withWindows()
	if err := o.checkWindows(); err != nil {
		return Options{}, err
	}
	if o.CAFile == "" {
		return o, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return Options{}, fmt.Errorf("connect: read CA file: %w", err)
	}
	o.CAPEM = pem
	return o, nil
}

func orDefault[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// offer is what the client says it can read and use, and nothing else.
func (o Options) offer() wire.Offer {
	flags := wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagPublishKeyed | wire.FlagPublishIdempotent |
		wire.FlagPublishAck | wire.FlagPublishAckOwner | wire.FlagPublishAckCode | wire.FlagPublishAckDetail | wire.FlagPublishAckOffset |
		wire.FlagEventBatch | wire.FlagEventBatchShared | wire.FlagEventOffsets | wire.FlagEventSkipped
	if o.Publishers {
		flags |= wire.FlagEventPublisher
	}
	if o.Timestamps {
		flags |= wire.FlagEventTimestamps
	}
	features := wire.FeatureErrorCodes | wire.FeatureUnsupported |
		wire.FeatureRedirect | wire.FeatureTopology | wire.FeatureStreamShards | wire.FeatureCacheShards | wire.FeatureShardOwners |
		wire.FeaturePublishPipeline | wire.FeatureStreamPublishWindow |
		wire.FeatureShardMoved | wire.FeatureSubscriptionLagged | wire.FeatureSubscribeQueue | wire.FeatureCacheDelete |
		wire.FeatureIdempotentProducer | wire.FeatureSequenceReused | wire.FeaturePublishConditional | wire.FeatureAtomicCommit |
		wire.FeatureStreamRead | wire.FeatureRecordTimestamps |
		wire.FeatureCacheConditional | wire.FeatureCacheWatch | wire.FeatureCacheWatchRetained | wire.FeatureCounters |
		wire.FeatureConsumerGroup | wire.FeatureGroupDeadLetters | wire.FeatureGroupConsumer | wire.FeatureGroupSkipped |
		wire.FeatureGroupAdmin | wire.FeatureGroupClaimControl
	if o.Publishers {
		features |= wire.FeatureGroupPublisher
	}
	if o.AckOnCommit {
		features |= wire.FeatureAckOnCommit
	}
	return wire.Offer{HasFlags: true, Flags: flags, Features: features}
}
