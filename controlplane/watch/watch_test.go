package watch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

func catalog(t *testing.T) *store.Memory {
	t.Helper()
	m := store.NewMemory(store.MemoryOptions{})
	ctx := t.Context()
	if err := m.CreateTenant(ctx, model.Tenant{TenantID: "t1", DisplayName: "One"}); err != nil {
		t.Fatal(err)
	}
	if err := m.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "default", DisplayName: "Default"}); err != nil {
		t.Fatal(err)
	}
	return m
}

func addStream(t *testing.T, m store.Store, name string, incarnation model.Incarnation, routing string, shards uint32) {
	t.Helper()
	spec := model.StreamSpec{Stream: name, Shards: &shards}
	s, err := spec.Record("t1", "default", incarnation)
	if err != nil {
		t.Fatal(err)
	}
	s.Routing = model.Routing(routing)
	if _, _, err := m.CreateStream(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// follow runs a watcher and returns what it says.
func follow(t *testing.T, feed store.Feed) <-chan route.Desired {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, done := make(chan route.Desired, 64), make(chan struct{})
	go func() {
		defer close(done)
		Run(ctx, Options{Feed: feed, Changed: func(d route.Desired) { out <- d }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Wait: func(context.Context, time.Duration) {}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return out
}

// until waits for a Desired that the test is content with. Versions only grow.
func until(t *testing.T, ch <-chan route.Desired, ok func(route.Desired) bool) route.Desired {
	t.Helper()
	version := uint64(0)
	for {
		select {
		case d := <-ch:
			if d.Version <= version {
				t.Fatalf("version %d after %d", d.Version, version)
			}
			if version = d.Version; ok(d) {
				return d
			}
		case <-time.After(time.Minute):
			t.Fatal("the change did not arrive")
		}
	}
}

func TestTheWholeCatalogArrivesInOrderAndEveryChangeFollows(t *testing.T) {
	m := catalog(t)
	addStream(t, m, "ticks", 11, "modulo", 1)
	addStream(t, m, "orders", 12, "jump_hash", 4)
	cache, err := model.CacheSpec{Cache: "users"}.Record("t1", "default", 13)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.CreateCache(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	ch := follow(t, m)
	d := until(t, ch, func(d route.Desired) bool { return len(d.Assignments) == 3 })
	for i := 1; i < len(d.Assignments); i++ {
		if d.Assignments[i-1].Name.Compare(d.Assignments[i].Name) >= 0 {
			t.Fatalf("%s before %s", d.Assignments[i-1].Name, d.Assignments[i].Name)
		}
	}
	orders := d.Assignments[0]
	if orders.Name != (route.Name{Kind: route.Stream, Tenant: "t1", Namespace: "default", Name: "orders"}) || orders.Incarnation != 12 ||
		orders.Shards != 4 || orders.Routing != wire.RoutingJumpHash || orders.Generation != 1 || orders.Durable {
		t.Fatalf("assignment %+v", orders)
	}
	if users := d.Assignments[2]; users.Name.Kind != route.Cache || users.Incarnation != 13 {
		t.Fatalf("assignment %+v", users)
	}
	if err := m.DeleteStream(t.Context(), model.ResourceName{Tenant: "t1", Namespace: "default", Name: "orders"}); err != nil {
		t.Fatal(err)
	}
	addStream(t, m, "orders", 99, "modulo", 1)
	until(t, ch, func(d route.Desired) bool {
		return len(d.Assignments) == 3 && d.Assignments[0].Incarnation == 99
	})
}

func TestADurableStreamsLogsRetentionAndCompressionFollowLive(t *testing.T) {
	m := store.NewMemory(store.MemoryOptions{Capabilities: store.Capabilities{Durable: true}})
	ctx := t.Context()
	if err := m.CreateTenant(ctx, model.Tenant{TenantID: "t1", DisplayName: "One"}); err != nil {
		t.Fatal(err)
	}
	if err := m.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "default"}); err != nil {
		t.Fatal(err)
	}
	durable, shards := true, uint32(2)
	s, err := model.StreamSpec{Stream: "orders", Durable: &durable, Shards: &shards}.Record("t1", "default", 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.CreateStream(ctx, s); err != nil {
		t.Fatal(err)
	}
	ch := follow(t, m)
	first := until(t, ch, func(d route.Desired) bool { return len(d.Assignments) == 1 }).Assignments[0]
	if !first.Durable || first.Logs != "" || first.Retention != (route.Retention{}) || first.Compress {
		t.Fatalf("assignment %+v", first)
	}
	if _, err := m.SetLogs(ctx, s.Key(), 7, []model.ShardLog{{Shard: 1, Log: model.LogID{9}}}); err != nil {
		t.Fatal(err)
	}
	compress := true
	patch := model.StreamPatch{Compress: &compress, Retention: &model.RetentionPatch{
		MaxAgeSeconds: model.SetBound(model.RetentionSecondsMax), MaxSizeBytes: model.SetBound(model.RetentionBytesMax)}}
	if _, err := m.PatchStream(ctx, s.Key(), patch); err != nil {
		t.Fatal(err)
	}
	got := until(t, ch, func(d route.Desired) bool { return d.Assignments[0].Compress }).Assignments[0]
	want := route.Retention{Bytes: model.RetentionBytesMax, Age: model.RetentionSecondsMax * time.Second}
	if got.Retention != want || !got.Log(0).IsZero() || got.Log(1) != (id.LogID{9}) {
		t.Fatalf("assignment %+v", got)
	}
	if !first.SameHosting(got) {
		t.Fatal("the change would stop running shards")
	}
}

func TestACacheIsKeptInALogUnlessItIsInMemoryAndItsLogsFollow(t *testing.T) {
	m, ctx := catalog(t), t.Context()
	memory, shards := true, uint32(2)
	var kept model.Cache
	for i, spec := range []model.CacheSpec{{Cache: "memory", InMemory: &memory}, {Cache: "users", Shards: &shards}} {
		c, err := spec.Record("t1", "default", model.Incarnation(i+1))
		if err != nil {
			t.Fatal(err)
		}
		if kept, _, err = m.CreateCache(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	ch := follow(t, m)
	first := until(t, ch, func(d route.Desired) bool { return len(d.Assignments) == 2 }).Assignments
	if first[0].Durable || first[0].Name.Name != "memory" || !first[1].Durable || first[1].Logs != "" || first[1].Shards != 2 {
		t.Fatalf("assignments %+v", first)
	}
	if _, err := m.SetCacheLogs(ctx, kept.Key(), 2, []model.ShardLog{{Shard: 1, Log: model.LogID{9}}}); err != nil {
		t.Fatal(err)
	}
	got := until(t, ch, func(d route.Desired) bool { return d.Assignments[1].Logs != "" }).Assignments[1]
	if !got.Log(0).IsZero() || got.Log(1) != (id.LogID{9}) || !first[1].SameHosting(got) {
		t.Fatalf("assignment %+v", got)
	}
}

// brokenFeed fails until it is mended.
type brokenFeed struct {
	store.Feed
	broken atomic.Bool
	tries  atomic.Int64
}

func (b *brokenFeed) Snapshot(ctx context.Context, k model.Kind) (store.Snapshot, error) {
	if b.tries.Add(1); b.broken.Load() {
		if b.tries.Load() > 20 {
			b.broken.Store(false)
		}
		return store.Snapshot{}, errors.New("not now")
	}
	return b.Feed.Snapshot(ctx, k)
}

func TestAFeedThatFailsIsTriedAgain(t *testing.T) {
	m := catalog(t)
	addStream(t, m, "orders", 1, "modulo", 1)
	feed := &brokenFeed{Feed: m}
	feed.broken.Store(true)
	until(t, follow(t, feed), func(d route.Desired) bool { return len(d.Assignments) == 1 })
	if feed.tries.Load() < 20 {
		t.Fatalf("only %d tries", feed.tries.Load())
	}
}
