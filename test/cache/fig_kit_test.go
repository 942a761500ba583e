package cache

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
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
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire/id"
)

// measured is one broker on a real folder, whose costs are measured. Its life can be ended and begun again on the same files.
type measured struct {
	t        testing.TB
	identity *local.Identity
	dir      string
	caches   []route.Assignment
	disk     func(*shardactor.DiskOptions) // what a test changes; nil: nothing
	store    func(*disklog.Options)
	unsynced bool // nothing is synced

	mu      sync.Mutex
	logs    map[logPlace]id.LogID
	version uint64 // of what was desired last

	// Of the life that goes on:
	files    *countedFS
	fs       *vfs.Fault // over files
	clock    *countedClock
	pool     *diskpool.Pool
	stored   *disklog.Store
	node     *node.Node
	listener *transport.Listener // nil: it does not listen
	metrics  *prometheus.Registry
	over     func()
}

// logPlace is the shard of a cache.
type logPlace struct {
	name  route.Name
	shard uint32
}

// newMeasured is a broker that does not run yet.
func newMeasured(t testing.TB, caches ...route.Assignment) *measured {
	t.Helper()
	return &measured{
		t: t, identity: testkit.Must(local.NewIdentity("127.0.0.1:0"))(t), dir: t.TempDir(), caches: caches, logs: make(map[logPlace]id.LogID),
	}
}

// cacheOf is a cache to be hosted.
func cacheOf(name string, shards uint32, durable bool) route.Assignment {
	return route.Assignment{
		Name:        route.Name{Kind: route.Cache, Tenant: tenant, Namespace: namespace, Name: name},
		Incarnation: 1, Generation: 1, Shards: shards, Durable: durable,
	}
}

func (m *measured) desired() route.Desired {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	d := route.Desired{Version: m.version, Assignments: slices.Clone(m.caches)}
	for i := range d.Assignments {
		a := &d.Assignments[i]
		for n := range a.Shards {
			log, known := m.logs[logPlace{a.Name, n}]
			if !known {
				a.Logs = "" // it was never opened: no shard's log is known
				break
			}
			a.Logs += string(log[:])
		}
	}
	return d
}

// start begins a life, and returns once every cache is served, after as long as that took.
func (m *measured) start() time.Duration {
	m.t.Helper()
	began := time.Now()
	m.files, m.clock = &countedFS{FS: testkit.Must(vfs.NewOS(m.dir))(m.t), unsynced: m.unsynced}, &countedClock{Clock: actors.RealClock()}
	m.fs = vfs.NewFault(m.files, nil)
	m.pool = diskpool.New(diskpool.Options{})
	slots := diskpool.NewReadSlots(diskpool.DefaultReadSlots)
	store := disklog.Options{Exec: m.pool, Slots: slots, Preallocate: true}
	if m.store != nil {
		m.store(&store)
	}
	m.stored = testkit.Must(disklog.OpenStore(m.fs, store))(m.t)
	applied, damaged := make(chan uint64, 2), make(chan error, 1)
	disk := shardactor.DefaultDiskOptions()
	disk.Store, disk.Exec, disk.Slots = m.stored, m.pool, slots
	disk.Ready = func() {}
	disk.OnDamaged = func(err error) { damaged <- err }
	disk.LogOpened = func(name route.Name, _ id.Incarnation, shard uint32, log id.LogID) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.logs[logPlace{name, shard}] = log
	}
	if m.disk != nil {
		m.disk(&disk)
	}
	m.metrics = prometheus.NewRegistry()
	limits := node.DefaultLimits()
	limits.AckWait = testkit.Patience // a machine that is busy leaves no outcome unknown
	m.node = testkit.Must(node.New(node.Options{
		Clock: m.clock, Events: actors.DiscardEvents(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Registerer: m.metrics,
		Rand: testkit.RandomSeed, Limits: limits, Auth: testkit.Gate{Tenant: tenant, Token: m.identity.Token}, Disk: &disk, Applied: func(v uint64) { applied <- v },
	}))(m.t)
	m.over = sync.OnceFunc(m.end)
	m.t.Cleanup(m.stop)
	m.node.Apply(m.desired())
	select {
	case <-applied:
	case err := <-damaged:
		m.t.Fatal(err)
	case <-time.After(2 * testkit.Patience):
		m.t.Fatal("the caches are not served")
	}
	for _, a := range m.caches {
		for n := range a.Shards {
			m.handle(a.Name.Name, n)
		}
	}
	return time.Since(began)
}

// stop ends the life that goes on, in order; a second time it does nothing.
func (m *measured) stop() { m.over() }

