package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// durableStorage is what a daemon keeps durable streams and caches with, between its settings and its node. A nil one keeps none.
type durableStorage struct {
	root     string
	store    *disklog.Store
	pool     *diskpool.Pool
	slots    *diskpool.ReadSlots
	counters *disklog.Counters
	options  shardactor.DiskOptions
	logs     int64 // of streams and caches, when the daemon started
	reports  *logReports
	ready    chan struct{} // closed when every log is open
	damaged  chan error    // the first damage
}

// openStorage opens the folder of the logs. No log is opened: shards do that.
func (d *daemon) openStorage(ctx context.Context) error {
	o := d.config.Durable
	if !o.enabled() {
		return d.tellUnkept(ctx)
	}
	s := &durableStorage{
		root: o.root(d.data.path), pool: diskpool.New(diskpool.Options{}), slots: diskpool.NewReadSlots(diskpool.DefaultReadSlots),
		counters: &disklog.Counters{}, ready: make(chan struct{}), damaged: make(chan error, 1),
	}
	if err := s.open(ctx, o, d.logger); err != nil {
		return s.refused(err)
	}
	d.onClose(func() { closeStorage(s, d.logger) })
	var err error
	if s.logs, err = keptLogs(ctx, d.catalog); err != nil {
		return err
	}
	s.reports = newLogReports(d.catalog, d.logger, pause)
	written := make(chan struct{})
	go func() { defer close(written); s.reports.run(ctx) }()
	d.onClose(func() { <-written })
	s.options = s.diskOptions(o)
	d.storage = s
	return nil
}

func (s *durableStorage) open(ctx context.Context, o durableOptions, logger *slog.Logger) error {
	files, err := vfs.NewOS(s.root)
	if err != nil {
		return err
	}
	if o.FaultFile != "" {
		logger.Warn("disk calls fail as the fault file says; this is for tests alone", "file", o.FaultFile)
		faulty, follow, err := withFaults(files, o.FaultFile, logger)
		if err != nil {
			return err
		}
		go follow(ctx)
		files = faulty
	}
	s.store, err = disklog.OpenStore(files, disklog.Options{
		SegmentBytes: o.SegmentBytes, IndexSpacing: o.IndexSpacing, Fsync: o.Fsync, FsyncInterval: o.FsyncInterval, Preallocate: o.Preallocate,
		Verify: o.Verify, Exec: s.pool, Slots: s.slots, Counters: s.counters,
		Holder: fmt.Sprintf("pid %d, started %s", os.Getpid(), time.Now().UTC().Format(time.RFC3339)),
	})
	if err != nil {
		return err
	}
	for _, name := range s.store.Foreign() {
		logger.Warn("there is something in the storage directory that is not felixd's; it is left alone", "directory", s.root, "name", name)
	}
	return nil
}

// refused says why the folder cannot be used.
func (s *durableStorage) refused(err error) error {
	var locked *vfs.LockedError
	if errors.As(err, &locked) {
		return &exitError{code: exitDataDir, err: fmt.Errorf("--durable-storage-dir %s: %w; stop that one or name another folder", s.root, err)}
	}
	hint := ""
	at, statErr := os.Stat(s.root)
	if statErr == nil && !at.IsDir() || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) {
		hint = "; name a folder that can be written, or mend its rights"
	}
	return &exitError{code: exitDataDir, err: fmt.Errorf("--durable-storage-dir %s: %w%s", s.root, err, hint)}
}

func (s *durableStorage) diskOptions(o durableOptions) shardactor.DiskOptions {
	d := shardactor.DefaultDiskOptions()
	d.Store, d.Exec, d.Slots = s.store, s.pool, s.slots
	d.Retention = route.Retention{Bytes: o.RetentionBytes, Age: o.RetentionAge}
	d.RetentionInterval, d.KeepDeleted, d.Quarantine = o.RetentionInterval, o.DeletedKeep, o.QuarantineDamaged
	d.IndexBytes, d.InlineBytes, d.CompactionRate = o.CacheIndexBytes, o.CacheInlineBytes, o.CompactionRate
	d.Groups = o.Groups
	d.OnDamaged = func(err error) {
		select {
		case s.damaged <- err:
		default:
		}
	}
	d.LogOpened = func(name route.Name, incarnation id.Incarnation, shard uint32, log id.LogID) {
		s.reports.add(ownerOf(name, incarnation), model.ShardLog{Shard: shard, Log: model.LogID(log)})
	}
	d.Ready = func() { close(s.ready) }
	return d
}

// ownerOf names whose log was opened as the catalog does.
func ownerOf(name route.Name, incarnation id.Incarnation) logOwner {
	o := logOwner{model.ResourceStream, model.ResourceName{Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name}, model.Incarnation(incarnation)}
	if name.Kind == route.Cache {
		o.kind = model.ResourceCache
	}
	return o
}

// logsOfCacheShard are the logs that each shard of a cache has: of its entries and of its counters.
const logsOfCacheShard = 2

// keptLogs counts the logs that will be opened, to tell how far a start has come.
func keptLogs(ctx context.Context, catalog store.Feed) (n int64, err error) {
	streams, err := catalog.Snapshot(ctx, model.KindStreams)
	if err != nil {
		return 0, err
	}
	for _, r := range streams.Items {
		if s := r.(model.Stream); s.Durable {
			n += int64(s.Shards)
		}
	}
	caches, err := catalog.Snapshot(ctx, model.KindCaches)
	for _, r := range caches.Items {
		if c := r.(model.Cache); !c.InMemory {
			n += logsOfCacheShard * int64(c.Shards)
		}
	}
	return n, err
}

// tellUnkept says which caches were kept in logs and are empty now, because this daemon has no storage. Durable streams need no telling:
// they are refused.
func (d *daemon) tellUnkept(ctx context.Context) error {
	caches, err := d.catalog.Snapshot(ctx, model.KindCaches)
	for _, r := range caches.Items {
		if c := r.(model.Cache); c.Logs != "" {
			d.logger.Warn("this cache was kept in logs and begins empty, in memory: there is no storage directory (--durable-storage-dir none); its logs are left alone", "cache", c.Key())
		}
	}
	return err
}

// give hands the storage to a node.
func (s *durableStorage) give(o *node.Options) {
	if s != nil {
		o.Disk = &s.options
	}
}

// damage says that a log is damaged, and the daemon is to end.
func (s *durableStorage) damage() <-chan error {
	if s == nil {
		return nil
	}
	return s.damaged
}

// opened is closed when every log is open; nil where there are none.
func (s *durableStorage) opened() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.ready
}

// tell prints how far a start has come.
func (s *durableStorage) tell(w io.Writer, began time.Time) {
	fmt.Fprintf(w, "opening logs: %d of %d after %d s\n", s.counters.OpenLogs.Load(), s.logs, int(time.Since(began).Seconds()))
}

// where is the folder, for people.
func (s *durableStorage) where() string {
	if s == nil {
		return "none: durable streams are refused, caches are in memory"
	}
	return s.root
}

// emptied says what of that with which a daemon begins is empty after a restart.
func (s *durableStorage) emptied() string {
	if s == nil {
		return "all of them"
	}
	return "these streams, and keeps the caches"
}

// closeStorage lets go of the folder when its logs are closed. A disk that hangs is not waited for: the lock ends with the process.
func closeStorage(s *durableStorage, logger *slog.Logger) {
	if err := s.store.Close(); err != nil {
		logger.Warn("the storage directory could not be closed", "error", err)
	}
	select {
	case <-s.pool.Close():
	case <-time.After(time.Second):
	}
}
