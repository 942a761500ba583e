package durable

import (
	"errors"
	"io"
	"log/slog"
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
)

// stream is one that a site has.
type stream struct {
	name      string
	shards    uint32
	retention route.Retention
	compress  bool
}

// site is what outlives its brokers: who they are, where they listen, and what the control plane knows.
type site struct {
	t        testing.TB
	identity *local.Identity
	streams  []stream // in the order of their names
	// What a test changes in its brokers; nil: nothing.
	node  func(*node.Options)
	disk  func(*shardactor.DiskOptions)
	store func(*disklog.Options)

	mu      sync.Mutex
	logs    map[string][]id.LogID
	version uint64
}

func newSite(t testing.TB, streams ...stream) *site {
	t.Helper()
	if len(streams) == 0 {
		streams = []stream{{name: "orders"}}
	}
	return &site{t: t, identity: testkit.Must(local.NewIdentity(testkit.FreePort(t, "udp")))(t), streams: streams, logs: map[string][]id.LogID{}}
}

// desired is what brokers are to host now.
func (s *site) desired() route.Desired {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	d := route.Desired{Version: s.version}
	for _, x := range s.streams {
		a := route.Assignment{
			Name:        route.Name{Kind: route.Stream, Tenant: tenant, Namespace: namespace, Name: x.name},
			Incarnation: 1, Generation: id.Generation(s.version), Shards: max(1, x.shards), Durable: true, Retention: x.retention, Compress: x.compress,
		}
		a.Generation = 1
		known := false
		for n := range a.Shards {
			var log id.LogID
			if all := s.logs[x.name]; int(n) < len(all) {
				log = all[n]
			}
			known = known || !log.IsZero()
			a.Logs += string(log[:])
		}
		if !known {
			a.Logs = ""
		}
		d.Assignments = append(d.Assignments, a)
	}
	return d
}

// opened notes the identity of a log, as a control plane does.
func (s *site) opened(name route.Name, _ id.Incarnation, shard uint32, log id.LogID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.logs[name.Name]) <= int(shard) {
		s.logs[name.Name] = append(s.logs[name.Name], id.LogID{})
	}
	s.logs[name.Name][shard] = log
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
	ready    chan struct{}
	applied  chan uint64
	once     sync.Once
}

// start runs a broker on a disk and returns once its streams are open. It is stopped when the test ends.
func (s *site) start(mem *vfs.Mem) *broker {
	s.t.Helper()
	b := s.launch(mem)
	select {
	case <-b.ready:
	case err := <-b.damaged:
		s.t.Fatal(err)
	case <-time.After(testkit.Patience):
		s.t.Fatal("the logs are not open")
	}
	return b
}

