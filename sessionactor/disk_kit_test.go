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
)

// siteDisk is a disk in memory, for the durable streams of one site after another.
type siteDisk struct {
	mem   *vfs.Mem
	pool  *diskpool.Pool
	store *disklog.Store
	disks *shardactor.Disks
	ready chan struct{}
}

func newSiteDisk() *siteDisk { return &siteDisk{mem: vfs.NewMem()} }

func (d *siteDisk) open(t testing.TB, o *shardactor.HostOptions, registry prometheus.Registerer) {
	d.pool, d.ready = diskpool.New(diskpool.Options{}), make(chan struct{})
	var err error
	if d.store, err = disklog.OpenStore(d.mem, disklog.Options{Exec: d.pool, SegmentBytes: 8 << 10, Slots: diskpool.NewReadSlots(8)}); err != nil {
		t.Fatal(err)
	}
	d.disks = shardactor.NewDisks(shardactor.DiskOptions{
		Store: d.store, Exec: d.pool, StateBytes: 1 << 20, RetentionInterval: time.Minute, KeepDeleted: time.Hour,
		OnDamaged: func(err error) { t.Error(err) }, Ready: func() { close(d.ready) },
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
	x := open(t, s)
	want(t, d.ready, "all is open")
	eventually(t, "the stream is served", func() bool {
		target, ok := x.opts.Table.Get(orders.Name).Shard(0)
		return ok && target.State == route.Local
	})
	return x
}
