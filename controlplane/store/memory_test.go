package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/controlplane/store/storetest"
)

// mission 302: the memory store passes the contract of all stores.
func TestMemoryKeepsTheContract(t *testing.T) {
	storetest.Run(t, func() store.Store {
		return store.NewMemory(store.MemoryOptions{Capabilities: store.Capabilities{Durable: true}})
	})
}

func namespaceIn(t *testing.T, m *store.Memory) context.Context {
	t.Helper()
	ctx := context.Background()
	if err := m.CreateTenant(ctx, model.Tenant{TenantID: "t", DisplayName: "T"}); err != nil {
		t.Fatal(err)
	}
	if err := m.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "n"}); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func streamNamed(name string) model.Stream {
	return model.Stream{TenantID: "t", Namespace: "n", Stream: name, Incarnation: 1, Kind: model.StreamKindStream, Shards: 1,
		ReplicationFactor: 1, Consistency: model.ConsistencyLeader, Delivery: model.DeliveryAtLeastOnce}
}

func TestDurableStreamIsRefusedWithoutStorage(t *testing.T) {
	m := store.NewMemory(store.MemoryOptions{})
	ctx := namespaceIn(t, m)
	s := streamNamed("s")
	s.Durable = true
	if _, _, err := m.CreateStream(ctx, s); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "this broker has no storage directory") {
		t.Fatalf("create: %v", err)
	}
	if _, _, err := m.CreateStream(ctx, streamNamed("s")); err != nil {
		t.Fatal(err)
	}
	durable := true
	if _, err := m.PatchStream(ctx, s.Key(), model.StreamPatch{Durable: &durable}); !errors.Is(err, store.ErrInvalid) {
		t.Fatalf("patch: %v", err)
	}
	if got, err := m.Stream(ctx, s.Key()); err != nil || got.Durable {
		t.Fatalf("a refused patch left %+v, %v", got, err)
	}
}

func TestFullCatalogRefusesAndTakesAgainAfterADelete(t *testing.T) {
	m := store.NewMemory(store.MemoryOptions{ResourcesMax: 3, ScopesMax: 3})
	ctx := namespaceIn(t, m)
	for _, name := range []string{"a", "b"} {
		if _, _, err := m.CreateStream(ctx, streamNamed(name)); err != nil {
			t.Fatal(err)
		}
	}
	c := model.Cache{TenantID: "t", Namespace: "n", Cache: "c", Incarnation: 1, Shards: 1, ReplicationFactor: 1, Consistency: model.ConsistencyLeader}
	if _, _, err := m.CreateCache(ctx, c); err != nil {
		t.Fatal(err)
	}
	_, _, err := m.CreateStream(ctx, streamNamed("d"))
	var full *store.FullError
	if !errors.As(err, &full) || !errors.Is(err, store.ErrFull) || full.Bound != 3 {
		t.Fatalf("fourth resource: %v", err)
	}
	if _, outcome, err := m.CreateStream(ctx, streamNamed("a")); err != nil || outcome != store.Unchanged {
		t.Fatalf("a repeated create needs no room: %v, %v", outcome, err)
	}
	if err := m.DeleteStream(ctx, streamNamed("a").Key()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.CreateStream(ctx, streamNamed("d")); err != nil {
		t.Fatalf("after a delete: %v", err)
	}
	if err := m.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "o"}); err != nil {
		t.Fatal(err)
	}
	if err := m.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "p"}); !errors.Is(err, store.ErrFull) {
		t.Fatalf("fourth scope: %v", err)
	}
	if err := m.CreateTenant(ctx, model.Tenant{TenantID: "u", DisplayName: "U"}); !errors.Is(err, store.ErrFull) {
		t.Fatalf("fourth scope: %v", err)
	}
}

