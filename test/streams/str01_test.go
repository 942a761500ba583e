package streams

import (
	"context"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// field case STR-01: ten subscriptions on one connection. The tenth is never read, or once in a second, and the other nine are
// served as if it was not there: at least at half the rate, compared in neighbouring rounds. The tenth loses what finds no room in its
// queue, and nothing else; what it loses is counted.
//
// mission 192, mission 217, mission 221
func TestSTR01_OneStalledSubscriberDoesNotHoldUpOthersOnItsConnection(t *testing.T) {
	const good, batch, size, ahead = 9, 8, 1 << 10, 24
	ctx := patient(t)
	b := start(t, testkit.Setup{})
	one := b.Client(t, narrow)
	f := newFlow(t, b.Client(t), orders, batch, size, ahead)
	for range good {
		f.reads(subscribe(t, one, orders, client.SubscribeOptions{}))
	}
	if n := b.Metric("felix_client_connections"); n != 2 {
		t.Fatalf("%v connections are open, want that of the publisher and one", n)
	}
	records := testkit.Size("stalled_records")
	f.send(ctx, records/4) // windows and buffers grow to their sizes
	alone := func() float64 { return float64(records) / f.send(ctx, records).Seconds() }
	for _, c := range []struct {
		name string
		drip bool
	}{{"beside one that is never read", false}, {"beside one that is read once in a second", true}} {
		rates := contest{rounds: 5} // windows are as long as their records take
		rates.hold(t, c.name, 0.5, alone, func() float64 {
			return float64(records) / f.beside(ctx, b, one, records, c.drip).Seconds()
		})
	}
}

// beside sends records while a further subscription of the same connection is neglected, or dripped, and returns how long the
// good readers needed. Then the slow one is read to its end: what did not come is what was counted as dropped.
func (f *flow) beside(ctx context.Context, b *testkit.Broker, c *client.Client, records int, drips bool) time.Duration {
	f.t.Helper()
	before := b.Metric(dropped)
	n := f.neglect(c, client.SubscribeOptions{QueueCapacity: 4})
	defer n.sub.Close()
	var early uint64
	var wrong error
	dripping, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if drips {
			early, wrong = drip(dripping, n.sub, time.Second)
		}
	}()
	took := f.send(ctx, records)
	stop()
	<-over
	if wrong != nil {
		f.t.Fatalf("the reader of a record per second: %v", wrong)
	}
	n.from += early // nothing is dropped before what was queued first
	got, missing := f.recover(ctx, n)
	if missing == 0 && early < uint64(records)/4 { // more it may have read in time, on a machine that is as slow
		f.t.Error("the slow reader lost nothing: it was never too slow")
	}
	if lost := b.Metric(dropped) - before; lost != float64(missing) {
		f.t.Errorf("the slow reader got %d records and missed %d; %v were counted", got+early, missing, lost)
	}
	return took
}
