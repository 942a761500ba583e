package storetest

import (
	"testing"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

func logsReported(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	n := name("t1", "a", "orders")
	asked := stream(n, 5)
	asked.Durable, asked.Shards = true, 3
	made, _, err := s.CreateStream(ctx, asked)
	want(t, "create", err, nil)
	before := last(ctx, t, s)
	one, two := model.LogID{1}, model.LogID{2}
	got, err := s.SetLogs(ctx, n, 5, []model.ShardLog{{Shard: 2, Log: two}, {Shard: 0, Log: one}})
	want(t, "report", err, nil)
	if got.Log(0) != one || got.Log(1) != (model.LogID{}) || got.Log(2) != two {
		t.Fatalf("reported %x", got.Logs)
	}
	if stored, err := s.Stream(ctx, n); err != nil || stored != got {
		t.Fatalf("stored %+v, %v", stored, err)
	}
	for _, again := range [][]model.ShardLog{{{Shard: 2, Log: two}}, nil} {
		if got, err := s.SetLogs(ctx, n, 5, again); err != nil || got.Log(2) != two {
			t.Fatalf("report %v again: %+v, %v", again, got, err)
		}
	}
	checkHistory(ctx, t, s, before, "updated stream t1/a/orders")
	if _, outcome, err := s.CreateStream(ctx, made); err != nil || outcome != store.Unchanged {
		t.Fatalf("logs count as configuration: %v, %v", outcome, err)
	}

	_, err = s.SetLogs(ctx, n, 6, []model.ShardLog{{Shard: 1, Log: one}})
	want(t, "report for another incarnation", err, store.ErrConflict)
	_, err = s.SetLogs(ctx, n, 5, []model.ShardLog{{Shard: 1, Log: two}, {Shard: 0, Log: two}})
	want(t, "report another log", err, store.ErrConflict)
	_, err = s.SetLogs(ctx, n, 5, []model.ShardLog{{Shard: 3, Log: two}})
	want(t, "report of a shard that there is not", err, store.ErrInvalid)
	_, err = s.SetLogs(ctx, n, 5, []model.ShardLog{{Shard: 1}})
	want(t, "report of no log", err, store.ErrInvalid)
	_, err = s.SetLogs(ctx, name("t1", "a", "none"), 5, nil)
	want(t, "report for no stream", err, store.ErrNotFound)
	if stored, err := s.Stream(ctx, n); err != nil || stored != got {
		t.Fatalf("refused reports left %+v, %v", stored, err)
	}

	logsEnd(t, s, n)
}

// logsEnd: an ephemeral stream never has logs, a durable one has them until it is deleted.
func logsEnd(t *testing.T, s store.Store, n model.ResourceName) {
	ctx := t.Context()
	was, err := s.Stream(ctx, n)
	want(t, "read", err, nil)
	for _, durable := range []bool{false, true} {
		_, err := s.PatchStream(ctx, n, model.StreamPatch{Durable: &durable})
		if durable {
			want(t, "patch to what is so", err, nil)
		} else {
			want(t, "patch to ephemeral", err, store.ErrInvalid)
		}
		if stored, err := s.Stream(ctx, n); err != nil || stored != was {
			t.Fatalf("patched to durable %v it is %+v, %v", durable, stored, err)
		}
	}
	e := name("t1", "a", "ephemeral")
	mustCreateStream(ctx, t, s, e, 6)
	_, err = s.SetLogs(ctx, e, 6, []model.ShardLog{{Shard: 0, Log: model.LogID{7}}})
	want(t, "report for a stream that is not durable", err, store.ErrConflict)
	want(t, "delete", s.DeleteStream(ctx, n), nil)
	again := stream(n, 8)
	again.Durable = true
	if got, _, err := s.CreateStream(ctx, again); err != nil || got.Logs != "" {
		t.Fatalf("created again with %x, %v", got.Logs, err)
	}
}

func cacheLogsReported(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	n := name("t1", "a", "users")
	asked := cache(n, 5)
	asked.Shards = 2
	_, _, err := s.CreateCache(ctx, asked)
	want(t, "create", err, nil)
	before := last(ctx, t, s)
	one, two := model.LogID{1}, model.LogID{2}
	got, err := s.SetCacheLogs(ctx, n, 5, []model.ShardLog{{Shard: 1, Log: two}})
	if err != nil || got.Log(0) != (model.LogID{}) || got.Log(1) != two {
		t.Fatalf("reported %x, %v", got.Logs, err)
	}
	if again, err := s.SetCacheLogs(ctx, n, 5, []model.ShardLog{{Shard: 1, Log: two}}); err != nil || again != got {
		t.Fatalf("reported again %+v, %v", again, err)
	}
	checkHistory(ctx, t, s, before, "updated cache t1/a/users")
	if made, outcome, err := s.CreateCache(ctx, asked); err != nil || outcome != store.Unchanged || made != got {
		t.Fatalf("logs count as configuration: %v, %v", outcome, err)
	}
	display := "Users"
	got.DisplayName = display
	if patched, err := s.PatchCache(ctx, n, model.CachePatch{DisplayName: &display}); err != nil || patched != got {
		t.Fatalf("patched to %+v, %v", patched, err)
	}

	_, err = s.SetCacheLogs(ctx, n, 6, []model.ShardLog{{Log: one}})
	want(t, "report for another incarnation", err, store.ErrConflict)
	_, err = s.SetCacheLogs(ctx, n, 5, []model.ShardLog{{Log: one}, {Shard: 1, Log: one}})
	want(t, "report another log", err, store.ErrConflict)
	_, err = s.SetCacheLogs(ctx, n, 5, []model.ShardLog{{Shard: 2, Log: one}})
	want(t, "report of a shard that there is not", err, store.ErrInvalid)
	_, err = s.SetCacheLogs(ctx, name("t1", "a", "none"), 5, nil)
	want(t, "report for no cache", err, store.ErrNotFound)
	mustCreateStream(ctx, t, s, name("t1", "a", "stream"), 5)
	_, err = s.SetCacheLogs(ctx, name("t1", "a", "stream"), 5, nil)
	want(t, "report for a stream of that name", err, store.ErrNotFound)
	memory := cache(name("t1", "a", "memory"), 7)
	memory.InMemory = true
	_, _, err = s.CreateCache(ctx, memory)
	want(t, "create in memory", err, nil)
	_, err = s.SetCacheLogs(ctx, memory.Key(), 7, []model.ShardLog{{Log: one}})
	want(t, "report for a cache in memory", err, store.ErrConflict)
	if stored, err := s.Cache(ctx, n); err != nil || stored != got {
		t.Fatalf("refused reports left %+v, %v", stored, err)
	}
}
