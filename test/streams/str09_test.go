package streams

import (
	"context"
	"errors"
	"testing"

	"github.com/felixd/felixd/internal/testkit"
)

// field case STR-09: clients that connect, subscribe, receive a record and go, in every way there is: in order, by resetting their
// streams, by falling silent, by being killed. Afterwards nothing of them is left: no gauge, goroutine, descriptor, memory or series of
// metrics.
func TestSTR09_EveryEntryOfAConnectionAndASubscriberIsReleased(t *testing.T) {
	t.Parallel()
	b := start(t, testkit.Setup{Idle: rawIdle})
	c := b.Client(t)
	publish(t, c, orders, record(0, 100)) // what all of them receive
	if err := c.Close(patient(t)); err != nil {
		t.Fatal(err)
	}
	n := testkit.Size("connect_cycles")
	processes := max(1, n/(4*doomedEach))
	come(t, b.Place, 8*len(leaving), leaving[:len(leaving)-1])
	before := empty(t, b)
	counted := before.Metrics["felix_subscribe_requests_total"]
	vain := 0
	for range processes {
		vain += killOne(t, b.Place)
	}
	vain += come(t, b.Place, n-processes*doomedEach, leaving)
	asBefore(t, b, before, 2*n) // a session and a subscription each
	if got := b.Metric("felix_subscribe_requests_total") - counted; got < float64(n) || got > float64(n+vain) {
		t.Errorf("%v subscribes were counted, want %d, and %d that came in vain", got, n, vain)
	}
}

// Clients that connect, publish a record and go, one after another by the thousand, leave nothing behind but their records. Before
// and after, the stream is full: then of the records of one client, now of as many clients as there are records.
func TestChurnOfConnectionsLeavesGoroutinesMemoryAndStreamsAtTheBaseline(t *testing.T) {
	t.Parallel()
	b := start(t, testkit.Setup{})
	ctx := patient(t)
	visit := func(i int) error { return visitOnce(ctx, b.Place, uint64(i)) }
	n := testkit.Size("churned_connections")
	inParallel(t, n/10, visit)
	c := b.Client(t)
	for i := range testkit.SmallLimits().RingBatches {
		publish(t, c, orders, record(uint64(i), 100))
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	before := empty(t, b)
	records := before.Metrics["felix_published_records_total"]
	inParallel(t, n, visit)
	asBefore(t, b, before, n)
	if got := b.Metric("felix_published_records_total") - records; got != float64(n) {
		t.Errorf("%v records were published, want %d", got, n)
	}
}

// visitOnce connects, publishes an acknowledged record and closes the connection.
func visitOnce(ctx context.Context, at testkit.Place, n uint64) error {
	socket, err := loopback()
	if err != nil {
		return err
	}
	r, err := dialRaw(ctx, at, socket, patience)
	if err != nil {
		return err
	}
	defer r.release()
	s, err := r.signIn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(publishRaw(s, orders, n), r.conn.CloseWithError(0, ""))
}
