package streams

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

const (
	namespace = testkit.Namespace
	orders    = "orders" // of one shard
	wide      = "wide"   // of eight
	mib       = 1 << 20
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	testkit.Main(testkit.Hooks{})
	if text, ok := os.LookupEnv(doomedVariable); ok {
		os.Exit(serveDoomed(text, os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(effort.Settled(m))
}

// start starts a broker with the two streams, and more if asked for.
func start(t testing.TB, s testkit.Setup, more ...testkit.Resource) *testkit.Broker {
	t.Helper()
	s.AuthTimeout = patience // nobody here is slow on purpose
	s.Resources = append([]testkit.Resource{{Name: orders, Shards: 1}, {Name: wide, Shards: 8}}, more...)
	return testkit.Start(t, s)
}

func must[T any](v T, err error) func(testing.TB) T { return testkit.Must(v, err) }

// narrow gives a client small receive windows: what a subscription does not read waits at the broker, and not on the way. All
// subscriptions of one connection together cannot fill its window.
func narrow(o *client.Options) {
	o.EventStreamRecvWindow, o.EventConnRecvWindow = 32<<10, 4*mib
	o.CacheStreamRecvWindow, o.CacheConnRecvWindow = 32<<10, 4*mib // a shared connection takes the larger ones
}

// once makes a client try everything once, so that a test sees each refusal.
func once(o *client.Options) { o.Attempts, o.DialTimeout = 1, patience }

// subscribe opens a subscription that ends with the test.
func subscribe(t testing.TB, c *client.Client, stream string, o client.SubscribeOptions) *client.Subscription {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	s := must(c.Subscribe(ctx, namespace, stream, o))(t)
	t.Cleanup(s.Close)
	return s
}

// record is a payload of size bytes that begins with a number.
func record(n uint64, size int) []byte {
	p := make([]byte, max(size, 8))
	binary.BigEndian.PutUint64(p, n)
	return p
}

// numberOf is the number of a record.
func numberOf(p []byte) uint64 { return binary.BigEndian.Uint64(p) }

// keyOf is a key that belongs to a shard of a stream.
func keyOf(shard, shards uint32) []byte {
	for i := 0; ; i++ {
		if key := fmt.Append(nil, i); wire.RoutingModulo.Shard(key, true, shards) == shard {
			return key
		}
	}
}

// publish publishes one record and waits for its answer.
func publish(t testing.TB, c *client.Client, stream string, payload []byte, o ...client.PublishOption) {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	if _, err := c.Publish(ctx, namespace, stream, payload, o...); err != nil {
		t.Fatal(err)
	}
}

// next takes the next event, which must come.
func next(t testing.TB, s *client.Subscription) client.Event {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	return must(s.Next(ctx))(t)
}

// aside lets a test run beside others at a landing. In full effort it has the machine to itself.
func aside(t *testing.T) {
	t.Helper()
	if !effort.Full() {
		t.Parallel()
	}
}

// patient is a context that ends with the test, or when it takes too long for anything.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}
