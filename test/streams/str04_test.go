package streams

import (
	"context"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
)

// field case STR-04: a subscription from the start of a stream that is full gets all its history in order and without a gap, whatever is
// published meanwhile, and though the history is larger than its queue: read steadily, and by a reader that pauses until the whole stream
// has been written over. What is published after the subscription may be dropped; what is dropped is counted.
func TestSTR04_AReplayFromTheStartDeliversEveryRecordDespiteTheDropPolicy(t *testing.T) {
	t.Parallel()
	const perBatch, size = 4, 64
	const least = 1600 // records of history: a fifth of them are far more than the queue holds, and all of them than what is on the way
	history := max(least, testkit.Size("replayed_records"))
	limits := node.DefaultLimits()
	limits.RingBatches, limits.RingBytes = history/perBatch, 1<<30
	for _, c := range []struct {
		name string
		read func(f *flow, ctx context.Context, n neglected, history int)
	}{{"steadily", readSteadily}, {"after a pause", readAfterAPause}} {
		t.Run(c.name, func(t *testing.T) {
			ctx := patient(t)
			b := start(t, testkit.Setup{Limits: &limits})
			f := newFlow(t, b.Client(t), orders, perBatch, size, 0)
			f.send(ctx, history)
			n := neglected{sub: subscribe(t, b.Client(t, narrow), orders, client.SubscribeOptions{From: client.Earliest(), QueueCapacity: 32})}
			c.read(f, ctx, n, history)
			n.from = uint64(history)
			got, missing := f.recover(ctx, n)
			t.Logf("%d records of history; of %d later ones %d were dropped", history, got+missing, missing)
			if missing == 0 {
				t.Error("nothing was dropped: the queue was never full")
			}
			if lost := b.Metric(dropped); lost != float64(missing) {
				t.Errorf("%d later records did not come, and %v were counted", missing, lost)
			}
		})
	}
}

// readSteadily reads the history five times as fast as new records come.
func readSteadily(f *flow, ctx context.Context, n neglected, history int) {
	f.t.Helper()
	for want := range uint64(history) {
		f.wants(n.sub, want)
		if want%uint64(5*f.batch) == 0 {
			f.step(ctx)
		}
	}
}

// readAfterAPause reads nothing until as many records as the stream holds have come, and some more.
func readAfterAPause(f *flow, ctx context.Context, n neglected, history int) {
	f.t.Helper()
	f.send(ctx, history+history/4)
	for want := range uint64(history) {
		f.wants(n.sub, want)
	}
}

// wants takes one record, which must be that one.
func (f *flow) wants(s *client.Subscription, want uint64) {
	f.t.Helper()
	if got := numberOf(next(f.t, s).Payload); got != want {
		f.t.Fatal(&gapError{want: want, got: got})
	}
}