// launch is start without waiting for the logs.
func (s *site) launch(mem *vfs.Mem) *broker {
	s.t.Helper()
	b := &broker{
		t: s.t, site: s, mem: mem, registry: prometheus.NewRegistry(), damaged: make(chan error, 64), ready: make(chan struct{}), applied: make(chan uint64, 64),
		pool: diskpool.New(diskpool.Options{}),
	}
	b.mains = testkit.NewMains(mem)
	b.fault = vfs.NewFault(b.mains, nil)
	slots := diskpool.NewReadSlots(diskpool.DefaultReadSlots)
	so := disklog.Options{Exec: b.pool, Slots: slots, SegmentBytes: 128 << 10}
	if s.store != nil {
		s.store(&so)
	}
	b.store = testkit.Must(disklog.OpenStore(b.fault, so))(s.t)
	disk := shardactor.DefaultDiskOptions()
	disk.Store, disk.Exec, disk.Slots, disk.LogOpened = b.store, b.pool, slots, s.opened
	disk.Ready = func() { close(b.ready) }
	disk.OnDamaged = func(err error) { b.damaged <- err }
	if s.disk != nil {
		s.disk(&disk)
	}
	o := node.Options{
		Clock: actors.RealClock(), Events: actors.DiscardEvents(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Registerer: b.registry,
		Rand: testkit.RandomSeed, Limits: node.DefaultLimits(), Auth: testkit.Gate{Tenant: tenant, Token: s.identity.Token}, Disk: &disk, Applied: func(v uint64) { b.applied <- v },
	}
	o.Limits.AckWait = testkit.Patience // a machine that is busy leaves no outcome unknown
	if s.node != nil {
		s.node(&o)
	}
	b.node = testkit.Must(node.New(o))(s.t)
	source := testkit.Must(transport.NewCertSource(s.identity.Cert, s.identity.Key))(s.t)
	b.listener = testkit.Must(transport.Listen(transport.ListenOptions{
		Addr: s.identity.Addr, TLS: transport.ServerTLS(source, transport.Policy{}), StatelessResetKey: transport.ResetKey(s.identity.Key),
	}))(s.t)
	if err := b.node.Listen(quicconn.NewAcceptor(b.listener, node.DefaultLimits().Delivery)); err != nil {
		s.t.Fatal(err)
	}
	b.apply()
	s.t.Cleanup(b.stop)
	return b
}

// apply makes the broker host what the site has now, and waits until it does.
func (b *broker) apply() {
	b.t.Helper()
	d := b.site.desired()
	b.node.Apply(d)
	for {
		select {
		case v := <-b.applied:
			if v == d.Version {
				return
			}
		case <-time.After(testkit.Patience):
			b.t.Fatal("the streams are not there")
		}
	}
}

// stop ends the broker in order; a second time it does nothing.
func (b *broker) stop() {
	b.once.Do(func() {
		b.fault.Set(nil)
		ctx, cancel := testkit.Within()
		defer cancel()
		if err := errors.Join(b.node.Drain(ctx), b.node.Close(ctx), b.listener.Close(), b.store.Close()); err != nil {
			b.t.Errorf("stop: %v", err)
		}
		select {
		case <-b.pool.Close():
		case <-ctx.Done():
			b.t.Error("jobs of the disk are still running")
		}
	})
}

// powerCut ends the broker at once, and returns what its disk is then.
func (b *broker) powerCut(leave func(*vfs.Mem) *vfs.Mem) *vfs.Mem {
	image := b.mains.Cut(leave)
	b.abandon()
	return image
}

// hard leaves what was synced and nothing else.
func hard(m *vfs.Mem) *vfs.Mem { return m.CrashHard() }

// abandon takes a broker away whose disk no longer counts.
func (b *broker) abandon() {
	b.once.Do(func() {
		b.fault.Set(nil)
		ctx, cancel := testkit.Within()
		defer cancel()
		if err := errors.Join(b.node.Close(ctx), b.listener.Close(), b.store.Close()); err != nil {
			b.t.Errorf("take the broker away: %v", err)
		}
		<-b.pool.Close()
	})
}

// metric is the sum of a metric over all its labels.
func (b *broker) metric(name string) float64 {
	b.t.Helper()
	return testkit.Sum(b.t, b.registry, name)
}

// connect is a client of the site, as long as the test goes.
func (s *site) connect(change ...func(*client.Options)) *client.Client {
	s.t.Helper()
	o := client.Options{Addrs: []string{s.identity.Addr}, TenantID: tenant, Token: s.identity.Token, CAPEM: s.identity.CA}
	for _, f := range change {
		f(&o)
	}
	c := testkit.Connect(s.t, o)
	s.t.Cleanup(func() { testkit.HangUp(c) })
	return c
}

// impatient is a client that gives up soon.
func impatient(o *client.Options) { o.RetryDeadline = 4 * time.Second }

// read is all of a shard's records.
func read(t testing.TB, c *client.Client, name string, shard uint32, from id.Offset) (all []client.Record) {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	for r, err := range c.ReadRange(ctx, namespace, name, client.ReadOptions{Shard: shard, From: from}) {
		if err != nil {
			t.Fatalf("read %s/%d after %d records: %v", name, shard, len(all), err)
		}
		all = append(all, r)
	}
	return all
}

// publish publishes a record that must be acknowledged.
func publish(t testing.TB, c *client.Client, name, payload string) id.Offset {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	r, err := c.Publish(ctx, namespace, name, []byte(payload))
	if err != nil || !r.HasOffset {
		t.Fatalf("publish %.20q to %s: %+v, %v", payload, name, r, err)
	}
	return r.Offset
}

// rollEvery makes segments of so many bytes.
func rollEvery(bytes int64) func(*disklog.Options) {
	return func(o *disklog.Options) { o.SegmentBytes = bytes }
}

// bounds is the oldest offset of shard 0, and the next one.
func bounds(t testing.TB, c *client.Client, name string) (oldest, next id.Offset) {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	oldest, next, err := c.Bounds(ctx, namespace, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return oldest, next
}
