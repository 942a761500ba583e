package hostile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire"
)

// All cores busy in slowed actors: eight shards that compute for 5 ms at each turn, and a queue in front of each. No connection is
// lost, and a client that only asks the broker something is answered meanwhile.
func TestAllCoresBusyInSlowedActorsLoseNoConnectionAndKeepEchoesQuick(t *testing.T) {
	const shards = 8
	h := open(t, setup{})
	echo := h.from(t, 81).dial().open()
	h.Command("busy 5ms")
	defer h.Command("busy 0s")
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range shards {
		c := h.connect(t)
		all.Go(func() { keepBusy(ctx, t, c, fmt.Sprint(i)) })
	}
	h.Counts("felix_published_records_total", 4*shards)
	turns := h.Metric("felix_published_records_total")
	var all50, all99 []time.Duration
	for range windows {
		times := echoes(t, echo, time.Duration(effort.Size("busy_seconds"))*time.Second/windows)
		all50, all99 = append(all50, percentile(times, 50)), append(all99, percentile(times, 99))
	}
	if grown := h.Metric("felix_published_records_total") - turns; grown < 50 {
		t.Errorf("%v publishes were done meanwhile: the shards were not busy", grown)
	}
	stop()
	all.Wait()
	p50, p99 := median(all50), median(all99)
	t.Logf("echoes, medians of %d windows: p50 %v, p99 %v", windows, p50, p99)
	limit := 100 * time.Millisecond // at a landing, when the cores have other things to do as well
	switch {
	case raceEnabled:
		limit = time.Second
	case effort.Full():
		limit = 50 * time.Millisecond
	}
	if p99 > limit {
		t.Errorf("p99 of the echo is %v, at most %v allowed", p99, limit)
	}
	if s := h.Look(); s.Open != shards+1 {
		t.Errorf("%d connections are left of %d", s.Open, shards+1)
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
