package hostile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire"
)

// All cores busy in slowed actors: shards that compute for ever, one on each of the node's executors, and a queue in front of each. No connection
// is lost, and a client that only asks the broker something is answered meanwhile. In full effort it is quick, too, while turns take 5 ms.
func TestAllCoresBusyInSlowedActorsLoseNoConnectionAndKeepEchoesQuick(t *testing.T) {
	aside(t)
	const shards, executors = 8, actors.ExecutorsDefault
	const published = "felix_published_records_total"
	h := open(t, setup{})
	echo := h.from(t, 81).dial().open()
	before := h.Command("busy 1h").Metrics[published]
	defer h.Command("busy 0s")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var all sync.WaitGroup
	for i := range shards {
		c := h.Client(t, func(o *client.Options) { o.AckTimeout, o.DialTimeout = 10*patience, patience })
		all.Go(func() { keepBusy(ctx, t, c, fmt.Sprint(i)) })
	}
	// A turn answers first and computes then: one record of each publisher is taken, and one more of those whose shard is in its turn, or some more
	// where they came before it began to compute.
	h.Counts(published, before+shards+executors)
	for looks, n := 0, -1.0; ; looks++ {
		last := n
		for range 10 {
			echo.alive("while every executor computes")
		}
		if n = h.Metric(published); n == last {
			break
		}
		if looks == 100 {
			t.Fatalf("%v records were taken, and ever more: turns that take an hour have ended", n-before)
		}
	}
	taken := h.Metric(published) - before
	h.Command("busy 5ms")
	h.Counts(published, before+2*taken)
	if effort.Full() {
		quick(t, echo)
	}
	if s := h.Look(); s.Open != shards+1 {
		t.Errorf("%d connections are left of %d", s.Open, shards+1)
	}
	stop()
	all.Wait()
}

// quick requires that echoes are answered soon, in most stretches of time.
func quick(t *testing.T, echo *line) {
	t.Helper()
	const limit = 50 * time.Millisecond
	var all50, all99 []time.Duration
	for range windows() {
		times := echoes(t, echo, time.Duration(effort.Size("busy_seconds"))*time.Second/time.Duration(windows()))
		all50, all99 = append(all50, percentile(times, 50)), append(all99, percentile(times, 99))
	}
	p50, p99 := median(all50), median(all99)
	t.Logf("echoes, medians of %d windows: p50 %v, p99 %v", windows(), p50, p99)
	if p99 > limit && !raceEnabled {
		t.Errorf("p99 of the echo is %v, at most %v allowed", p99, limit)
	}
}

// keepBusy publishes to one shard without pause. Its shard is slow, so it is held back and never refused for good.
func keepBusy(ctx context.Context, t *testing.T, c *client.Client, key string) {
	for ctx.Err() == nil {
		if _, err := c.Publish(ctx, namespace, busyKind, []byte("x"), client.WithKey([]byte(key))); err != nil && ctx.Err() == nil {
			t.Errorf("publish to a slowed shard: %v", err)
			return
		}
	}
}

// echoes asks the broker something small every 10 ms.
func echoes(t *testing.T, l *line, lasting time.Duration) (times []time.Duration) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	_ = l.r.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(lasting + patience))
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		<-tick.C
		began := time.Now()
		if _, ok := l.ask(&wire.Topology{}).message.(*wire.TopologyView); !ok {
			t.Fatal("the echo was refused")
		}
		times = append(times, time.Since(began))
	}
	return times
}
