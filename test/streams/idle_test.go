package streams

import (
	"sync"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// Thousands of subscriptions that wait on one node cost it little each, and all of them get what is published then.
func TestThousandsOfIdleSubscriptionsAllReceiveAndCostLittle(t *testing.T) {
	aside(t)
	const connections, records = 4, 3
	ctx := patient(t)
	b := start(t, testkit.Setup{})
	publisher := b.Client(t)
	publish(t, publisher, wide, record(0, 64)) // before the first of them
	clients := make([]*client.Client, connections)
	for i := range clients {
		clients[i] = b.Client(t)
	}
	subscribe(t, clients[0], orders, client.SubscribeOptions{})
	before := b.Collect()
	n := testkit.Size("idle_subscriptions")
	subs := make([]*client.Subscription, n)
	inParallel(t, n, func(i int) (err error) {
		subs[i], err = clients[i%connections].Subscribe(ctx, namespace, wide, client.SubscribeOptions{})
		return err
	})
	b.Counts("felix_subscribers", float64(n+1))
	idle := b.Collect()
	each := (idle.Resident - before.Resident) / int64(n)
	t.Logf("%d idle subscriptions: %d bytes of resident memory and %d of heap each, %.2f goroutines each",
		n, each, (idle.Heap-before.Heap)/int64(n), float64(idle.Goroutines-before.Goroutines)/float64(n))
	if each > idleBytes*slack() {
		t.Errorf("an idle subscription costs %d bytes, and %d are allowed", each, idleBytes*slack())
	}
	for i := range uint64(records) {
		publish(t, publisher, wide, record(i+1, 64))
	}
	var readers sync.WaitGroup
	for i, s := range subs {
		readers.Go(func() {
			for want := range uint64(records) {
				e, err := s.Next(ctx)
				if err != nil || numberOf(e.Payload) != want+1 {
					t.Errorf("subscription %d: event %d: %v", i, want, err)
					return
				}
			}
			s.Close()
		})
	}
	readers.Wait()
	b.Counts("felix_delivered_records_total", float64(n*records))
}

// idleBytes is what an idle subscription may cost a broker: the stack of its pump, its QUIC stream and what it negotiated.
const idleBytes = 48 << 10
