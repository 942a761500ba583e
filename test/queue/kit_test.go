package queue

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/sessionactor/quicconn"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire/id"
)

const (
	tenant    = "acme"
	namespace = "default"
	jobs      = "jobs"    // the one stream, of one shard
	workers   = "workers" // its group
)

// site is what outlives its brokers: who they are, where they listen, and what the control plane knows.
type site struct {
	t         testing.TB
	identity  *local.Identity
	retention route.Retention
	// What a test changes; nil: nothing.
	store func(*disklog.Options)
	disk  func(*shardactor.DiskOptions)
	group func(*groupcore.Options)

	mu  sync.Mutex
	log id.LogID
}

func newSite(t testing.TB, group func(*groupcore.Options)) *site {
	t.Helper()
	return &site{t: t, identity: must(local.NewIdentity(testkit.FreePort(t, "udp")))(t), group: group}
}

// desired is what brokers are to host.
func (s *site) desired(version uint64) route.Desired {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := route.Assignment{
		Name:        route.Name{Kind: route.Stream, Tenant: tenant, Namespace: namespace, Name: jobs},
		Incarnation: 1, Generation: 1, Shards: 1, Durable: true, Retention: s.retention,
	}
	if !s.log.IsZero() {
		a.Logs = string(s.log[:])
	}
	return route.Desired{Version: version, Assignments: []route.Assignment{a}}
}

// opened notes the identity of the log, as a control plane does.
func (s *site) opened(_ route.Name, _ id.Incarnation, _ uint32, log id.LogID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log
}

// broker is one broker of a site, on a disk.
type broker struct {
	t        testing.TB
	site     *site
	mem      *vfs.Mem
	mains    *testkit.Mains
	fault    *vfs.Fault
	pool     *diskpool.Pool
	store    *disklog.Store
	node     *node.Node
	listener *transport.Listener
	registry *prometheus.Registry
	damaged  chan error
	once     sync.Once
}

// start runs a broker on a disk and returns once its stream is open. It is stopped when the test ends.
func (s *site) start(mem *vfs.Mem) *broker {
	s.t.Helper()
	b := &broker{
		t: s.t, site: s, mem: mem, registry: prometheus.NewRegistry(), damaged: make(chan error, 64), pool: diskpool.New(diskpool.Options{}),
	}
	b.mains = testkit.NewMains(mem)
	b.fault = vfs.NewFault(b.mains, nil)
	slots := diskpool.NewReadSlots(diskpool.DefaultReadSlots)
	so := disklog.Options{Exec: b.pool, Slots: slots, SegmentBytes: 128 << 10}
	if s.store != nil {
		s.store(&so)
	}
	b.store = must(disklog.OpenStore(b.fault, so))(s.t)
	ready := make(chan struct{})
	disk := shardactor.DefaultDiskOptions()
	disk.Store, disk.Exec, disk.Slots, disk.LogOpened = b.store, b.pool, slots, s.opened
	disk.Ready = func() { close(ready) }
	disk.OnDamaged = func(err error) { b.damaged <- err }
	if s.disk != nil {
		s.disk(&disk)
	}
	if s.group != nil {
		s.group(&disk.Groups.Options)
	}
	limits := node.DefaultLimits()
	limits.AckWait = testkit.Patience // a machine that is busy leaves no outcome unknown
	b.node = must(node.New(node.Options{
		Clock: actors.RealClock(), Events: actors.DiscardEvents(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Registerer: b.registry,
		Rand: testkit.RandomSeed, Limits: limits, Auth: testkit.Gate{Tenant: tenant, Token: s.identity.Token}, Disk: &disk,
	}))(s.t)
	source := must(transport.NewCertSource(s.identity.Cert, s.identity.Key))(s.t)
	b.listener = must(transport.Listen(transport.ListenOptions{
		Addr: s.identity.Addr, TLS: transport.ServerTLS(source, transport.Policy{}), StatelessResetKey: transport.ResetKey(s.identity.Key),
	}))(s.t)
	s.t.Cleanup(b.stop)
	b.node.Apply(s.desired(1))
	select {
	case <-ready:
	case err := <-b.damaged:
		s.t.Fatal(err)
	case <-time.After(testkit.Patience):
		s.t.Fatal("the logs are not open")
	}
	if err := b.node.Listen(quicconn.NewAcceptor(b.listener, node.DefaultLimits().Delivery)); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// stop ends the broker in order; a second time it does nothing.
func (b *broker) stop() { b.end(b.node.Drain) }

// killed is what a kill at this moment leaves of the disk: all that was written.
func killed(m *vfs.Mem) *vfs.Mem { return m.Clone() }

// unplugged is the same for a power cut: what was synced.
func unplugged(m *vfs.Mem) *vfs.Mem { return m.CrashHard() }

// crash ends the broker at once, and returns what its disk is then.
func (b *broker) crash(leave func(*vfs.Mem) *vfs.Mem) *vfs.Mem {
	image := b.mains.Cut(leave)
	b.end(func(context.Context) error { return nil })
	return image
}

func (b *broker) end(drain func(context.Context) error) {
	b.once.Do(func() {
		b.fault.Set(nil)
		ctx, cancel := testkit.Within()
		defer cancel()
		if err := errors.Join(drain(ctx), b.node.Close(ctx), b.listener.Close(), b.store.Close()); err != nil {
			b.t.Errorf("end the broker: %v", err)
		}
		select {
		case <-b.pool.Close():
		case <-ctx.Done():
			b.t.Error("jobs of the disk are still running")
		}
	})
}

// metric is the sum of a metric over all its labels.
func (b *broker) metric(name string) float64 {
	b.t.Helper()
	return testkit.Sum(b.t, b.registry, name)
}

func must[T any](v T, err error) func(testing.TB) T { return testkit.Must(v, err) }

func size(name string) int { return testkit.Size(name) }
