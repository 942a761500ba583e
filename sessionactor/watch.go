package sessionactor

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// watch is the event stream of one watch of a cache: current values, if they come first, and the changes that the log tells. Its place in
// the log is taken before it looks at current values. A change that becomes readable is in the reading already, so what is older than that
// place is among the values, or was followed by a change that comes from the log, or both, and nothing is missing.
//
// It is never a client that falls behind because the shard is busy with other keys: as long as it takes what is written to it, changes
// that found no room in the watch's window are read from the log again.
type watch struct {
	feed
	request watchRequest

	frontier id.Offset     // from here on changes come from the log as they are made
	values   currentValues // that come first
	cold     recordReader
}

func newWatch(s *session, n uint64, r watchRequest) *watch {
	w := &watch{feed: feed{session: s, id: n, gauge: s.opts.Metrics.Watches, lagged: s.opts.Metrics.WatchesLagged, eager: true}, request: r}
	w.asked, w.source = &w.request.asked, w
	w.values.gone = s.opts.Metrics.WatchesStuck.Inc
	return w
}

// begin implements source.
func (w *watch) begin(ctx context.Context) (sessioncore.Answer, error) {
	r := &w.request
	if r.shard.Keyed == nil || !r.shard.Showing() { // it may be another incarnation than when the request came
		refusal := notReady()
		return sessioncore.Answer{Refusal: &refusal}, refusal
	}
	again, err := w.join()
	if err != nil {
		return w.notRegistered(err), err
	}
	w.frontier = w.cursor.Live()
	started := &wire.CacheWatchStarted{SubscriptionID: w.id, ResumeOffset: w.frontier, Resnapshot: again}
	if again || r.retained {
		n, refusal := w.collect(ctx)
		if refusal != nil {
			return sessioncore.Answer{Refusal: refusal}, refusal
		}
		if r.retained {
			started.RetainedCount = wire.Some(uint64(n))
		}
	}
	if again {
		w.session.opts.Metrics.Resnapshots.Inc()
	}
	return sessioncore.Answer{Message: started}, nil
}

// join takes the place in the log. again says that the changes the client asked for are not all there any more, so that it gets current
// values instead.
func (w *watch) join() (again bool, err error) {
	if !w.request.since.Set {
		return false, w.place(storage.StartLatest, 0)
	}
	err = w.place(storage.StartOffset, w.request.since.V)
	var old *storage.TooOldError
	if errors.As(err, &old) {
		return true, w.place(storage.StartLatest, 0)
	}
	return false, err
}

// page implements source.
func (w *watch) page(p storage.Page) error {
	pooled := writeBuffers.Get().(*[]byte)
	defer func() { writeBuffers.Put(pooled) }()
	buf := (*pooled)[:0]
	var err error
	for _, b := range p.Batches {
		if buf, err = w.changes(buf, b); err != nil {
			return err
		}
	}
	return w.flush(buf)
}

// changes adds the frames of those changes in a batch that are watched.
func (w *watch) changes(buf []byte, b *batch.Batch) ([]byte, error) {
	if b.Kind != batch.Records {
		return buf, nil
	}
	at := b.Base
	for r, err := range reading.Records(b.Body) {
		if err != nil {
			w.session.readFailed(w.request.entry, w.request.number, err)
			w.stream.CancelWrite()
			return buf, fmt.Errorf("read events: offset %d: %w", at, err)
		}
		if r.Op != reading.OpMove && w.request.scope.has(r.Key) {
			e := wire.CacheEvent{Key: string(r.Key), Offset: at}
			if r.Op == reading.OpPut {
				e.Value, e.ExpiresAtMillis = wire.Some(r.Value), r.ExpiresAtMillis
			}
			if buf, err = w.event(buf, &e); err != nil {
				return buf, err
			}
			if w.once() {
				w.session.opts.Metrics.WatchEvents.Inc()
			}
		}
		at++
	}
	return buf, nil
}

// event adds the frame of one change, and writes what is there once that is enough.
func (w *watch) event(buf []byte, e *wire.CacheEvent) ([]byte, error) {
	if buf = w.encode(buf, e); len(buf) < writeBytes {
		return buf, nil
	}
	buf, err := w.restart(buf)
	if err != nil {
		return buf, fmt.Errorf("write events: %w", err)
	}
	return buf, nil
}

// encode adds the frame of one change. One that no frame can hold is counted as dropped; no put of such a value is taken, see lane.returns.
func (w *watch) encode(buf []byte, e *wire.CacheEvent) []byte {
	begin := len(buf)
	buf = wire.AppendJSONFrame(buf, e)
	if len(buf)-begin-wire.HeaderSize > wire.MaxPayload {
		if w.cursor != nil && w.once() {
			w.cursor.Drop(1)
		}
		return buf[:begin]
	}
	return buf
}

func (w *watch) flush(buf []byte) error {
	if err := w.put(buf); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// hole implements source.
func (w *watch) hole() afterHole {
	if w.slow {
		return lagBehind
	}
	return goBack
}

// last implements source. Every client that watches knows cache_watch_lagged.
func (w *watch) last(e ending) wire.Message {
	if e.cause == endLagged {
		return &wire.CacheWatchLagged{ResumeFrom: e.resume}
	}
	e.durable = true
	return endFrame(w.request.grant, w.id, e)
}

// over implements source.
func (w *watch) over() { w.values.drop() }

// copies implements source.
func (w *watch) copies() bool { return true }
