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
func (w *watch) collect(ctx context.Context) (n int, f *wire.Refusal) {
	o := w.session.opts
	if !acquire(ctx, w.gate, o.NodeSnapshots.places, 1) {
		f := wire.Refuse(wire.CodeShardUnavailable, "the connection is closing; connect again")
		return 0, &f
	}
	list, ok := w.current(o.NodeSnapshots.largest)
	o.NodeSnapshots.places.Release(0, 1)
	if !w.request.shard.Showing() {
		f := notReady()
		return 0, &f
	}
	list = slices.DeleteFunc(list, func(e keyed.Entry) bool { return e.Version >= w.frontier })
	bytes := 0
	for i := range list {
		bytes += valueCost + len(list[i].Key) + len(list[i].Value)
	}
	if !ok || int64(bytes) > o.NodeSnapshots.largest {
		o.Metrics.WatchesTooMany.Inc()
		f := wire.Refuse(wire.CodeLimitExceeded, fmt.Sprintf(
			"the current values of what is watched exceed %d bytes, which is FELIX_CACHE_WATCH_SNAPSHOT_BYTES; watch longer prefixes one by one", o.NodeSnapshots.largest))
		return 0, &f
	}
	if len(list) == 0 {
		return 0, nil
	}
	held, conn, tenant := o.NodeSnapshots.held, &w.session.snapshots, w.request.who.tenant
	if f := held.take(conn, tenant, bytes); f != nil {
		o.Metrics.WatchesTooMany.Inc()
		return 0, f
	}
	slices.SortFunc(list, func(a, b keyed.Entry) int { return cmp.Compare(a.Version, b.Version) })
	w.values.giveBack = func() { held.give(conn, tenant, bytes) }
	w.values.begin(o.Clock, list)
	return len(list), nil
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
	return []keyed.Entry{{Key: []byte(r.scope.name), Value: l.Value, Cold: l.Cold, ValueBytes: max(len(l.Value), l.ColdBytes), Version: l.Version, Offset: l.Offset, ExpiresAtMillis: l.ExpiresAtMillis}}, true
}

// first implements source. While it writes current values it has no place in the log, so that nothing is kept for it and it can't lose
// anything: it comes back to where the values end.
func (w *watch) first(ctx context.Context) (more bool, err error) {
	if !w.values.pending() {
		return true, nil
	}
	w.release()
	if more, err = w.writeValues(ctx); !more {
		return false, err
	}
	w.values.drop()
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
	for more = true; more; {
		if buf, more, err = w.nextValue(ctx, buf); err != nil {
			return false, w.valuesFailed(ctx, buf, err)
		}
		if len(buf) < writeBytes && more {
			continue
		}
		if err := w.hand(buf); err != nil {
			return false, err
		}
		if buf = buf[:0]; cap(buf) > 2*writeBytes {
			buf = make([]byte, 0, writeBytes)
		}
	}
	if resume, lost := w.values.missed(); lost {
		w.next = resume
		return false, w.end(endLagged)
	}
	return true, nil
}

// errFinishing ends the values of a watch because the node stops, which does not wait for them.
var errFinishing = errors.New("the node stops")

// insideError is why nothing more can be written: the stream was broken off, here in the middle of a value, or by its client.
type insideError struct{ error }

func (e *insideError) Unwrap() error { return e.error }

// nextValue adds the frame of the next value; more is false when there is none.
func (w *watch) nextValue(ctx context.Context, buf []byte) (out []byte, more bool, err error) {
	e, more := w.values.take()
	if !more {
		return buf, false, nil
	}
	w.next = e.Version
	if w.session.finish.Err() != nil {
		return buf, false, errFinishing
	}
	if e.Cold && e.ValueBytes >= writeBytes {
		return w.longValue(ctx, buf, &e)
	}
	value, err := w.value(ctx, &e)
	if err != nil {
		return buf, false, err
	}
	w.session.opts.Metrics.WatchRetained.Inc()
	return w.encode(buf, &wire.CacheEvent{Key: string(e.Key), Value: wire.Some(value), Offset: e.Version, ExpiresAtMillis: e.ExpiresAtMillis}), true, nil
}

// longValue writes the values before it, and a long one by itself. Without room for it that is piece by piece, and it is read again for each.
func (w *watch) longValue(ctx context.Context, buf []byte, e *keyed.Entry) (out []byte, more bool, err error) {
	if err := w.hand(buf); err != nil {
		return buf[:0], false, &insideError{err}
	}
	buf = buf[:0]
	defer func() { w.cold = recordReader{} }()
	hand := (1 + frameCopies) * e.ValueBytes
	kept := w.keep(hand)
	if kept {
		defer w.letGo(hand)
	} else {
		w.session.opts.Metrics.PutAside.Inc()
		w.pieces = pieces{on: true}
		defer func() { w.pieces = pieces{} }()
	}
	w.session.opts.Metrics.WatchRetained.Inc()
	for {
		w.pieces.Again()
		value, err := w.value(ctx, e)
		if err != nil {
			if w.pieces.Begun() {
				return buf, false, &insideError{w.breakOff(ctx, err)}
			}
			return buf, false, err
		}
		frame := w.encode(nil, &wire.CacheEvent{Key: string(e.Key), Value: wire.Some(value), Offset: e.Version, ExpiresAtMillis: e.ExpiresAtMillis})
		if kept || w.pieces.kept { // what is written at a time is bounded, see snapshotPatience
			err = w.hand(frame)
		} else {
			err = w.put(frame)
			w.values.moved()
		}
		if err == nil {
			return buf, true, nil
		}
		if !errors.Is(err, errAside) {
			return buf, false, &insideError{err}
		}
		value, frame, w.cold = nil, nil, recordReader{}
		if err := w.takePiece(); err != nil {
			return buf, false, &insideError{err}
		}
		w.values.moved()
		if w.pieces.kept = w.keep(hand); w.pieces.kept {
			defer w.letGo(hand) // it is the last attempt
		}
	}
}

// valuesFailed ends the event stream at the value that could not be had, behind those before it.
func (w *watch) valuesFailed(ctx context.Context, buf []byte, err error) error {
	w.values.drop()
	if inside := (*insideError)(nil); errors.As(err, &inside) {
		return err
	}
	if err := w.hand(buf); err != nil {
		return err
	}
	if errors.Is(err, errFinishing) {
		return w.end(endDraining)
	}
	return w.endOfLog(ctx, err)
}

// hand writes values in pieces, and notes each that the client has taken.
func (w *watch) hand(buf []byte) error {
	for len(buf) > 0 {
		n := len(buf)
		if n >= 2*writeBytes {
			n = writeBytes
		}
		if err := w.flush(buf[:n]); err != nil {
			return err
		}
		w.values.moved()
		buf = buf[n:]
	}
	return nil
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
