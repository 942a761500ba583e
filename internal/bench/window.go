package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// window bounds the batches of a lane that have no answer, and takes the answers. acquire, begin and close belong to the sender, settle
// is a worker of its own; the counters that are not atomic are read when both have ended.
type window struct {
	t    *trial
	lane Lane

	slots chan struct{}      // one for each batch that has no answer
	begun chan time.Duration // when each was sent, or was due; as many as there are slots

	answers   atomic.Uint64 // that said yes
	latencies *Latencies
	refused   uint64
	first     error // refusal
}

func newWindow(t *trial, lane Lane, size int) *window {
	return &window{
		t: t, lane: lane, latencies: NewLatencies(),
		slots: make(chan struct{}, size), begun: make(chan time.Duration, size),
	}
}

// acquire waits until another batch may be unanswered, and lets nothing lie about meanwhile.
func (w *window) acquire(ctx context.Context) error {
	select {
	case w.slots <- struct{}{}:
		return nil
	default:
	}
	if err := w.lane.Flush(ctx); err != nil {
		return err
	}
	select {
	case w.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin says that a batch with a slot is about to be sent, and from when its latency counts.
func (w *window) begin(at time.Duration) { w.begun <- at }

// close says that nothing more is sent.
func (w *window) close() { close(w.begun) }

// settle takes the answers, in order, until the last.
func (w *window) settle(ctx context.Context) error {
	for begun := range w.begun {
		err := w.lane.Settle(ctx)
		if no, refused := refusal(err); refused {
			if w.refused++; w.first == nil {
				w.first = no.Err
			}
		} else if err != nil {
			return err
		} else {
			w.answers.Add(1)
			if w.t.counts(begun) {
				w.latencies.Record(w.t.now() - begun)
			}
		}
		<-w.slots
	}
	return nil
}
