package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// cachesCut notes where the logs of caches end on what a power cut has left. It is looked up on a copy: the next life may write by itself that
// values have ended, before anybody can ask it.
func (r *drun) cachesCut(image *vfs.Mem) {
	if r.caches == nil || !r.plan.weak() {
		return
	}
	for _, s := range r.caches.shards {
		end, err := r.plan.Disk.endOf(image.Clone(), s.cache, s.index)
		if err != nil {
			r.failf("%s after a power cut: %w", s, err)
			return
		}
		s.left, s.lost = min(s.left, end), min(s.lost, end)
	}
}

// endOf opens the log of a cache's values, and returns where it ends.
func (d *diskPlan) endOf(mem *vfs.Mem, a route.Assignment, shard uint32) (id.Offset, error) {
	mem.SetCapacity(vfs.Unlimited)
	o := d.Options
	o.Exec, o.Slots, o.Holder = &aside{}, diskpool.NewReadSlots(diskpool.DefaultReadSlots), "aside"
	o.Rand = func() (b [16]byte) { return b }
	store, err := disklog.OpenStore(mem, o)
	if err != nil {
		return 0, fmt.Errorf("open its store: %w", err)
	}
	log, err := store.Open(disklog.Spec{Kind: disklog.Cache, Tenant: a.Name.Tenant, Namespace: a.Name.Namespace, Name: a.Name.Name, Shard: shard, Incarnation: a.Incarnation}, deaf{}, nil)
	if err != nil {
		return 0, err
	}
	_, _, end := log.Bounds()
	return end, nil
}

// aside is an executor that runs nothing: an open does all by itself.
type aside struct{}

var _ diskpool.Executor = (*aside)(nil)

// Go implements diskpool.Executor.
func (*aside) Go(diskpool.Job) {}

// After implements diskpool.Executor.
func (*aside) After(time.Duration, func()) (stop func() bool) { return func() bool { return false } }

// Now implements diskpool.Executor.
func (*aside) Now() time.Time { return time.Unix(0, 0) }

// deaf hears nothing of a log.
type deaf struct{}

var _ disklog.Notify = deaf{}

// Persisted implements disklog.Notify.
func (deaf) Persisted(uint64) {}

// WriteFailed implements disklog.Notify.
func (deaf) WriteFailed(uint64, error) {}

// SealFailed implements disklog.Notify.
func (deaf) SealFailed(uint64, error) {}

// Poisoned implements disklog.Notify.
func (deaf) Poisoned(error) {}

// Stalled implements disklog.Notify.
func (deaf) Stalled() {}

// Back implements disklog.Notify.
func (deaf) Back() {}