func TestChangeHistoryKeepsMemoryFlat(t *testing.T) {
	m := store.NewMemory(store.MemoryOptions{Capabilities: store.Capabilities{Durable: true}})
	ctx := namespaceIn(t, m)
	key := streamNamed(strings.Repeat("s", model.NameBytesMax)).Key()
	if _, _, err := m.CreateStream(ctx, streamNamed(key.Name)); err != nil {
		t.Fatal(err)
	}
	write := func(n int) {
		for i := range n {
			compress := i%2 == 0
			if _, err := m.PatchStream(ctx, key, model.StreamPatch{Compress: &compress}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(2 * store.HistoryChanges)
	before := heap()
	write(10 * store.HistoryChanges)
	if grown := heap() - before; grown > 1<<20 {
		t.Fatalf("ten more histories of writes hold %d bytes more", grown)
	}
	snap, err := m.Snapshot(ctx, model.KindStreams)
	if err != nil {
		t.Fatal(err)
	}
	page, err := m.Changes(ctx, model.KindStreams, snap.Seq-store.HistoryChanges, 1<<20)
	if err != nil || len(page.Items) != store.HistoryChanges {
		t.Fatalf("%d changes are kept, %v", len(page.Items), err)
	}
	_, err = m.Changes(ctx, model.KindStreams, snap.Seq-store.HistoryChanges-1, 1)
	var position *store.PositionError
	if !errors.As(err, &position) || position.Oldest != snap.Seq-store.HistoryChanges || position.Last != snap.Seq {
		t.Fatalf("one change further back: %v", err)
	}
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func TestEpochTellsStoresApart(t *testing.T) {
	a, err := store.NewEpoch(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := store.NewEpoch(nil)
	if err != nil || a == b || len(a) != 32 {
		t.Fatalf("two epochs are %q and %q (%v)", a, b, err)
	}
	if _, err := store.NewEpoch(bytes.NewReader([]byte{1, 2})); err == nil {
		t.Fatal("a source that runs dry gave an epoch")
	}
	m := store.NewMemory(store.MemoryOptions{Epoch: a})
	snap, err := m.Snapshot(context.Background(), model.KindTenants)
	if err != nil || snap.Epoch != a {
		t.Fatalf("snapshot: %+v, %v", snap, err)
	}
	page, err := m.Changes(context.Background(), model.KindTenants, 0, 1)
	if err != nil || page.Epoch != a {
		t.Fatalf("changes: %+v, %v", page, err)
	}
}

func TestRecordsReturnedBelongToTheCaller(t *testing.T) {
	m := store.NewMemory(store.MemoryOptions{})
	ctx := namespaceIn(t, m)
	for i := range 3 {
		if _, _, err := m.CreateStream(ctx, streamNamed(fmt.Sprint("s", i))); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := m.Streams(ctx, "t", "n", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	rows[0].Stream = "changed"
	rows = append(rows[:1], streamNamed("other"))
	again, err := m.Streams(ctx, "t", "n", "", 10)
	if err != nil || again[0].Stream != "s0" || again[1].Stream != "s1" {
		t.Fatalf("a caller's change reached the store: %v, %v (%d)", again, err, len(rows))
	}
}

func TestErrorsSayWhatAndWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&store.NotFoundError{Kind: model.KindStreams, Key: model.ResourceName{Tenant: "t", Namespace: "n", Name: "s"}}, "stream t/n/s does not exist"},
		{&store.NotFoundError{Kind: model.KindTenants, Key: model.ResourceName{Tenant: "t"}}, "tenant t does not exist"},
		{&store.ExistsError{Kind: model.KindNamespaces, Key: model.ResourceName{Tenant: "t", Namespace: "n"}}, "namespace t/n exists"},
		{&store.ExistsError{Kind: model.KindCaches, Key: model.ResourceName{Tenant: "t", Namespace: "n", Name: "c"}, Differs: []string{"shards", "consistency"}},
			"cache t/n/c exists with another configuration: shards, consistency differ; delete it first or ask for what it has"},
		{&store.FullError{What: "streams", Bound: 3}, "the catalog holds 3 streams, which is its bound; delete some first"},
		{&store.PositionError{Since: 9, Oldest: 1, Last: 5}, "position 9 is ahead of the last write 5; take a snapshot"},
		{&store.PositionError{Since: 0, Oldest: 1, Last: 5}, "changes after 0 are no longer kept, only those after 1; take a snapshot"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
