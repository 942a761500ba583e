// Package watch is the broker's side of the control plane: it follows the catalog and says what this node is to host.
//
// Today the catalog is in the same process and everything is hosted here. What comes out is a route.Desired, whole and in
// order, each time anything changed; only the newest matters, so changes that come faster than they are acted on fold into
// one.
package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Options is what a Watcher needs.
type Options struct {
	Feed store.Feed
	// Changed is called with each newer Desired, from one goroutine.
	Changed func(route.Desired)
	Logger  *slog.Logger
	// Wait pauses before the feed is tried again after an error; it returns when ctx ends.
	Wait func(ctx context.Context, d time.Duration)
}

// retryMin and retryMax bound the pause after an error of the feed.
const (
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second
)

// Run follows the feed until ctx ends. The first Desired comes as soon as the catalog can be read.
func Run(ctx context.Context, o Options) {
	version, pause := uint64(0), retryMin
	for ctx.Err() == nil {
		desired, seq, err := read(ctx, o.Feed)
		if err == nil {
			version++
			desired.Version = version
			o.Changed(desired)
			pause = retryMin
			_, err = o.Feed.WaitChanges(ctx, seq)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrAhead) {
			o.Logger.Warn("the catalog can't be read; what is hosted stays as it is", "error", err, "retry_in", pause)
			o.Wait(ctx, pause)
			pause = min(2*pause, retryMax)
		}
	}
}

// read takes the whole catalog. Streams and caches are read one after the other: the earlier position counts, so that a
// write in between is seen again rather than missed.
func read(ctx context.Context, feed store.Feed) (route.Desired, uint64, error) {
	streams, err := feed.Snapshot(ctx, model.KindStreams)
	if err != nil {
		return route.Desired{}, 0, fmt.Errorf("read streams: %w", err)
	}
	caches, err := feed.Snapshot(ctx, model.KindCaches)
	if err != nil {
		return route.Desired{}, 0, fmt.Errorf("read caches: %w", err)
	}
	d := route.Desired{Assignments: make([]route.Assignment, 0, len(streams.Items)+len(caches.Items))}
	for _, r := range streams.Items {
		d.Assignments = append(d.Assignments, streamAssignment(r.(model.Stream)))
	}
	for _, r := range caches.Items {
		d.Assignments = append(d.Assignments, cacheAssignment(r.(model.Cache)))
	}
	slices.SortFunc(d.Assignments, func(a, b route.Assignment) int { return a.Name.Compare(b.Name) })
	return d, min(streams.Seq, caches.Seq), nil
}

// firstGeneration is the generation of every assignment while there is one node and no hand-over.
const firstGeneration id.Generation = 1

func streamAssignment(s model.Stream) route.Assignment {
	routing := wire.RoutingModulo
	if s.Routing == model.RoutingJumpHash {
		routing = wire.RoutingJumpHash
	}
	return route.Assignment{
		Name:        route.Name{Kind: route.Stream, Tenant: s.TenantID, Namespace: s.Namespace, Name: s.Stream},
		Incarnation: id.Incarnation(s.Incarnation), Generation: firstGeneration, Shards: s.Shards, Routing: routing, Durable: s.Durable,
		Logs: s.Logs, Retention: retention(s.Retention), Compress: s.Compress,
	}
}

// retention never overflows: model.Retention keeps both bounds within what fits.
func retention(r model.Retention) route.Retention {
	return route.Retention{Bytes: int64(r.MaxSizeBytes), Age: time.Duration(r.MaxAgeSeconds) * time.Second}
}

// cacheAssignment asks for a log for every cache that is not in memory by choice; a node without storage keeps it in memory all the same.
func cacheAssignment(c model.Cache) route.Assignment {
	return route.Assignment{
		Name:        route.Name{Kind: route.Cache, Tenant: c.TenantID, Namespace: c.Namespace, Name: c.Cache},
		Incarnation: id.Incarnation(c.Incarnation), Generation: firstGeneration, Shards: c.Shards, Durable: !c.InMemory, Logs: c.Logs,
	}
}
