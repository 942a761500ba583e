package sessionactor

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// siteDisk is a disk in memory, for the durable streams of one site after another.
type siteDisk struct {
	mem   *vfs.Mem
	fault *vfs.Fault // in front of mem
	pool  *diskpool.Pool
	store *disklog.Store
	disks *shardactor.Disks
	ready chan struct{}
	// inline is the longest value that is kept in memory; 0 is the default.
	inline int
	// clock says how long calls to the disk take; nil is one on which none is said to hang.
	clock diskpool.Clock
}

// patientClock is the machine's on which nothing is late before a test has lost its patience.
type patientClock struct{}

func (patientClock) Now() time.Time { return time.Now() }

func (patientClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d+patience, f).Stop
}

func newSiteDisk() *siteDisk {
	mem := vfs.NewMem()
	return &siteDisk{mem: mem, fault: vfs.NewFault(mem, nil)}
}

func (d *siteDisk) open(t testing.TB, o *shardactor.HostOptions, registry prometheus.Registerer) {
	clock := d.clock
	if clock == nil {
		clock = patientClock{}
	}
	d.pool, d.ready = diskpool.New(diskpool.Options{Clock: clock}), make(chan struct{})
	var err error
	if d.store, err = disklog.OpenStore(d.fault, disklog.Options{Exec: d.pool, SegmentBytes: 8 << 10, Slots: diskpool.NewReadSlots(32)}); err != nil {
		t.Fatal(err)
	}
	d.disks = shardactor.NewDisks(shardactor.DiskOptions{
		Store: d.store, Exec: d.pool, StateBytes: 1 << 20, IndexBytes: 64 << 20, InlineBytes: d.inline, RetentionInterval: time.Minute, KeepDeleted: time.Hour,
		OnDamaged: func(err error) { t.Error(err) }, Ready: func() { close(d.ready) },
		CacheBase: func() id.Offset { return 0 }, // easier to read than the clock, where caches begin
	})
	o.Metrics.RegisterDisks(registry, d.disks)
	o.Disks = d.disks
}

func (d *siteDisk) close(ctx context.Context, t testing.TB) {
	if err := d.disks.Closed(ctx); err != nil {
		t.Errorf("the files of shards are still open: %v", err)
	}
	if err := d.store.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-d.pool.Close():
	case <-ctx.Done():
		t.Error("jobs are still running")
	}
}

// stored starts a site with "orders", durable and on that disk, and "wide", which is not.
func (d *siteDisk) stored(t testing.TB, s setting) *site {
	orders := stream("orders", 1)
	orders.Durable = true
	s.disk, s.desired = d, []route.Assignment{orders, stream("wide", 4)}
	change := s.change
	s.change = func(o *Options) {
		o.Offer = DurableOffer()
		if change != nil {
			change(o)
		}
	}
	return d.serving(t, s)
}

// caching starts a site with caches on that disk, "users" of one shard and "wide" of four, and "temp" in memory.
func (d *siteDisk) caching(t testing.TB, s setting) *site {
	users, wide := cache("users", 1), cache("wide", 4)
	users.Durable, wide.Durable = true, true
	s.disk, s.desired = d, []route.Assignment{stream("orders", 1), users, wide, cache("temp", 1)}
	change := s.change
	s.change = func(o *Options) {
		o.Offer = DurableOffer()
		if change != nil {
			change(o)
		}
	}
	return d.serving(t, s)
}

// serving opens a site and waits until all shards are served.
func (d *siteDisk) serving(t testing.TB, s setting) *site {
	x := open(t, s)
	want(t, d.ready, "all is open")
	x.served(s.desired)
	return x
}
