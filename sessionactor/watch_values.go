package sessionactor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire"
)

// valueCost is what a current value costs a watch beside its key and itself, in bytes: the entry that describes it, and its place in a list
// that grows.
const valueCost = 128

// collect notes the current values that come before the changes from the frontier on: those that are older. It says why there are none to
// be had.
func (w *watch) collect(ctx context.Context) *wire.Refusal {
	o := w.session.opts
	if !acquire(ctx, w.gate, o.NodeSnapshots.places, 1) {
		f := wire.Refuse(wire.CodeShardUnavailable, "the connection is closing; connect again")
		return &f
	}
	list, ok := w.current(o.WatchSnapshotBytes)
	o.NodeSnapshots.places.Release(0, 1)
	if !w.request.shard.Serving() {
		f := notReady()
		return &f
	}
	list = slices.DeleteFunc(list, func(e keyed.Entry) bool { return e.Version >= w.frontier })
	bytes := int64(0)
	for i := range list {
		bytes += int64(valueCost + len(list[i].Key) + len(list[i].Value))
	}
	if !ok || bytes > o.WatchSnapshotBytes {
		o.Metrics.WatchesTooMany.Inc()
		f := wire.Refuse(wire.CodeLimitExceeded, fmt.Sprintf("the current values of what is watched exceed %d bytes, which is FELIX_CACHE_WATCH_SNAPSHOT_BYTES; watch longer prefixes one by one", o.WatchSnapshotBytes))
		return &f
	}
	if !o.NodeSnapshots.take(bytes, o.WatchSnapshotBytes) {
		o.Metrics.WatchesTooMany.Inc()
		f := wire.Refuse(wire.CodeOverloaded, "the watches of this node are being given as many current values as it can hold; repeat the request after a pause").WithReason("watch_snapshots", snapshotPause)
		return &f
	}
	slices.SortFunc(list, func(a, b keyed.Entry) int { return cmp.Compare(a.Version, b.Version) })
	w.values, w.booked = list, bytes
	return nil
}

// current returns what the watched keys have, in no order; false if that is more than so many bytes.
func (w *watch) current(bound int64) ([]keyed.Entry, bool) {
	r, now := &w.request, w.session.nowMillis()
	if r.scope.prefix {
		return r.shard.Keyed.Current([]byte(r.scope.name), now, int(bound/valueCost), int(bound))
	}
	l, ok := r.shard.Keyed.Get(r.scope.name, now)
	if !ok {
		return nil, true
	}
	return []keyed.Entry{{Key: []byte(r.scope.name), Value: l.Value, Cold: l.Cold, Version: l.Version, Offset: l.Offset, ExpiresAtMillis: l.ExpiresAtMillis}}, true
}

// first implements source. While it writes current values it has no place in the log, so that nothing is kept for it and it can't lose
// anything: it comes back to where the values end.
func (w *watch) first(ctx context.Context) (more bool, err error) {
	if len(w.values) == 0 {
		return true, nil
	}
	w.release()
	if more, err = w.writeValues(ctx); !more {
		return false, err
	}
	w.dropValues()
	w.next = w.frontier
	if err := w.place(storage.StartOffset, w.frontier); err != nil {
		return false, w.endOfLog(ctx, err)
	}
	return true, nil
}

// writeValues writes current values in the order of their versions, so that a client that stops in the middle can go on behind the last
// one. more is false when the event stream is over by that.
func (w *watch) writeValues(ctx context.Context) (more bool, err error) {
	pooled := writeBuffers.Get().(*[]byte)
	defer func() { writeBuffers.Put(pooled) }()
	buf := (*pooled)[:0]
	for i := range w.values {
		e := &w.values[i]
		if w.session.finish.Err() != nil { // a node that stops does not wait for it
			w.next = e.Version
			return false, errors.Join(w.flush(buf), w.end(endDraining))
		}
		value, err := w.value(ctx, e)
		if err != nil {
			w.next = e.Version
			if err := w.flush(buf); err != nil {
				return false, err
			}
			return false, w.endOfLog(ctx, err)
		}
		if buf, err = w.event(buf, &wire.CacheEvent{Key: string(e.Key), Value: wire.Some(value), Offset: e.Version, ExpiresAtMillis: e.ExpiresAtMillis}); err != nil {
			return false, err
		}
		w.session.opts.Metrics.WatchRetained.Inc()
	}
	return true, w.flush(buf)
}

// value is that of an entry. One that the log does not hold any more was overwritten or deleted since, and its record removed; the error is
// a *storage.TooOldError then, and who resumes at its version is given all values anew.
func (w *watch) value(ctx context.Context, e *keyed.Entry) ([]byte, error) {
	if !e.Cold {
		return e.Value, nil
	}
	key := string(e.Key)
	l := reading.Live{Cold: true, Version: e.Version, Offset: e.Offset}
	for try := range coldTries {
		value, err := w.cold.read(ctx, w.request.shard.History, key, &l)
		if !errors.Is(err, errNotThere) {
			return value, err
		}
		w.session.pauseCold(ctx, w.gate, try)
		now, ok := w.request.shard.Keyed.Get(key, 0)
		if !ok || now.Version != e.Version {
			break
		}
		l = now
	}
	oldest, _ := w.request.shard.Log.Bounds()
	return nil, &storage.TooOldError{Requested: e.Version, Oldest: oldest}
}

func (w *watch) dropValues() {
	w.session.opts.NodeSnapshots.give(w.booked)
	w.values, w.booked = nil, 0
}
