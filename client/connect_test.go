package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// mission 180, the client side
func TestConnectOffersOnlyWhatTheClientCanReadAndUse(t *testing.T) {
	heard := make(chan wire.Auth, 1)
	b := testbroker.New(t, testbroker.Options{OnAuth: func(a *wire.Auth) *wire.Refusal {
		heard <- *a
		return nil
	}})
	connect(t, b, func(o *Options) { o.AckOnCommit = true })
	a := await(t, "auth", heard)
	if !a.Offer().Features.Has(wire.FeatureAckOnCommit) {
		t.Fatal("acknowledgement after the commit is not asked for")
	}
	offer := a.Offer()
	if a.TenantID != "t1" || a.Token != testbroker.Token || !offer.HasFlags {
		t.Fatalf("auth says %+v", a)
	}
	if offer.Flags&^wire.KnownFlags != 0 || offer.Flags&(wire.FlagEventPublisher|wire.FlagEventTimestamps) != 0 {
		t.Fatalf("flags offered: %s", offer.Flags)
	}
	if !offer.Features.Has(wire.FeatureErrorCodes|wire.FeaturePublishPipeline|wire.FeatureShardMoved|wire.FeatureCacheConditional) ||
		!offer.Features.Has(wire.FeatureCacheWatch|wire.FeatureCacheWatchRetained|wire.FeatureCounters) ||
		!offer.Features.Has(wire.FeatureConsumerGroup|wire.FeatureGroupClaimControl|wire.FeatureGroupSkipped) ||
		offer.Features&wire.FeatureGroupPublisher != 0 {
		t.Fatalf("features offered: %#x", offer.Features)
	}
}

func TestWrongTokenFailsConnectAsUnauthenticated(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{})
	_, err := Connect(within(t), optionsFor(b, func(o *Options) { o.Token = "bad" }))
	wantIs(t, err, ErrUnauthenticated)
	refused := wantAs[*BrokerError](t, err)
	if refused.Retry != wire.RetryFatal || errors.Is(err, ErrUnreachable) {
		t.Fatalf("%v: class %v", err, refused.Retry)
	}
	if failed := wantAs[*ConnectError](t, err); len(failed.Failures) != 1 || failed.Failures[0].Addr != b.Addr() {
		t.Fatalf("failures %+v", failed.Failures)
	}
	if text := err.Error(); strings.Contains(text, "no broker answered") || !strings.Contains(text, "no broker takes this client") {
		t.Errorf("a broker answered: %s", text)
	}
}

func TestDeadAddressIsPassedOverForALivingOne(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	atSomeSpeed(t, 100*time.Millisecond, func(d time.Duration) bool {
		c, err := Connect(within(t), optionsFor(b, func(o *Options) {
			o.Addrs = []string{"127.0.0.1:1", b.Addr()}
			o.DialTimeout = d
		}))
		if errors.Is(err, ErrUnreachable) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Publish(within(t), "ns", "s", []byte("x")); err != nil {
			t.Error(err)
		}
		if err := c.Close(within(t)); err != nil {
			t.Error(err)
		}
		return true
	})
}

func TestNobodyThereIsUnreachableAndNamesEachAddress(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{})
	_, err := Connect(within(t), optionsFor(b, func(o *Options) {
		o.Addrs = []string{"127.0.0.1:1", "127.0.0.1:2"}
		o.DialTimeout = 20 * time.Millisecond
	}))
	wantIs(t, err, ErrUnreachable)
	if !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Fatalf("%v does not name the addresses", err)
	}
}

func TestBrokerThatDrainsIsPassedOver(t *testing.T) {
	draining := testbroker.New(t, testbroker.Options{OnAuth: func(*wire.Auth) *wire.Refusal {
		r := wire.Refuse(wire.CodeDraining, "shutting down")
		return &r
	}})
	good := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	both := append(append([]byte{}, draining.CA().CertPEM...), good.CA().CertPEM...)
	c := connect(t, good, func(o *Options) { o.Addrs, o.CAPEM = []string{draining.Addr(), good.Addr()}, both })
	if _, err := c.Publish(within(t), "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func TestCertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	b, other := testbroker.New(t, testbroker.Options{}), testbroker.New(t, testbroker.Options{})
	_, err := Connect(within(t), optionsFor(b, func(o *Options) { o.CAPEM = other.CA().CertPEM }))
	if failed := wantAs[*transport.DialError](t, err); failed.Kind != transport.DialTLS {
		t.Fatalf("kind %q: %v", failed.Kind, err)
	}
}

func TestServerNameIsVerified(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{})
	_, err := Connect(within(t), optionsFor(b, func(o *Options) { o.ServerName = "broker.example" }))
	if failed := wantAs[*transport.DialError](t, err); failed.Kind != transport.DialTLS {
		t.Fatalf("kind %q: %v", failed.Kind, err)
	}
}

