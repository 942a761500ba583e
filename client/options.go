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
	// DefaultAckTimeout is how long an answer may take before its stream is given up.
	DefaultAckTimeout = 30 * time.Second
	// DefaultAttempts is how often opening a stream, reading metadata or subscribing is tried.
	DefaultAttempts = 5
)

// Options says which broker to use and as whom. Addrs, TenantID and one of Token and TokenProvider are needed; a zero
// elsewhere means the default.
type Options struct {
	// Addrs are "host:port" of brokers, tried in order until one takes the client. Any broker of a cluster will do.
	Addrs []string
	// TenantID is the tenant the client acts for.
	TenantID string
	// Token proves the right to it. TokenProvider, if set, is asked instead each time a stream authenticates, at most
	// twice; it must be quick or heed ctx, and safe for concurrent use.
	Token         string
	TokenProvider func(ctx context.Context) (string, error)

	// CAPEM, or the content of CAFile, are the trust anchors; without either the platform's are used. The certificate is
	// always verified.
	CAPEM  []byte
	CAFile string
	// ServerName is what the certificate must name; DefaultServerName if empty.
	ServerName string
	// OfferALPN offers the application protocol "felix/1". Off by default.
	OfferALPN bool

	// PublishConns, EventConns and CacheConns give publishes, subscriptions and cache requests that many connections of
	// their own; 0 means the one connection shared by all that have 0. On a shared connection a subscription that nobody
	// reads takes its share of the connection's receive window (see Windows).
	PublishConns, EventConns, CacheConns int
	// PublishStreams and CacheStreams are how many streams requests are spread over; each is opened when first needed.
	PublishStreams, CacheStreams int
	// PublishInflightBytes bounds the bytes of unanswered publishes. A publish that finds no room waits; one larger than
	// the bound goes alone.
	PublishInflightBytes int64

	// AckTimeout is how long an answer may take before its stream is given up and its requests end as unknown.
	AckTimeout time.Duration
	// Attempts is how often what is safe to repeat is tried. The pauses between grow from 200 ms to 2 s, fully jittered.
	Attempts int
	// HandshakeTimeout is how long a dial may hear nothing; 0 means transport.HandshakeTimeout.
	HandshakeTimeout time.Duration
	// Windows are the receive windows of each connection; the zero value means transport.DefaultClientWindows.
	Windows transport.Windows

	// Publishers and Timestamps ask for the publisher and the append time of each event.
	Publishers, Timestamps bool
}

// complete returns o with defaults filled in, or an *ArgumentError.
func (o Options) complete() (Options, error) {
	bad := func(argument, problem string) (Options, error) {
		return Options{}, &ArgumentError{Op: "connect", Argument: argument, Problem: problem}
	}
	switch {
	case len(o.Addrs) == 0:
		return bad("Addrs", `is empty; give at least one "host:port"`)
	case o.TenantID == "" || len(o.TenantID) > wire.MaxNameBytes:
		return bad("TenantID", fmt.Sprintf("has %d bytes; 1 to %d are allowed", len(o.TenantID), wire.MaxNameBytes))
	case o.Token == "" && o.TokenProvider == nil:
		return bad("Token", "is empty and there is no TokenProvider; give one of them")
	case o.CAFile != "" && len(o.CAPEM) > 0:
		return bad("CAFile", "is given besides CAPEM; give one of them")
	case o.PublishConns < 0 || o.EventConns < 0 || o.CacheConns < 0 || o.PublishStreams < 0 || o.CacheStreams < 0,
		o.PublishInflightBytes < 0, o.AckTimeout < 0, o.Attempts < 0, o.HandshakeTimeout < 0:
		return bad("Options", "hold a negative number; use a positive one, or 0 for the default")
	}
	o.ServerName = orDefault(o.ServerName, DefaultServerName)
	o.PublishStreams = orDefault(o.PublishStreams, DefaultPublishStreams)
	o.CacheStreams = orDefault(o.CacheStreams, DefaultCacheStreams)
	o.PublishInflightBytes = orDefault(o.PublishInflightBytes, DefaultPublishInflightBytes)
	o.AckTimeout = orDefault(o.AckTimeout, DefaultAckTimeout)
	o.Attempts = orDefault(o.Attempts, DefaultAttempts)
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
	flags := wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagPublishKeyed |
		wire.FlagPublishAck | wire.FlagPublishAckOwner | wire.FlagPublishAckCode | wire.FlagPublishAckDetail | wire.FlagPublishAckOffset |
		wire.FlagEventBatch | wire.FlagEventBatchShared | wire.FlagEventOffsets | wire.FlagEventSkipped
	if o.Publishers {
		flags |= wire.FlagEventPublisher
	}
	if o.Timestamps {
		flags |= wire.FlagEventTimestamps
	}
	return wire.Offer{HasFlags: true, Flags: flags, Features: wire.FeatureErrorCodes | wire.FeatureUnsupported |
		wire.FeatureRedirect | wire.FeatureTopology | wire.FeatureStreamShards | wire.FeatureCacheShards | wire.FeatureShardOwners |
		wire.FeaturePublishPipeline | wire.FeatureStreamPublishWindow |
		wire.FeatureShardMoved | wire.FeatureSubscriptionLagged | wire.FeatureSubscribeQueue | wire.FeatureCacheDelete}
}
