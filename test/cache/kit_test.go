package cache

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/sessionactor/quicconn"
	"github.com/felixd/felixd/shardactor"
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
	users     = "users" // the one cache
)

// site is what outlives its brokers: who they are, where they listen, and what the control plane knows.
type site struct {
	t        testing.TB
	identity *local.Identity
	shards   uint32
	disk     func(*shardactor.DiskOptions) // what a test changes in its brokers; nil: nothing

	mu   sync.Mutex
	logs []id.LogID
}

func newSite(t testing.TB, shards uint32) *site {
	t.Helper()
	return &site{t: t, identity: testkit.Must(local.NewIdentity(testkit.FreePort(t, "udp")))(t), shards: shards, logs: make([]id.LogID, shards)}
}

// desired is what brokers are to host.
func (s *site) desired() route.Desired {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := route.Assignment{
		Name:        route.Name{Kind: route.Cache, Tenant: tenant, Namespace: namespace, Name: users},
		Incarnation: 1, Generation: 1, Shards: s.shards, Durable: true,
	}
	if !s.logs[0].IsZero() {
		for _, log := range s.logs {
			a.Logs += string(log[:])
		}
	}
	return route.Desired{Version: 1, Assignments: []route.Assignment{a}}
}

// opened notes the identity of a log, as a control plane does.
func (s *site) opened(_ route.Name, _ id.Incarnation, shard uint32, log id.LogID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[shard] = log
}

// broker is one broker of a site, on a disk.
type broker struct {
	t        testing.TB
	mem      *vfs.Mem
	mains    *testkit.Mains
	fault    *vfs.Fault
	pool     *diskpool.Pool
	store    *disklog.Store
	node     *node.Node
	listener *transport.Listener
	damaged  chan error
	once     sync.Once
}

// start runs a broker on a disk and returns once its cache is open. It is stopped when the test ends.
func (s *site) start(mem *vfs.Mem) *broker {
	s.t.Helper()
	b := &broker{t: s.t, mem: mem, damaged: make(chan error, 64), pool: diskpool.New(diskpool.Options{})}
	b.mains = testkit.NewMains(mem)
	b.fault = vfs.NewFault(b.mains, nil)
	slots := diskpool.NewReadSlots(diskpool.DefaultReadSlots)
	b.store = testkit.Must(disklog.OpenStore(b.fault, disklog.Options{Exec: b.pool, Slots: slots, SegmentBytes: 128 << 10}))(s.t)
	ready := make(chan struct{})
	disk := shardactor.DefaultDiskOptions()
	disk.Store, disk.Exec, disk.Slots, disk.LogOpened = b.store, b.pool, slots, s.opened
	disk.Ready = func() { close(ready) }
	disk.OnDamaged = func(err error) { b.damaged <- err }
	if s.disk != nil {
		s.disk(&disk)
	}
	limits := node.DefaultLimits()
	limits.AckWait = testkit.Patience // a machine that is busy leaves no outcome unknown
	b.node = testkit.Must(node.New(node.Options{
		Clock: actors.RealClock(), Events: actors.DiscardEvents(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Registerer: prometheus.NewRegistry(),
		Rand: testkit.RandomSeed, Limits: limits, Auth: testkit.Gate{Tenant: tenant, Token: s.identity.Token}, Disk: &disk,
	}))(s.t)
	source := testkit.Must(transport.NewCertSource(s.identity.Cert, s.identity.Key))(s.t)
	b.listener = testkit.Must(transport.Listen(transport.ListenOptions{
		Addr: s.identity.Addr, TLS: transport.ServerTLS(source, transport.Policy{}), StatelessResetKey: transport.ResetKey(s.identity.Key),
	}))(s.t)
	s.t.Cleanup(b.stop)
	b.node.Apply(s.desired())
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

// crash ends the broker at once, and returns what its disk is then: (*vfs.Mem).Clone is a kill, leaves a power cut.
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

// leaves is what a power cut leaves, by chance: the worst, or some of what was not synced.
func leaves(rnd *rand.Rand) func(*vfs.Mem) *vfs.Mem {
	if rnd.IntN(3) == 0 {
		return (*vfs.Mem).CrashHard
	}
	return func(m *vfs.Mem) *vfs.Mem { return m.Crash(rnd.IntN) }
}

// connect is a client of the site, as long as the test goes.
func (s *site) connect() *client.Client {
	s.t.Helper()
	c := testkit.Connect(s.t, client.Options{
		Addrs: []string{s.identity.Addr}, TenantID: tenant, Token: s.identity.Token, CAPEM: s.identity.CA,
	})
	s.t.Cleanup(func() { testkit.HangUp(c) })
	return c
}