func (m *measured) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*testkit.Patience)
	defer cancel()
	m.fs.Set(nil)
	err := m.node.Drain(ctx)
	err = errors.Join(err, m.node.Close(ctx))
	if m.listener != nil {
		err = errors.Join(err, m.listener.Close())
	}
	if err = errors.Join(err, m.stored.Close()); err != nil {
		m.t.Errorf("end the broker: %v", err)
	}
	select {
	case <-m.pool.Close():
	case <-ctx.Done():
		m.t.Error("jobs of the disk are still running")
	}
	m.node, m.listener, m.stored, m.pool, m.metrics = nil, nil, nil, nil, nil
}

// handle is a shard of a cache as soon as it is served.
func (m *measured) handle(cache string, shard uint32) *shardactor.Handle {
	m.t.Helper()
	name := route.Name{Kind: route.Cache, Tenant: tenant, Namespace: namespace, Name: cache}
	var h *shardactor.Handle
	if !testkit.Eventually(m.t, "the shard is served", func() bool {
		e := m.node.Table.Get(name)
		if e == nil {
			return false
		}
		x, ok := e.Shard(shard)
		if h = x.Shard; !ok || h == nil || h.Cache == nil {
			return false
		}
		return h.Serving()
	}) {
		m.t.FailNow()
	}
	return h
}

// connect is a client, as long as the test goes.
func (m *measured) connect(change ...func(*client.Options)) *client.Client {
	m.t.Helper()
	if m.listener == nil {
		source := testkit.Must(transport.NewCertSource(m.identity.Cert, m.identity.Key))(m.t)
		m.listener = testkit.Must(transport.Listen(transport.ListenOptions{
			Addr: m.identity.Addr, TLS: transport.ServerTLS(source, transport.Policy{}), StatelessResetKey: transport.ResetKey(m.identity.Key),
		}))(m.t)
		if err := m.node.Listen(quicconn.NewAcceptor(m.listener, node.DefaultLimits().Delivery)); err != nil {
			m.t.Fatal(err)
		}
	}
	o := client.Options{Addrs: []string{m.listener.Addr().String()}, TenantID: tenant, Token: m.identity.Token, CAPEM: m.identity.CA}
	for _, f := range change {
		f(&o)
	}
	c := testkit.Connect(m.t, o)
	m.t.Cleanup(func() {
		ctx, cancel := testkit.Within()
		defer cancel()
		if err := c.Close(ctx); err != nil {
			m.t.Error(err)
		}
	})
	return c
}

// metric is the sum of a family's series: their values, or the sum of what a histogram has seen and how often.
func (m *measured) metric(name string) (sum float64, count uint64) {
	m.t.Helper()
	for _, f := range testkit.Must(m.metrics.Gather())(m.t) {
		if f.GetName() != name {
			continue
		}
		for _, x := range f.GetMetric() {
			sum += x.GetCounter().GetValue() + x.GetGauge().GetValue() + x.GetHistogram().GetSampleSum()
			count += x.GetHistogram().GetSampleCount()
		}
	}
	return sum, count
}

// window sends puts to a shard, so many under way.
type window struct {
	t     testing.TB
	h     *shardactor.Handle
	free  chan time.Duration // a place each, with what its last put took; 0 for none
	timed bool
	took  []time.Duration // if timed
}

func newWindow(t testing.TB, h *shardactor.Handle, n int) *window {
	w := &window{t: t, h: h, free: make(chan time.Duration, n)}
	for range n {
		w.free <- 0
	}
	return w
}

// stamped is what an answer goes to.
type stamped struct {
	w    *window
	sent time.Time
}

// Answer implements shardactor.Reply.
func (s *stamped) Answer(_ shardcore.Token, a shardactor.Answer) {
	if a.Refusal != nil {
		s.w.t.Errorf("refused: %v", a.Refusal)
	}
	s.w.free <- time.Since(s.sent)
}

// Flush implements shardactor.Reply.
func (*stamped) Flush() {}

// put sends a put as soon as there is a place. The key and the value are given away.
func (w *window) put(key string, value []byte) {
	w.note(<-w.free)
	m := &shardactor.CachePut{Key: key, Value: value}
	m.To(&stamped{w, time.Now()}, 0)
	if err := w.h.Ref.TrySend(m, shardactor.Size(m)); err != nil {
		w.t.Fatalf("put: %v", err)
	}
}

func (w *window) note(took time.Duration) {
	if w.timed && took > 0 {
		w.took = append(w.took, took)
	}
}

// finish waits until all is answered.
func (w *window) finish() {
	for range cap(w.free) {
		w.note(<-w.free)
	}
	for range cap(w.free) {
		w.free <- 0
	}
}

// heapAfterGC is what is reachable.
func heapAfterGC() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
