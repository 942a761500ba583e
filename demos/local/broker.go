package local

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/sessionactor/quicconn"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/transport"
)

// Namespace is the one that every demo works in.
const Namespace = "default"

// DefaultTenant is the tenant when the options name none.
const DefaultTenant = "demo"

// patience is how long starting or closing may take before something is wrong.
const patience = time.Minute

// Stream is a stream of so many shards; 0 means 1. A durable one needs a disk, see node.Options.
type Stream struct {
	Name    string
	Shards  uint32
	Durable bool
}

// Options say what the broker serves. Caches have one shard each.
type Options struct {
	Tenant  string // "" means DefaultTenant
	Streams []Stream
	Caches  []string
	// Identity, when not nil, is who the broker is and where it listens; else it is somebody new, anywhere.
	Identity *Identity
	// Adjust, when not nil, may change how the node is put together before it starts.
	Adjust func(*node.Options)
}

// Broker is a running broker. Close it in the end.
type Broker struct {
	node     *node.Node
	listener *transport.Listener
	identity *Identity
	tenant   string
	registry *prometheus.Registry
}

// Start runs a broker and returns once it serves what the options name.
func Start(o Options) (*Broker, error) {
	if o.Tenant == "" {
		o.Tenant = DefaultTenant
	}
	if o.Identity == nil {
		var err error
		if o.Identity, err = NewIdentity("127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("start broker: %w", err)
		}
	}
	b := &Broker{registry: prometheus.NewRegistry(), tenant: o.Tenant, identity: o.Identity}
	applied := make(chan uint64, 1)
	options := node.Options{
		Clock: actors.RealClock(), Events: actors.DiscardEvents(), Logger: slog.New(slog.DiscardHandler), Registerer: b.registry,
		Rand: randomSeed, Limits: node.DefaultLimits(), Auth: gatekeeper{b.tenant, b.identity.Token}, Applied: func(v uint64) { applied <- v },
	}
	if o.Adjust != nil {
		o.Adjust(&options)
	}
	n, err := node.New(options)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	b.node = n
	if err := b.listen(); err != nil {
		return nil, errors.Join(fmt.Errorf("start broker: %w", err), b.Close())
	}
	n.Apply(route.Desired{Version: 1, Assignments: o.assignments()})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-applied:
		return b, nil
	case <-timer.C:
		return nil, errors.Join(fmt.Errorf("start broker: its streams and caches are not there after %v", patience), b.Close())
	}
}

func (o Options) assignments() (out []route.Assignment) {
	add := func(kind route.Kind, name string, shards uint32, durable bool) {
		n := route.Name{Kind: kind, Tenant: o.Tenant, Namespace: Namespace, Name: name}
		out = append(out, route.Assignment{Name: n, Incarnation: 1, Generation: 1, Shards: shards, Durable: durable})
	}
	for _, s := range o.Streams {
		add(route.Stream, s.Name, max(1, s.Shards), s.Durable)
	}
	for _, name := range o.Caches {
		add(route.Cache, name, 1, false)
	}
	return out
}

// listen opens the port and begins to serve.
func (b *Broker) listen() error {
	source, err := transport.NewCertSource(b.identity.Cert, b.identity.Key)
	if err != nil {
		return err
	}
	l, err := transport.Listen(transport.ListenOptions{Addr: b.identity.Addr, TLS: transport.ServerTLS(source, transport.Policy{}), StatelessResetKey: transport.ResetKey(b.identity.Key)})
	if err != nil {
		return err
	}
	b.listener = l
	return b.node.Listen(quicconn.NewAcceptor(l, node.DefaultLimits().Delivery))
}

// Client returns options that connect to the broker; everything else is at its default.
func (b *Broker) Client() client.Options {
	return client.Options{Addrs: []string{b.listener.Addr().String()}, TenantID: b.tenant, Token: b.identity.Token, CAPEM: b.identity.CA}
}

// Metric is the sum of a counter or gauge of the broker over all its labels. An unknown name is an error: a demo must not
// take a misspelled metric for a zero.
func (b *Broker) Metric(name string) (float64, error) {
	families, err := b.registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("read metric %s: %w", name, err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		sum := 0.0
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum, nil
	}
	return 0, fmt.Errorf("read metric %s: the broker has none of this name", name)
}

// Close stops the broker and whatever still uses it.
func (b *Broker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := b.node.Close(ctx)
	if b.listener != nil {
		err = errors.Join(err, b.listener.Close())
	}
	if err != nil {
		return fmt.Errorf("close broker: %w", err)
	}
	return nil
}

// randomSeed seeds what a node does at random.
func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	return binary.BigEndian.Uint64(b[:])
}
