package streams

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// field case STR-05: what was acknowledged last before a broker stops in order reaches every subscriber, each record once and in
// order, before the subscription ends: one that keeps up, and one that begins to read when the end has begun. In every other round
// the shard is slow, so that records are on their way when the end begins.
func TestSTR05_TheLastRecordsBeforeAGracefulStopAreDelivered(t *testing.T) {
	t.Parallel()
	for round := range testkit.Size("drained_brokers") {
		b := start(t, testkit.Setup{})
		slowDown(b, orders, round)
		readers, publisher := b.Client(t), b.Client(t, once)
		quick := subscribe(t, readers, orders, client.SubscribeOptions{})
		late := subscribe(t, readers, orders, client.SubscribeOptions{})
		ends(t, publisher, orders, quick, late, func() { b.Drain() })
		b.Stop()
	}
}

// field case STR-05: the same when the stream is deleted under its publisher, and the broker goes on.
func TestSTR05_TheLastRecordsBeforeAStreamIsDeletedAreDelivered(t *testing.T) {
	t.Parallel()
	doomed := testkit.Resource{Name: "doomed", Shards: 1}
	rest := []testkit.Resource{{Name: orders, Shards: 1}, {Name: wide, Shards: 8}}
	b := start(t, testkit.Setup{}, doomed)
	readers := b.Client(t, once)
	for round := range testkit.Size("deleted_streams") {
		b.Assign(append([]testkit.Resource{doomed}, rest...))
		slowDown(b, doomed.Name, round)
		publisher := b.Client(t, once)
		quick := subscribe(t, readers, doomed.Name, client.SubscribeOptions{})
		late := subscribe(t, readers, doomed.Name, client.SubscribeOptions{})
		ends(t, publisher, doomed.Name, quick, late, func() { b.Assign(rest) })
	}
}

// slowDown makes the turns of a stream's shard slow, in every other round.
func slowDown(b *testkit.Broker, stream string, round int) {
	if round%2 == 0 {
		b.Fault(testkit.Fault{Do: "slow", Stream: stream, By: 5 * time.Millisecond, For: testkit.Patience})
	}
}

// ends publishes to a stream until that is refused, with the end in between, and requires that both subscriptions get every
// acknowledged record and then end.
func ends(t *testing.T, c *client.Client, stream string, quick, late *client.Subscription, end func()) {
	t.Helper()
	const before = 50 // records before the end begins
	ctx, cancel := testkit.Within()
	defer cancel()
	type taken struct {
		all []uint64
		err error
	}
	quickly := make(chan taken, 1)
	go func() {
		all, err := untilEnd(ctx, quick)
		quickly <- taken{all, err}
	}()
	// Without a broker a publish would wait for one as long as its context allows: it may until both have what there is.
	publishing, noMore := context.WithCancel(ctx)
	defer noMore()
	begun, acknowledged := make(chan struct{}), make(chan []uint64, 1)
	go func() { acknowledged <- publishUntilRefused(ctx, publishing, c, stream, before, begun) }()
	<-begun
	lately := make(chan taken, 1)
	go func() {
		all, err := untilEnd(ctx, late)
		lately <- taken{all, err}
	}()
	end()
	got := map[string]taken{"the quick reader": <-quickly, "the late reader": <-lately}
	noMore()
	owed := <-acknowledged
	if len(owed) < before-underWay {
		t.Errorf("the publisher was refused after %d records, before the end had begun", len(owed))
	}
	for name, of := range got {
		if !errors.Is(of.err, io.EOF) {
			t.Errorf("%s: its subscription ended with %v", name, of.err)
		}
		complete(t, name, owed, of.all)
	}
}

// underWay is how many records a publisher has without an answer.
const underWay = 16

// publishUntilRefused publishes with several records under way, closes begun at the record of that number, or when it ends, and returns which were
// acknowledged before one was not. It begins records while publishing stands, and waits within ctx for all that it has begun: what is still on its
// way when the stream is made again would be a record of that one.
func publishUntilRefused(ctx, publishing context.Context, c *client.Client, stream string, at uint64, begun chan<- struct{}) (acknowledged []uint64) {
	begin := sync.OnceFunc(func() { close(begun) })
	defer begin()
	var open []*client.PendingPublish
	refused := false
	settle := func() {
		_, err := open[0].Wait(ctx)
		open = open[1:]
		if refused = refused || err != nil; !refused {
			acknowledged = append(acknowledged, uint64(len(acknowledged)))
		}
	}
	for n := uint64(0); !refused; n++ {
		if n == at {
			begin()
		}
		p, err := c.PublishAsync(publishing, namespace, stream, record(n, 100))
		if err != nil {
			break
		}
		if open = append(open, p); len(open) == underWay {
			settle()
		}
	}
	for len(open) > 0 { // what was sent behind one that was refused was refused too
		settle()
	}
	return acknowledged
}

// untilEnd reads a subscription to its end.
func untilEnd(ctx context.Context, s *client.Subscription) (all []uint64, err error) {
	for {
		e, err := s.Next(ctx)
		if err != nil {
			return all, err
		}
		all = append(all, numberOf(e.Payload))
	}
}

// complete requires that the records from 0 on came in order, each once, and with them all that were acknowledged.
func complete(t testing.TB, who string, owed, got []uint64) {
	t.Helper()
	for i, n := range got {
		if n != uint64(i) {
			t.Errorf("%s: record %d came where %d was due", who, n, i)
			return
		}
	}
	if len(got) < len(owed) {
		t.Errorf("%s got %d records of %d that were acknowledged", who, len(got), len(owed))
	}
}
