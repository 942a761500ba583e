package local

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

func start(t *testing.T, o Options) *Broker {
	t.Helper()
	b, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestABrokerServesWhatItsOptionsNameAndNobodyElse(t *testing.T) {
	b := start(t, Options{Streams: []Stream{{Name: "events", Shards: 4}}, Caches: []string{"users"}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, b.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(ctx, Namespace, "events", []byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := c.StreamShards(ctx, Namespace, "events"); err != nil || n.Count != 4 {
		t.Errorf("the stream has %d shards, %v; want 4", n.Count, err)
	}
	if err := c.CachePut(ctx, Namespace, "users", "k", []byte("v"), 0); err != nil {
		t.Error(err)
	}
	if n, err := b.Metric("felix_published_records_total"); err != nil || n != 1 {
		t.Errorf("%v records were published, %v", n, err)
	}
	if _, err := b.Metric("felix_no_such_total"); err == nil {
		t.Error("a metric that does not exist was read")
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	wrong := b.Client()
	wrong.Token = "another"
	if c, err := client.Connect(ctx, wrong); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("another token: %v, %v", c, err)
	}
}

func TestABrokerThatIsClosedLeavesNothing(t *testing.T) {
	for range 3 {
		b, err := Start(Options{Streams: []Stream{{Name: "events", Shards: 4}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	} // TestMain looks for goroutines
}