func TestCertificateIsPresentedToABrokerThatAsksForOne(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, MutualTLS: true})
	_, err := Connect(within(t), optionsFor(b))
	if err == nil {
		t.Fatal("the broker took a client without a certificate")
	}
	cert, key, err := b.CA().Issue(transport.LeafRequest{Names: []string{"client"}, Now: time.Now(), Lifetime: time.Hour, Client: true})
	if err != nil {
		t.Fatal(err)
	}
	source, err := transport.NewCertSource(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, b, func(o *Options) { o.Certificate = source })
	if _, err := c.Publish(within(t), "ns", "s", nil); err != nil {
		t.Fatal(err)
	}
}

func TestALPNIsOfferedOnlyWhenAsked(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{})
	for _, offered := range []bool{false, true} {
		c := connect(t, b, func(o *Options) { o.OfferALPN = offered; o.CAPEM, o.CAFile = nil, b.CAFile(t) })
		l, err := c.entry.publishLinks.acquire(within(t), "test")
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if offered {
			want = transport.ALPNClient
		}
		if got := l.conn.ConnectionState().TLS.NegotiatedProtocol; got != want {
			t.Fatalf("offered %v: negotiated %q", offered, got)
		}
	}
}

func TestTokenProviderIsAskedOnceMoreAfterARefusal(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{})
	tokens := []string{"expired", testbroker.Token}
	asked := 0
	c := connect(t, b, func(o *Options) {
		o.Token = ""
		o.TokenProvider = func(context.Context) (string, error) {
			token := tokens[min(asked, 1)]
			asked++
			return token, nil
		}
	})
	if asked != 2 || c.isClosed() {
		t.Fatalf("asked %d times", asked)
	}
}

func TestUnusableOptionsAreNamed(t *testing.T) {
	good := Options{Addrs: []string{"127.0.0.1:1"}, TenantID: "t", Token: "x"}
	for argument, spoil := range map[string]change{
		"Addrs":    func(o *Options) { o.Addrs = nil },
		"TenantID": func(o *Options) { o.TenantID = strings.Repeat("t", wire.MaxNameBytes+1) },
		"Token":    func(o *Options) { o.Token = "" },
		"CAFile":   func(o *Options) { o.CAPEM, o.CAFile = []byte("x"), "y" },
		"Attempts": func(o *Options) { o.Attempts = -1 },
		"Options":  func(o *Options) { o.DialTimeout = -1 },
		"TokenSource": func(o *Options) {
			o.TokenProvider = func(context.Context) (string, error) { return "", nil }
			o.TokenSource = NewTokenSource(nil)
		},
		"PublishStreams":               func(o *Options) { o.PublishStreams = 1 << 40 },
		"EventConnRecvWindow":          func(o *Options) { o.EventConnRecvWindow = 1 << 63 },
		"SubQueuePolicy":               func(o *Options) { o.SubQueuePolicy = 9 },
		"PublishSharding":              func(o *Options) { o.PublishSharding = 9 },
		"windows of event connections": func(o *Options) { o.EventConnRecvWindow, o.EventStreamRecvWindow = 1000, 2000 },
	} {
		o := good
		spoil(&o)
		_, err := Connect(within(t), o)
		if wrong := wantAs[*ArgumentError](t, err); wrong.Argument != argument {
			t.Errorf("%s: %v", argument, err)
		}
	}
	o := good
	o.CAFile = filepath.Join(t.TempDir(), "none.pem")
	_, err := Connect(within(t), o)
	wantIs(t, err, os.ErrNotExist)
}

func TestEverythingFailsWithClosedAfterClose(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b)
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	_, err := c.Publish(ctx, "ns", "s", nil)
	wantIs(t, err, ErrClosed)
	_, err = c.Subscribe(ctx, "ns", "s", SubscribeOptions{})
	wantIs(t, err, ErrClosed)
	_, _, err = c.CacheGet(ctx, "ns", "c", "k")
	wantIs(t, err, ErrClosed)
	_, err = c.StreamShards(ctx, "ns", "s")
	wantIs(t, err, ErrClosed)
}

func TestPoolsKeepKindsOfTrafficOnConnectionsOfTheirOwn(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b, func(o *Options) { o.PublishConns, o.EventConns, o.CacheConns = 1, 2, 1 })
	ctx := within(t)
	for range 2 {
		s, err := c.Subscribe(ctx, "ns", "s", SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	if _, err := c.Publish(ctx, "ns", "s", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.CachePut(ctx, "ns", "c", "k", nil, 0); err != nil {
		t.Fatal(err)
	}
	if n := b.Connections(); n != 4 {
		t.Fatalf("%d connections, want one for publishes, two for events, one for the cache", n)
	}
}

func TestOneConnectionServesEverythingByDefault(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 4}, Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b)
	ctx := within(t)
	m, err := c.SubscribeAll(ctx, "ns", "s", SubscribeAllOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := c.Publish(ctx, "ns", "s", nil, WithKey([]byte("k"))); err != nil {
		t.Fatal(err)
	}
	if err := c.CachePut(ctx, "ns", "c", "k", nil, 0); err != nil {
		t.Fatal(err)
	}
	if n := b.Connections(); n != 1 {
		t.Fatalf("%d connections, want 1", n)
	}
}
