// Package testbroker is a small broker for tests of clients: real QUIC, real frames, everything in memory, and hooks that
// let a test take over any step. It serves publishes, subscriptions, the cache and questions about shards, with Durable also
// reads of logs, numbered and conditional publishes, commits, watches, counters and groups, answers each stream in request order, and has no permissions:
// one token is good, others are not.
package testbroker

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// Token is the one the broker takes, for any tenant.
const Token = "good-token"

// Options shape a broker. The zero value has no streams and no caches.
type Options struct {
	Flags     wire.Flags        // advertised; 0 means DefaultFlags
	Features  wire.Features     // advertised; 0 means DefaultFeatures, and DurableFeatures with Durable
	Window    uint32            // publish_window; 0 means 256
	Streams   map[string]uint32 // "namespace/stream" and its shards
	Caches    map[string]uint32 // "namespace/cache" and its shards
	Durable   bool              // streams have logs: offsets, reads, numbered and conditional publishes, commits, groups; caches have watches and counters
	BatchSize int               // events per frame at most; 0 means 64
	Routing   wire.Routing      // of all streams
	MutualTLS bool              // clients have to present a certificate of this broker's authority
	ResetKey  []byte            // brokers with the same one, of 16 bytes or more, end each other's connections: see transport.ResetKey
	// Share is a broker whose authority, streams, caches and what is in them this one has too: two brokers of one cluster. Streams,
	// Caches, Durable and Routing are then that one's.
	Share *Broker

	// OnAuth may refuse; nil, or returning nil, takes Token.
	OnAuth func(a *wire.Auth) *wire.Refusal
	// OnFrame sees each frame after auth; true means that the broker is to do nothing more about it.
	OnFrame func(s *Stream, f Frame) bool
	// OnAppended sees each numbered or conditional publish and each commit (of which it knows the request id only) before its
	// answer; true means that there is to be none.
	OnAppended func(s *Stream, p *wire.Publish) bool
	// OnCacheWritten sees the answer to each conditional cache write and each addition to a counter before it is sent; true means
	// that none is to be sent.
	OnCacheWritten func(s *Stream, answer wire.Message) bool
	// OnGroupAnswer sees the answer to each poll and each settlement of a group after it took effect; true means that none is to be
	// sent.
	OnGroupAnswer func(s *Stream, request, answer wire.Message) bool
	// GroupVisibility is how long claims stand that ask for no other time, 0 means DefaultGroupVisibility; after GroupMaxAttempts
	// failures, 0 means DefaultGroupMaxAttempts, a record is a dead letter. With Share they are that broker's.
	GroupVisibility  time.Duration
	GroupMaxAttempts uint32
}

// What a broker advertises unless told otherwise.
const (
	DefaultFlags    = wire.KnownFlags
	DefaultFeatures = wire.FeatureErrorCodes | wire.FeatureUnsupported | wire.FeatureStreamShards | wire.FeatureCacheShards |
		wire.FeatureShardOwners | wire.FeaturePublishPipeline | wire.FeatureStreamPublishWindow | wire.FeatureCacheDelete |
		wire.FeatureTopology | wire.FeatureRedirect | wire.FeatureShardMoved | wire.FeatureSubscriptionLagged |
		wire.FeatureCacheConditional
	DurableFeatures = wire.FeatureIdempotentProducer | wire.FeatureSequenceReused | wire.FeaturePublishConditional |
		wire.FeatureAtomicCommit | wire.FeatureStreamRead | wire.FeatureRecordTimestamps | wire.FeatureAckOnCommit |
		wire.FeatureCacheWatch | wire.FeatureCacheWatchRetained | wire.FeatureCounters |
		wire.FeatureConsumerGroup | wire.FeatureGroupDeadLetters | wire.FeatureGroupConsumer | wire.FeatureGroupSkipped |
		wire.FeatureGroupPublisher | wire.FeatureGroupAdmin | wire.FeatureGroupClaimControl
)

