package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quic-go/quic-go"
	"go.uber.org/goleak"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/sessionactor/quicconn"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

const (
	tenant    = "t1"
	namespace = "default"
)

// rights allow everything in the tenant.
type rights struct{}

func (rights) Tenant() string                                     { return tenant }
func (rights) Subject() string                                    { return "alice" }
func (rights) Allows(sessioncore.Action, sessioncore.Object) bool { return true }

// gatekeeper takes the token "good".
type gatekeeper struct{}

func (gatekeeper) Authenticate(in, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	if in == tenant && token == "good" {
		return rights{}, nil
	}
	f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
	return nil, &f
}

// broker is a node behind a QUIC listener on loopback.
type broker struct {
	t        testing.TB
	node     *Node
	listener *transport.Listener
	ca       *transport.CA
	registry *prometheus.Registry
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start runs a broker with a stream "orders", one of four shards, "wide", and a cache "users".
func start(t testing.TB, change ...func(*Options)) *broker {
	t.Helper()
	b := &broker{t: t, registry: prometheus.NewRegistry()}
	applied := make(chan uint64, 1)
	o := Options{
		Clock: actors.RealClock(), Events: actors.DiscardEvents(), Logger: slog.New(slog.DiscardHandler), Registerer: b.registry,
		Rand: func() uint64 { return 1 }, Limits: DefaultLimits(), Auth: gatekeeper{}, AuthTimeout: patience, Applied: func(v uint64) { applied <- v },
	}
	o.Limits.AckWait = patience
	for _, f := range change {
		f(&o)
	}
	b.node = must(New(o))(t)
	b.ca = must(transport.NewCA("test authority", time.Now(), rand.Reader))(t)
	cert, key, err := b.ca.Issue(transport.LeafRequest{Names: []string{"127.0.0.1"}, Now: time.Now(), Lifetime: time.Hour})
	source := must(transport.NewCertSource(must(cert, err)(t), key))(t)
	b.listener = must(transport.Listen(transport.ListenOptions{Addr: "127.0.0.1:0", TLS: transport.ServerTLS(source, transport.Policy{})}))(t)
	t.Cleanup(b.stop)
	if err := b.node.Listen(quicconn.NewAcceptor(b.listener, DefaultLimits().Delivery)); err != nil {
		t.Fatal(err)
	}
	b.node.Apply(route.Desired{Version: 1, Assignments: []route.Assignment{resource(route.Stream, "orders", 1), resource(route.Cache, "users", 1), resource(route.Stream, "wide", 4)}})
	select {
	case <-applied:
	case <-within(t).Done():
		t.Fatal("the assignment was not applied")
	}
	return b
}

func resource(kind route.Kind, name string, shards uint32) route.Assignment {
	n := route.Name{Kind: kind, Tenant: tenant, Namespace: namespace, Name: name}
	return route.Assignment{Name: n, Incarnation: 1, Generation: 1, Shards: shards}
}

func (b *broker) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.node.Close(ctx); err != nil {
		b.t.Error(err)
	}
	if err := b.listener.Close(); err != nil {
		b.t.Error(err)
	}
	for _, name := range []string{"felix_publish_inflight_bytes", "felix_partial_frame_bytes", "felix_client_connections"} {
		eventually(b.t, name+" is back to 0", func() bool { return b.metric(name) == 0 })
	}
}

func (b *broker) metric(name string) (total float64) {
	b.t.Helper()
	for _, f := range must(b.registry.Gather())(b.t) {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	timeout, look := time.NewTimer(patience), time.NewTicker(time.Millisecond)
	defer timeout.Stop()
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-timeout.C:
			t.Errorf("it never happened: %s", what)
			return
		}
	}
}

// peer is a client written here, from QUIC and the wire format alone.
type peer struct {
	t testing.TB
	c *quic.Conn
}

func (b *broker) dial(protocols ...string) *peer {
	b.t.Helper()
	c := must(b.try(protocols...))(b.t)
	return &peer{t: b.t, c: c}
}

