package hostile

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/sessionactor/quicconn"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// This file is the broker's process. It serves real QUIC on loopback and answers commands, one line each, on its standard input.

const (
	tenant    = "t1"
	namespace = "default"
	goodToken = "good"
	busyKind  = "busy" // streams of this name prefix get slowed actors
)

// setup is what a test changes in its broker. Zeros are defaults.
type setup struct {
	AuthTimeout    time.Duration
	Handshake      time.Duration
	MaxConnections int
	MaxPerIP       int
	SocketBuffers  int
	NoOffload      bool
}

// begun is the broker's first line.
type begun struct {
	Addr string
	CA   string
}

// state is the answer to a command: what the process holds. Memory is looked at after a collection when that was asked for.
type state struct {
	Resident   int64 // bytes
	Heap       int64 // bytes
	Goroutines int
	Open       int // connections with a place at the listener
	Metrics    map[string]float64
	Events     map[string]int
}

// rights allow everything in the tenant.
type rights struct{}

func (rights) Tenant() string                                     { return tenant }
func (rights) Subject() string                                    { return "somebody" }
func (rights) Allows(sessioncore.Action, sessioncore.Object) bool { return true }

// gatekeeper takes one token.
type gatekeeper struct{}

func (gatekeeper) Authenticate(in, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	if in == tenant && token == goodToken {
		return rights{}, nil
	}
	f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
	return nil, &f
}

// smallLimits keep the store of what tests publish small and soon full, so that memory tells of leaks and not of data.
func smallLimits() node.Limits {
	l := node.DefaultLimits()
	l.RingBatches, l.RingBytes, l.CacheBytes = 256, 1<<20, 2<<20
	return l
}

// busyActor computes at each turn for as long as it is told.
type busyActor struct {
	actors.Actor
	nanos *atomic.Int64
}

// Receive implements actors.Actor.
func (a busyActor) Receive(t *actors.Turn) {
	a.Actor.Receive(t)
	for began, d := time.Now(), time.Duration(a.nanos.Load()); time.Since(began) < d; { // computing, not waiting
	}
}

type broker struct {
	node     *node.Node
	listener *transport.Listener
	registry *prometheus.Registry
	events   *eventCount
	busy     atomic.Int64
}

// serveBroker is the main function of the broker's process.
func serveBroker(config string, in io.Reader, out io.Writer) (code int) {
	var s setup
	if err := json.Unmarshal([]byte(config), &s); err != nil {
		return complain(err)
	}
	b := &broker{registry: prometheus.NewRegistry(), events: newEventCount()}
	ca, err := b.start(s)
	if err != nil {
		return complain(err)
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(begun{Addr: b.listener.Addr().String(), CA: ca}); err != nil {
		return complain(err)
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := answers.Encode(b.perform(lines.Text())); err != nil {
			return complain(err)
		}
	}
	if err := b.stop(); err != nil {
		return complain(err)
	}
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "broker:", err)
	return 1
}

func (b *broker) start(s setup) (ca string, err error) {
	applied := make(chan uint64, 1)
	b.node, err = node.New(node.Options{
		Clock: actors.RealClock(), Events: b.events, Logger: slog.New(slog.DiscardHandler), Registerer: b.registry,
		Rand: func() uint64 { return 1 }, Limits: smallLimits(), Auth: gatekeeper{}, AuthTimeout: s.AuthTimeout,
		Applied: func(v uint64) { applied <- v },
		WrapShard: func(name route.Name, _ uint32, a actors.Actor) actors.Actor {
			if name.Name == busyKind {
				return busyActor{a, &b.busy}
			}
			return a
		},
	})
	if err != nil {
		return "", err
	}
	if ca, err = b.listen(s); err != nil {
		return "", err
	}
	b.node.Apply(route.Desired{Version: 1, Assignments: []route.Assignment{
		resource(route.Stream, "orders", 1), resource(route.Stream, "other", 1), resource(route.Stream, busyKind, 8),
		resource(route.Stream, "wide", 4), resource(route.Cache, "users", 1),
	}})
	<-applied
	return ca, nil
}

func resource(kind route.Kind, name string, shards uint32) route.Assignment {
	n := route.Name{Kind: kind, Tenant: tenant, Namespace: namespace, Name: name}
	return route.Assignment{Name: n, Incarnation: 1, Generation: 1, Shards: shards}
}

func (b *broker) listen(s setup) (caPEM string, err error) {
	ca, err := transport.NewCA("test authority", time.Now(), rand.Reader)
	if err != nil {
		return "", err
	}
	cert, key, err := ca.Issue(transport.LeafRequest{Names: []string{"127.0.0.1", "localhost"}, Now: time.Now(), Lifetime: time.Hour})
	if err != nil {
		return "", err
	}
	source, err := transport.NewCertSource(cert, key)
	if err != nil {
		return "", err
	}
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "refused", Help: "Connections refused."}, []string{"reason"})
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "failed", Help: "Handshakes failed."}, []string{"reason"})
	b.registry.MustRegister(refused, failed)
	o := transport.ListenOptions{
		Addr: "127.0.0.1:0", TLS: transport.ServerTLS(source, transport.Policy{}), MaxConnections: s.MaxConnections, MaxPerIP: s.MaxPerIP,
		QUIC: transport.ServerQUIC(transport.ServerOptions{HandshakeTimeout: s.Handshake}), SocketBuffers: s.SocketBuffers,
		OnRefused:         func(reason string) { refused.WithLabelValues(reason).Inc() },
		OnHandshakeFailed: func(reason string, _ error) { failed.WithLabelValues(reason).Inc() },
		OnEvent:           func(e transport.Event) { b.events.count(string(e.Kind)) },
	}
	if s.NoOffload {
		o.ReceiveOffload = transport.OffloadOff
	}
	if b.listener, err = transport.Listen(o); err != nil {
		return "", err
	}
	return string(ca.CertPEM), b.node.Listen(quicconn.Acceptor{Listener: b.listener})
}

func (b *broker) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.node.Close(ctx); err != nil {
		return err
	}
	return b.listener.Close()
}