// Broker listens until the test ends.
type Broker struct {
	options  Options
	listener *transport.Listener
	ca       *transport.CA
	work     sync.WaitGroup
	stop     sync.Once
	stopped  error

	logs   map[string][]*log        // by "namespace/stream"; does not change
	caches map[string][]*cacheShard // by "namespace/cache"; does not change

	mu      sync.Mutex
	conns   []*quic.Conn // all that were accepted
	lastSub uint64
}

// New starts a broker on a loopback port and stops it when the test ends.
func New(t testing.TB, o Options) *Broker {
	t.Helper()
	b, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("close test broker: %v", err)
		}
	})
	return b
}

// Start starts a broker on a loopback port, for those who have no test at hand. Stop it in the end.
func Start(o Options) (*Broker, error) {
	o.GroupVisibility = orDefault(o.GroupVisibility, DefaultGroupVisibility)
	o.GroupMaxAttempts = orDefault(o.GroupMaxAttempts, DefaultGroupMaxAttempts)
	b := &Broker{options: o, logs: make(map[string][]*log), caches: make(map[string][]*cacheShard)}
	if o.Share != nil {
		b.ca, b.logs, b.caches = o.Share.ca, o.Share.logs, o.Share.caches
		b.options.Streams, b.options.Durable, b.options.Routing = o.Share.options.Streams, o.Share.options.Durable, o.Share.options.Routing
		b.options.GroupVisibility, b.options.GroupMaxAttempts = o.Share.options.GroupVisibility, o.Share.options.GroupMaxAttempts
		return b, b.listen()
	}
	for name, shards := range o.Streams {
		b.logs[name] = newLogs(shards)
	}
	for name, shards := range o.Caches {
		b.caches[name] = newCacheShards(shards)
	}
	ca, err := transport.NewCA("test authority", time.Now(), nil)
	if err != nil {
		return nil, err
	}
	b.ca = ca
	return b, b.listen()
}

func (b *Broker) listen() error {
	cert, key, err := b.ca.Issue(transport.LeafRequest{Names: []string{"localhost", "127.0.0.1"}, Now: time.Now(), Lifetime: time.Hour})
	if err != nil {
		return err
	}
	src, err := transport.NewCertSource(cert, key)
	if err != nil {
		return err
	}
	var policy transport.Policy
	if b.options.MutualTLS {
		if policy.ClientCAs, err = transport.ParseCertPool(b.ca.CertPEM); err != nil {
			return err
		}
	}
	o := transport.ListenOptions{Addr: "127.0.0.1:0", TLS: transport.ServerTLS(src, policy)}
	if b.options.ResetKey != nil {
		o.StatelessResetKey = transport.ResetKey(b.options.ResetKey)
	}
	b.listener, err = transport.Listen(o)
	if err != nil {
		return err
	}
	b.work.Go(b.accept)
	return nil
}

// Stop ends all connections and the listener, and returns when nothing of the broker runs any more. Stopping again does
// nothing.
func (b *Broker) Stop() error {
	b.stop.Do(func() {
		b.stopped = b.listener.Close()
		b.work.Wait()
	})
	return b.stopped
}

// Addr is the address to dial.
func (b *Broker) Addr() string { return b.listener.Addr().String() }

// CA is the authority clients have to trust.
func (b *Broker) CA() *transport.CA { return b.ca }

// CAFile writes the authority's certificate to a file of the test.
func (b *Broker) CAFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, b.ca.CertPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Connections is how many connections were ever accepted.
func (b *Broker) Connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// Open is how many connections are open now.
func (b *Broker) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, c := range b.conns {
		if c.Context().Err() == nil {
			n++
		}
	}
	return n
}

// Drop closes all connections there are with a code. The broker goes on listening.
func (b *Broker) Drop(code quic.ApplicationErrorCode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		transport.Close(c, code)
	}
}

func (b *Broker) accept() {
	for {
		conn, err := b.listener.Accept(context.Background())
		if err != nil {
			return
		}
		b.mu.Lock()
		b.conns = append(b.conns, conn)
		b.mu.Unlock()
		b.work.Go(func() { b.serve(conn) })
	}
}

func (b *Broker) serve(conn *quic.Conn) {
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		b.work.Go(func() { (&Stream{Broker: b, Conn: conn, stream: stream}).run() })
	}
}
