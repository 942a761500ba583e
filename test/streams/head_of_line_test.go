package streams

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// A subscription that is never read while 64 MiB are published to it (raced: some) stands still, and small requests on the streams beside it, of
// the same connection, take no longer than before.
//
// mission 346
func TestAStuckReaderDoesNotDelaySmallRequestsOfItsConnection(t *testing.T) {
	aside(t)
	b := start(t, testkit.Setup{}, testkit.Resource{Name: "small", Shards: 1, Cache: true})
	c := b.Client(t, narrow)
	subscribe(t, c, orders, client.SubscribeOptions{})
	small := func() (took []time.Duration) {
		ctx := patient(t)
		for i := range 200 {
			began := time.Now()
			if err := c.CachePut(ctx, namespace, "small", fmt.Sprint(i), []byte("v"), 0); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		return took
	}
	before := testkit.Percentile(small(), 99)
	other := b.Client(t)
	const least = 13 // MiB: more than the window of 8 that the broker keeps for a reader
	for n := range uint64(max(least, min(64, testkit.Size("slow_reader_mib")))) {
		publish(t, other, orders, record(n, mib-64))
	}
	if lost := b.Metric("felix_subscribe_dropped_total"); lost == 0 {
		t.Error("the reader is not stuck: it lost nothing")
	}
	after := testkit.Percentile(small(), 99)
	for more := again(); after > max(floor(), 2*before) && more(); {
		after = min(after, testkit.Percentile(small(), 99)) // who is held up is held up each time
	}
	t.Logf("p99 of a small request: %v before, %v beside the stuck reader", before, after)
	if after > max(floor(), 2*before) {
		t.Errorf("p99 of a small request was %v and is %v", before, after)
	}
	if n := b.Metric("felix_client_connections"); n != 2 {
		t.Errorf("%v connections, want one for each client", n)
	}
}
