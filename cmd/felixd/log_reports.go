package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

// logReports carries to the catalog which log each shard has. Whoever reports does not wait: what comes while the catalog is
// written to, and shortly after, goes with the next write, one for each stream or cache: the catalog remembers what it has said, and each
// write of a stream of a thousand shards is 16 KiB of it. It holds at most what was reported since: one entry of a few dozen
// bytes for each shard that was opened, so no more than the shards that report.
//
// A report that is lost in a crash is made again: the catalog then knows of no log, so the shard may open the one it finds.
type logReports struct {
	catalog logCatalog
	logger  *slog.Logger
	wait    func(context.Context, time.Duration) // pauses before a write that failed is tried again
	wake    chan struct{}

	mu      sync.Mutex
	pending []logReport // in the order of their owners' first report
	at      map[logOwner]int
}

// logCatalog is what a catalog does with reports.
type logCatalog interface {
	store.StreamStore
	store.CacheStore
}

// logOwner is one incarnation of a stream or a cache.
type logOwner struct {
	kind        model.ResourceKind
	name        model.ResourceName
	incarnation model.Incarnation
}

// logReport is what is known of one owner's shards.
type logReport struct {
	logOwner
	logs []model.ShardLog
}

func newLogReports(catalog logCatalog, logger *slog.Logger, wait func(context.Context, time.Duration)) *logReports {
	return &logReports{catalog: catalog, logger: logger, wait: wait, wake: make(chan struct{}, 1), at: map[logOwner]int{}}
}

// add notes a log that was opened. It does not block.
func (r *logReports) add(owner logOwner, log model.ShardLog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(logReport{owner, []model.ShardLog{log}})
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// put joins what belongs to one owner. The lock is held.
func (r *logReports) put(n logReport) {
	i, ok := r.at[n.logOwner]
	if !ok {
		r.at[n.logOwner] = len(r.pending)
		r.pending = append(r.pending, n)
		return
	}
	r.pending[i].logs = append(r.pending[i].logs, n.logs...)
}

func (r *logReports) take() []logReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.pending
	r.pending = nil
	clear(r.at)
	return taken
}

// run writes until ctx ends, and then once more what is left, for at most a second.
func (r *logReports) run(ctx context.Context) {
	pause := reportRetryMin
	for ctx.Err() == nil {
		select {
		case <-r.wake:
		case <-ctx.Done():
			continue
		}
		for !r.flush(ctx) && ctx.Err() == nil {
			r.wait(ctx, pause)
			pause = min(2*pause, reportRetryMax)
		}
		pause = reportRetryMin
		r.wait(ctx, reportEvery)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	r.flush(last)
}

// Pauses between two tries of a catalog that can't be written.
const (
	reportRetryMin = 100 * time.Millisecond
	reportRetryMax = 30 * time.Second
)

// reportEvery is the least time between two writes when logs keep being opened. What a crash takes of it is reported again.
const reportEvery = 250 * time.Millisecond

// flush writes what is pending and keeps what could not be written now.
func (r *logReports) flush(ctx context.Context) (all bool) {
	all = true
	for _, n := range r.take() {
		err := r.write(ctx, n)
		switch {
		case err == nil:
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrInvalid):
			r.logger.Info(fmt.Sprintf("the catalog does not want the log of a %s that has changed meanwhile", n.kind), string(n.kind), n.name, "reason", err)
		default:
			all = false
			r.logger.Warn(fmt.Sprintf("the catalog can't keep which log a %s has; it is tried again", n.kind), string(n.kind), n.name, "error", err)
			r.mu.Lock()
			r.put(n)
			r.mu.Unlock()
		}
	}
	return all
}

func (r *logReports) write(ctx context.Context, n logReport) (err error) {
	switch n.kind {
	case model.ResourceStream:
		_, err = r.catalog.SetLogs(ctx, n.name, n.incarnation, n.logs)
	case model.ResourceCache:
		_, err = r.catalog.SetCacheLogs(ctx, n.name, n.incarnation, n.logs)
	default:
		panic("felixd: a log of a " + string(n.kind) + " was reported")
	}
	return err
}
