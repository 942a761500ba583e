package testkit

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
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

// roleVariable makes a test binary be the broker; its value is the Setup.
const roleVariable = "FELIX_TESTKIT_BROKER"

// Hooks are what a package of tests adds to its broker's process.
type Hooks struct {
	// Wrap, when not nil, is put around each shard actor.
	Wrap func(name route.Name, shard uint32, a actors.Actor) actors.Actor
	// Perform, when not nil, is asked to carry out commands that are not the broker's own.
	Perform func(word, argument string)
}

// Main makes this process the broker if it was started as one, and does not return then. Call it first in TestMain.
func Main(h Hooks) {
	if text, ok := os.LookupEnv(roleVariable); ok {
		os.Exit(serve(text, h, os.Stdin, os.Stdout))
	}
}

// Place is where a broker is found: its address and the authority that its certificate comes from, as PEM.
type Place struct {
	Addr string
	CA   string
}

// rights allow everything in the tenant but what is forbidden.
type rights struct{}

func (rights) Tenant() string  { return Tenant }
func (rights) Subject() string { return "somebody" }

func (rights) Allows(_ sessioncore.Action, o sessioncore.Object) bool { return o.Name != Forbidden }

// gatekeeper takes one token.
type gatekeeper struct{}

func (gatekeeper) Authenticate(in, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	if in == Tenant && token == Token {
		return rights{}, nil
	}
	f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
	return nil, &f
}

// process is the broker, in its own process.
type process struct {
	hooks    Hooks
	node     *node.Node
	listener *transport.Listener
	registry *prometheus.Registry
	events   *eventCount
	version  uint64 // of the newest assignment
	applied  chan uint64
}

// serve is the main function of the broker's process: its address on the first line, then an answer to each command until the input ends.
func serve(config string, h Hooks, in io.Reader, out io.Writer) (code int) {
	var s Setup
	if err := json.Unmarshal([]byte(config), &s); err != nil {
		return complain(err)
	}
	b := &process{hooks: h, registry: prometheus.NewRegistry(), events: newEventCount(), applied: make(chan uint64, 64)}
	ca, err := b.start(s)
	if err != nil {
		return complain(err)
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(Place{Addr: b.listener.Addr().String(), CA: ca}); err != nil {
		return complain(err)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		if err := answers.Encode(b.perform(lines.Text())); err != nil {
			return complain(err)
		}
	}
	if err := b.stop(); err != nil {
		return complain(err)
	}
	return 0
}

// lineMax bounds a line of either direction, in bytes: an assignment of some thousand streams, or all metrics.
const lineMax = 1 << 20

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "broker:", err)
	return 1
}

func (b *process) start(s Setup) (ca string, err error) {
	limits := SmallLimits()
	if s.Limits != nil {
		limits = *s.Limits
	}
	b.node, err = node.New(node.Options{
		Clock: actors.RealClock(), Events: b.events, Logger: slog.New(slog.DiscardHandler), Registerer: b.registry,
		Rand: func() uint64 { return 1 }, Limits: limits, Auth: gatekeeper{}, AuthTimeout: s.AuthTimeout,
		Applied:   func(v uint64) { b.applied <- v },
		WrapShard: b.hooks.Wrap,
	})
	if err != nil {
		return "", err
	}
	if ca, err = b.listen(s); err != nil {
		return "", err
	}
	b.assign(s.Resources)
	return ca, nil
}

// assign makes the node host these resources and no others, and waits until it does.
func (b *process) assign(all []Resource) {
	b.version++
	d := route.Desired{Version: b.version, Assignments: assignments(all)}
	slices.SortFunc(d.Assignments, func(x, y route.Assignment) int { return x.Name.Compare(y.Name) })
	b.node.Apply(d)
	for v := range b.applied {
		if v == b.version {
			return
		}
	}
}

func (b *process) listen(s Setup) (caPEM string, err error) {
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
		QUIC: transport.ServerQUIC(transport.ServerOptions{HandshakeTimeout: s.Handshake, IdleTimeout: s.Idle}), SocketBuffers: s.SocketBuffers,
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
	return string(ca.CertPEM), b.node.Listen(quicconn.NewAcceptor(b.listener, node.DefaultLimits().Delivery))
}

func (b *process) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := b.node.Close(ctx); err != nil {
		return err
	}
	return b.listener.Close()
}
