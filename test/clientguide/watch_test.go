package clientguide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/internal/testkit"
)

func changeIt(ctx context.Context, c *client.Client, change func([]byte) []byte) error {
	for {
		seen, err := c.CacheGetVersion(ctx, "default", "users", "alice")
		if err != nil {
			return err
		}
		condition := client.IfAbsent()
		if seen.Found {
			condition = client.IfVersion(seen.Version)
		}
		put, err := c.CachePutIf(ctx, "default", "users", "alice", change(seen.Value), condition, time.Hour)
		if err != nil || put.Applied {
			return err
		}
	}
}

func count(ctx context.Context, c *client.Client) error {
	sum, err := c.CounterAdd(ctx, "default", "users", "visits", 1)
	switch {
	case errors.Is(err, client.ErrOutcomeUnknown):
		return fmt.Errorf("it may have been added, and is not added again: %w", err)
	case err != nil:
		return err
	}
	again, found, err := c.CounterGet(ctx, "default", "users", "visits") // not found: never written
	if err == nil && (!found || again != sum) {
		return fmt.Errorf("%d, %v after %d", again, found, sum)
	}
	return err
}

func keepACopy(ctx context.Context, c *client.Client, known *known) error {
	w, err := c.WatchCache(ctx, "default", "users", client.WatchOptions{Prefix: "u/", Retained: true})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		item, err := w.NextItem(ctx)
		if err != nil {
			return err
		}
		switch change := item.Change; item.Kind {
		case client.ItemSnapshot: // values of this shard come; what is not among them is gone
			known.forget(item.Shard)
		case client.ItemSnapshotEnd: // all of them have come
			known.complete(item.Shard)
		case client.ItemEvent:
			if change.Deleted { // or expired
				known.remove(item.Shard, change.Key)
			} else {
				known.set(item.Shard, change.Key, change.Value)
			}
		case client.ItemShardEnded:
			return fmt.Errorf("shard %d ended: %w", item.Shard, item.Err)
		}
	}
}

// known is a copy of a cache. news gets what a shard has after each snapshot and each change.
type known struct {
	values map[uint32]map[string]string
	whole  map[uint32]bool
	news   chan string
}

func (k *known) forget(shard uint32) {
	k.values[shard], k.whole[shard] = map[string]string{}, false
}

func (k *known) complete(shard uint32) {
	k.whole[shard] = true
	k.tell(shard)
}

func (k *known) remove(shard uint32, key string) {
	delete(k.values[shard], key)
	k.tell(shard)
}

func (k *known) set(shard uint32, key string, value []byte) {
	k.values[shard][key] = string(value)
	k.tell(shard)
}

func (k *known) tell(shard uint32) {
	if k.whole[shard] {
		k.news <- fmt.Sprintf("%d %v", shard, k.values[shard])
	}
}

// logBacked is a client of a broker whose cache has a log.
func logBacked(t *testing.T) (context.Context, *client.Client, *testbroker.Broker) {
	t.Helper()
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"default/users": 2}, Durable: true})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := testkit.Connect(t, client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM})
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return ctx, c, b
}

func TestConditionalWritesAndCounters(t *testing.T) {
	ctx, c, _ := logBacked(t)
	tries := 0
	longer := func(old []byte) []byte {
		if tries++; tries == 1 { // somebody is faster
			if err := c.CachePut(ctx, "default", "users", "alice", []byte("a"), 0); err != nil {
				t.Error(err)
			}
		}
		return append(bytes.Clone(old), 'b')
	}
	if err := changeIt(ctx, c, longer); err != nil {
		t.Fatal(err)
	}
	if value, _, err := c.CacheGet(ctx, "default", "users", "alice"); string(value) != "ab" || tries != 2 || err != nil {
		t.Errorf("%q after %d tries, %v", value, tries, err)
	}
	if err := count(ctx, c); err != nil {
		t.Error(err)
	}
}

func TestWatching(t *testing.T) {
	ctx, c, b := logBacked(t)
	b.CachePut("default/users", 1, "u/alice", "1")
	b.CachePut("default/users", 1, "u/bob", "2")
	ctx, cancel := context.WithCancel(ctx)
	k := &known{values: make(map[uint32]map[string]string), whole: make(map[uint32]bool), news: make(chan string)}
	ended := make(chan error, 1)
	go func() { ended <- keepACopy(ctx, c, k) }()
	want := func(news ...string) {
		t.Helper()
		var got []string
		for range news {
			select {
			case one := <-k.news:
				got = append(got, one)
			case err := <-ended:
				t.Fatal(err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, news) { // shards are in no order
			t.Fatalf("%q, want %q", got, news)
		}
	}
	want("0 map[]", "1 map[u/alice:1 u/bob:2]")
	b.CacheDelete("default/users", 1, "u/alice")
	want("1 map[u/bob:2]")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
