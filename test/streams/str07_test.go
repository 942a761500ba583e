package streams

import (
	"errors"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// field case STR-07, the part of streams in memory: their records have no offsets, so a subscription at any is refused by type, below what is
// held, inside it, and above; it never begins somewhere else. From the start and from now on are served beside that.
func TestSTR07_OffsetsOfAnInMemoryStreamAreRefusedByType(t *testing.T) {
	t.Parallel()
	held := testkit.SmallLimits().RingBatches
	b := start(t, testkit.Setup{})
	c := b.Client(t, once)
	ctx := patient(t)
	for n := range 2 * held {
		publish(t, c, orders, record(uint64(n), 8))
	}
	tail := id.Offset(2 * held)
	oldest := tail - id.Offset(held)
	for _, at := range []id.Offset{0, oldest - 1, oldest, tail, tail + 1, tail + 1000, 1<<64 - 1} {
		s, err := c.Subscribe(ctx, namespace, orders, client.SubscribeOptions{From: client.At(at)})
		var refused *client.BrokerError
		if !errors.As(err, &refused) || refused.Code != wire.CodeInvalidRequest || refused.Reason != "ephemeral" || refused.Retry == wire.RetryRetry {
			t.Errorf("a subscription at offset %d was answered %v", at, err)
		}
		if err == nil {
			s.Close()
		}
	}
	if n := numberOf(next(t, subscribe(t, c, orders, client.SubscribeOptions{From: client.Earliest()})).Payload); n != uint64(oldest) {
		t.Errorf("from the start begins with record %d, want the oldest that is held, %d", n, oldest)
	}
	latest := subscribe(t, c, orders, client.SubscribeOptions{})
	publish(t, c, orders, record(uint64(tail), 8))
	if n := numberOf(next(t, latest).Payload); n != uint64(tail) {
		t.Errorf("from now on begins with record %d, want %d", n, tail)
	}
}