// try dials, where the broker may close the connection at any moment.
func (b *broker) try(protocols ...string) (*quic.Conn, error) {
	b.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b.ca.CertPEM)
	c, err := quic.DialAddr(within(b.t), b.listener.Addr().String(),
		&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, NextProtos: protocols},
		&quic.Config{MaxIncomingUniStreams: 4096, InitialPacketSize: 1200, HandshakeIdleTimeout: patience, MaxIdleTimeout: patience})
	if err == nil {
		b.t.Cleanup(func() { _ = c.CloseWithError(0, "") })
	}
	return c, err
}

// line is one stream of a peer; s is nil on an event stream.
type line struct {
	t testing.TB
	s *quic.Stream
	r io.Reader
}

func (p *peer) bare() *line {
	p.t.Helper()
	s := must(p.c.OpenStreamSync(within(p.t)))(p.t)
	_ = s.SetDeadline(time.Now().Add(patience))
	return &line{t: p.t, s: s, r: s}
}

// open opens a stream, authenticates it and returns the text of the answer.
func (p *peer) open(auth *wire.Auth) (*line, string) {
	p.t.Helper()
	l := p.bare()
	return l, string(l.ask(auth).payload)
}

// frame is one frame from the broker.
type frame struct {
	flags   wire.Flags
	payload []byte
}

func (l *line) raw(b []byte) {
	l.t.Helper()
	if _, err := l.s.Write(b); err != nil {
		l.t.Fatalf("write to the broker: %v", err)
	}
}

func (l *line) read() (frame, error) {
	head := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(l.r, head); err != nil {
		return frame{}, err
	}
	h, err := wire.ParseHeader(head, wire.MaxPayload)
	if err != nil {
		return frame{}, err
	}
	f := frame{flags: h.Flags, payload: make([]byte, h.Length)}
	_, err = io.ReadFull(l.r, f.payload)
	return f, err
}

func (l *line) next() frame {
	l.t.Helper()
	f, err := l.read()
	if err != nil {
		l.t.Fatalf("read from the broker: %v", err)
	}
	return f
}

func (l *line) ask(m wire.Message) frame {
	l.t.Helper()
	l.raw(wire.AppendJSONFrame(nil, m))
	return l.next()
}

func (l *line) says(m wire.Message, want string) {
	l.t.Helper()
	if got := string(l.ask(m).payload); got != want {
		l.t.Errorf("%s was answered\n%s, want\n%s", m.MessageType(), got, want)
	}
}

// events waits for the next event stream and takes its hello.
func (p *peer) events() (*line, uint64) {
	p.t.Helper()
	s := must(p.c.AcceptUniStream(within(p.t)))(p.t)
	_ = s.SetReadDeadline(time.Now().Add(patience))
	l := &line{t: p.t, r: s}
	hello, ok := must(wire.DecodeJSON(l.next().payload))(p.t).(*wire.EventStreamHello)
	if !ok {
		p.t.Fatal("an event stream without hello")
	}
	return l, hello.SubscriptionID
}

// finish ends both halves, which gives the stream's place back.
func (l *line) finish() {
	_ = l.s.Close()
	l.s.CancelRead(0)
}

func nothing() *wire.Auth { return &wire.Auth{TenantID: tenant, Token: "good"} }

func offering(flags wire.Flags, features wire.Features, hi uint32) *wire.Auth {
	a := nothing()
	a.ClientFlags, a.ClientFeatures, a.ClientFeaturesHi = wire.Some(flags), wire.Some(features), wire.Some(hi)
	return a
}

// today are the bits of the reference client.
func today() *wire.Auth { return offering(8191, 4218945535, 15) }

// batchTo is an acked binary publish.
func batchTo(stream string, id uint64, payloads ...string) []byte {
	p := &wire.Publish{
		Flags: wire.FlagPublishBatch | wire.FlagPublishAcked, RequestID: id, Ack: wire.AckPerBatch,
		Tenant: []byte(tenant), Namespace: []byte(namespace), Stream: []byte(stream), Count: uint32(len(payloads)),
	}
	for _, s := range payloads {
		p.Region = wire.AppendPayload(p.Region, []byte(s))
	}
	return wire.AppendPublish(nil, p)
}

func (f frame) String() string { return fmt.Sprintf("0x%04x %q", uint16(f.flags), f.payload) }
