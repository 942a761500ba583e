package streams

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

// field case STR-13: on one connection, publishes that are refused for all the reasons there are, mixed with good ones. Each refusal has its own
// code, every good publish succeeds and arrives, and the connection stays the same one.
//
// The queue of a stuck shard that is full stands for the quota: there are no others yet.
func TestSTR13_ARefusedPublishDoesNotSpoilLaterOnes(t *testing.T) {
	t.Parallel()
	b := start(t, testkit.Setup{}, testkit.Resource{Name: testkit.Forbidden, Shards: 1}, testkit.Resource{Name: "stuck", Shards: 1})
	b.Fault(testkit.Fault{Do: "pause", Stream: "stuck", For: 10 * time.Minute})
	heal := fill(t, b, "stuck")
	sub := subscribe(t, b.Client(t), orders, client.SubscribeOptions{})
	c := b.Client(t, once)
	before := b.Metric("felix_client_connections_total")
	ctx := patient(t)
	tooLarge := make([]byte, wire.MaxPayload)
	bad := []struct {
		name   string
		stream string
		body   []byte
		is     func(err error) bool
	}{
		{"an unknown stream", "nowhere", []byte("x"), coded(wire.CodeNotFound)},
		{"a forbidden stream", testkit.Forbidden, []byte("x"), coded(wire.CodeForbidden)},
		{"a full queue", "stuck", bytes.Repeat([]byte("x"), 256<<10), coded(wire.CodeOverloaded)},
		{"a record that is too large", orders, tooLarge, argument},
	}
	rounds := testkit.Size("refusal_rounds")
	rng := rand.New(rand.NewPCG(13, 13))
	for n := range uint64(rounds) {
		for _, i := range rng.Perm(len(bad)) {
			if _, err := c.Publish(ctx, namespace, bad[i].stream, bad[i].body); !bad[i].is(err) {
				t.Fatalf("round %d: %s was answered %v", n, bad[i].name, err)
			}
		}
		publish(t, c, orders, record(n, 64))
		if got := numberOf(next(t, sub).Payload); got != n {
			t.Fatalf("round %d: record %d arrived", n, got)
		}
	}
	if after := b.Metric("felix_client_connections_total"); after != before {
		t.Errorf("%v connections were made meanwhile, want none", after-before)
	}
	heal()
}

// field case STR-13: frames that announce more than a frame may hold, each on a stream of its own, cost their stream and nothing else of the
// connection.
func TestSTR13_AFrameThatIsTooLargeCostsItsStreamOnly(t *testing.T) {
	t.Parallel()
	b := start(t, testkit.Setup{})
	ctx := patient(t)
	r := must(dialRaw(ctx, b.Place, must(loopback())(t), patience))(t)
	defer r.release()
	good := must(r.signIn(ctx))(t)
	rounds := testkit.Size("refusal_rounds")
	for n := range uint64(rounds) {
		bad := must(r.signIn(ctx))(t)
		if _, err := bad.Write(wire.AppendHeader(nil, wire.Header{Flags: wire.FlagPublishBatch | wire.FlagPublishAcked, Length: wire.MaxPayload + 1})); err != nil {
			t.Fatal(err)
		}
		if left, err := io.ReadAll(bad); err != nil {
			t.Fatalf("round %d: the stream with the large frame ended with %v after %d bytes", n, err, len(left))
		}
		bad.CancelWrite(0)
		if err := publishRaw(good, orders, n); err != nil {
			t.Fatalf("round %d: a good publish: %v", n, err)
		}
	}
	b.Counts("felix_client_streams_refused_total{too_long}", float64(rounds))
	if n := b.Metric("felix_client_connections_total"); n != 1 {
		t.Errorf("%v connections were made, want 1", n)
	}
}

// coded is whether the broker refused with a code.
func coded(code wire.Code) func(error) bool {
	return func(err error) bool {
		var refused *client.BrokerError
		return errors.As(err, &refused) && refused.Code == code
	}
}

// argument is whether the client found the call at fault, before anything was sent.
func argument(err error) bool {
	var wrong *client.ArgumentError
	return errors.As(err, &wrong)
}

// fill publishes to a shard that is paused until its queue is full. The function that it returns heals the shard and requires that what
// was let in is answered, and the rest refused.
func fill(t *testing.T, b *testkit.Broker, stream string) (heal func()) {
	t.Helper()
	const clients, each, size = 3, 12, 256 << 10 // more than the 8 MiB of a queue, in parts that one client may have under way
	ctx := patient(t)
	var open []*client.PendingPublish
	for range clients {
		c := b.Client(t, once, func(o *client.Options) {
			o.AckTimeout, o.PublishInflightBytes = 10*testkit.Patience, 3*each*size // one shard may have half of it
		})
		for range each {
			open = append(open, must(c.PublishAsync(ctx, namespace, stream, make([]byte, size)))(t))
		}
	}
	b.Counts("felix_tenant_publish_queue_full_total{refused}", 1)
	return func() {
		t.Helper()
		b.Fault(testkit.Fault{Do: "heal", Stream: stream})
		refused := 0
		for _, p := range open {
			switch _, err := p.Wait(ctx); {
			case coded(wire.CodeOverloaded)(err):
				refused++
			case err != nil:
				t.Errorf("a publish to the full queue: %v", err)
			}
		}
		if refused == 0 || refused > len(open)/2 {
			t.Errorf("%d of %d publishes were refused", refused, len(open))
		}
	}
}
