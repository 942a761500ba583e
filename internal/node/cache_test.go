package node

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// hosted applies caches beside the stream that every broker has, and waits until their shards serve.
func hosted(b *broker, caches ...route.Assignment) (handles []*shardactor.Handle) {
	b.t.Helper()
	b.node.Apply(route.Desired{Version: 2, Assignments: append(caches, resource(route.Stream, "orders", 1))})
	for _, a := range caches {
		var h *shardactor.Handle
		eventually(b.t, a.Name.String()+" is there", func() bool {
			if e := b.node.Table.Get(a.Name); e != nil {
				x, _ := e.Shard(0)
				h = x.Shard
			}
			return h != nil && h.Serving() // one in memory is found there before it has begun
		})
		handles = append(handles, h)
	}
	return handles
}

// keptAndVolatile are a cache that asks for a log and one that does not.
func keptAndVolatile() []route.Assignment {
	kept := resource(route.Cache, "kept", 1)
	kept.Durable = true
	return []route.Assignment{kept, resource(route.Cache, "volatile", 1)}
}

// What a client was told is in a cache survives the power cut of its broker, with what it counted; what is in memory does not.
func TestAcknowledgedCacheWritesSurviveAPowerCut(t *testing.T) {
	const keys = 20
	serve := func(t *testing.T, mem *vfs.Mem, use func(*broker, *line)) {
		ready := make(chan struct{}, 1)
		change, done := onDisk(t, mem, ready)
		t.Cleanup(done) // after the broker has stopped
		b := start(t, change)
		select {
		case <-ready:
		case <-within(t).Done():
			t.Fatal("the node is not ready")
		}
		handles := hosted(b, keptAndVolatile()...)
		if !handles[0].Durable || handles[0].Keyed == nil || handles[1].Durable || handles[1].Keyed != nil {
			t.Fatalf("kept in a log: %v, in memory: %v", handles[0].Durable, !handles[1].Durable)
		}
		l, _ := b.dial().open(today())
		use(b, l)
	}
	mem := vfs.NewMem()
	var cut *vfs.Mem
	t.Run("before", func(t *testing.T) {
		serve(t, mem, func(_ *broker, l *line) {
			for i := range uint64(keys) {
				for _, cache := range []string{"kept", "volatile"} {
					l.says(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: cache, Key: fmt.Sprint(i), Value: []byte("x"), RequestID: wire.Some(i)},
						fmt.Sprintf(`{"type":"cache_ok","request_id":%d}`, i))
				}
				l.says(&wire.CounterAdd{TenantID: tenant, Namespace: namespace, Cache: "kept", Key: "n", Delta: 2, RequestID: i},
					fmt.Sprintf(`{"type":"counter_value","value":%d,"request_id":%d}`, 2*(i+1), i))
			}
			cut = mem.CrashHard()
		})
	})
	if n := mem.OpenFiles(); n != 0 {
		t.Errorf("%d files are open after the end of the node", n)
	}
	t.Run("after", func(t *testing.T) {
		serve(t, cut, func(b *broker, l *line) {
			for i := range keys {
				for cache, want := range map[string]bool{"kept": true, "volatile": false} {
					f := l.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: cache, Key: fmt.Sprint(i), RequestID: wire.Some(uint64(i))})
					m, err := wire.DecodeJSON(f.payload)
					if v, ok := m.(*wire.CacheValue); err != nil || !ok || v.Value.Set != want {
						t.Fatalf("%s has for key %d %s, %v", cache, i, f, err)
					}
				}
			}
			l.says(&wire.CounterGet{TenantID: tenant, Namespace: namespace, Cache: "kept", Key: "n", RequestID: 9}, fmt.Sprintf(`{"type":"counter_value","value":%d,"request_id":9}`, 2*keys))
		})
	})
}

// Without a disk every cache is in memory, whatever its assignment asks for.
func TestWithoutADiskACacheIsInMemory(t *testing.T) {
	b := start(t)
	for i, h := range hosted(b, keptAndVolatile()...) {
		if h.Durable || h.Keyed != nil {
			t.Errorf("cache %d is kept in a log", i)
		}
	}
	l, _ := b.dial().open(today())
	l.says(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "kept", Key: "k", Value: []byte("x"), RequestID: wire.Some(uint64(1))}, `{"type":"cache_ok","request_id":1}`)
}

func TestTheBudgetOfWatchSnapshotsFollowsTheLimit(t *testing.T) {
	b := start(t, func(o *Options) { o.Limits.WatchSnapshotBytes = 1000 })
	if got := b.metric("felix_cache_watch_snapshot_budget_bytes"); got != HeldSnapshots*1000 {
		t.Errorf("the budget is %v", got)
	}
	if n := b.metric("felix_cache_watch_snapshot_bytes"); n != 0 {
		t.Errorf("%v bytes are held for no watch", n)
	}
}
