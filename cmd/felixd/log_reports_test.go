package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/shardactor/route"
)

// slowCatalog fails or holds up its writes as the test wants.
type slowCatalog struct {
	store.Store
	mu     sync.Mutex
	fails  int
	writes int
	gate   chan struct{} // nil: open
}

func (c *slowCatalog) SetCacheLogs(ctx context.Context, n model.ResourceName, i model.Incarnation, logs []model.ShardLog) (model.Cache, error) {
	c.mu.Lock()
	c.writes++
	c.mu.Unlock()
	return c.Store.SetCacheLogs(ctx, n, i, logs)
}

func (c *slowCatalog) SetLogs(ctx context.Context, n model.ResourceName, i model.Incarnation, logs []model.ShardLog) (model.Stream, error) {
	if c.gate != nil {
		<-c.gate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	if c.fails > 0 {
		c.fails--
		return model.Stream{}, &store.SaveError{Err: errors.New("disk full")}
	}
	return c.Store.SetLogs(ctx, n, i, logs)
}

func durableCatalog(t *testing.T, shards uint32) (*slowCatalog, model.ResourceName) {
	t.Helper()
	m := store.NewMemory(store.MemoryOptions{Capabilities: store.Capabilities{Durable: true}})
	if err := seed(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	durable := true
	s, err := model.StreamSpec{Stream: "kept", Durable: &durable, Shards: &shards}.Record(devTenant, devNamespace, 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.CreateStream(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return &slowCatalog{Store: m}, s.Key()
}

// kept is the incarnation of the stream that durableCatalog makes.
func kept(n model.ResourceName) logOwner { return logOwner{model.ResourceStream, n, 7} }

// report runs until the catalog has all shards of a stream, and returns it.
func report(t *testing.T, c *slowCatalog, n model.ResourceName, reports *logReports, shards uint32) model.Stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); reports.run(ctx) }()
	defer func() { cancel(); <-done }()
	within, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		seen, err := c.Snapshot(within, model.KindStreams)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Stream(within, n)
		if err != nil {
			t.Fatal(err)
		}
		known := uint32(0)
		for i := range shards {
			if s.Log(i) != (model.LogID{}) {
				known++
			}
		}
		if known == shards {
			return s
		}
		if _, err := c.WaitChanges(within, seen.Seq); err != nil {
			t.Fatalf("%d of %d logs arrived: %v", known, shards, err)
		}
	}
}

func TestLogsOfOneStreamReachTheCatalogInOneWrite(t *testing.T) {
	c, n := durableCatalog(t, 64)
	reports := newLogReports(c, quiet(), pause)
	for i := range uint32(64) {
		reports.add(kept(n), model.ShardLog{Shard: i, Log: model.LogID{1, byte(i)}})
	}
	s := report(t, c, n, reports, 64)
	if s.Log(63) != (model.LogID{1, 63}) || c.writes != 1 {
		t.Fatalf("log %x after %d writes", s.Log(63), c.writes)
	}
}

func TestAReportThatCannotBeKeptNowIsKeptLater(t *testing.T) {
	c, n := durableCatalog(t, 2)
	c.fails = 3
	waits := 0
	reports := newLogReports(c, quiet(), func(_ context.Context, d time.Duration) {
		if d != reportEvery {
			waits++
		}
	})
	reports.add(kept(n), model.ShardLog{Shard: 0, Log: model.LogID{1}})
	reports.add(kept(n), model.ShardLog{Shard: 1, Log: model.LogID{2}})
	if report(t, c, n, reports, 2); waits != 3 {
		t.Fatalf("%d pauses", waits)
	}
}

// While thousands of logs are opened one after the other, the catalog is written to every while and not for each of them.
func TestReportsThatKeepComingAreGathered(t *testing.T) {
	const shards = 64
	c, n := durableCatalog(t, shards)
	next, reports := uint32(1), (*logReports)(nil)
	reports = newLogReports(c, quiet(), func(context.Context, time.Duration) { // the pause after a write: more logs are opened in it
		for range min(16, shards-next) {
			reports.add(kept(n), model.ShardLog{Shard: next, Log: model.LogID{1, byte(next)}})
			next++
		}
	})
	reports.add(kept(n), model.ShardLog{Log: model.LogID{1}})
	if report(t, c, n, reports, shards); c.writes != 5 {
		t.Errorf("%d writes for %d logs, 16 of them opened between two writes", c.writes, shards)
	}
}

func TestAReportForAnIncarnationThatHasEndedIsDropped(t *testing.T) {
	c, n := durableCatalog(t, 1)
	reports := newLogReports(c, quiet(), pause)
	reports.add(logOwner{model.ResourceStream, n, 6}, model.ShardLog{Log: model.LogID{1}})
	reports.add(kept(model.ResourceName{Tenant: devTenant, Namespace: devNamespace, Name: "gone"}), model.ShardLog{Log: model.LogID{1}})
	if !reports.flush(t.Context()) || len(reports.take()) != 0 {
		t.Fatal("it is kept to be tried again for ever")
	}
	if s, err := c.Stream(t.Context(), n); err != nil || s.Logs != "" {
		t.Fatalf("%x, %v", s.Logs, err)
	}
}

func TestWhoReportsDoesNotWaitForTheCatalog(t *testing.T) {
	c, n := durableCatalog(t, 2)
	c.gate = make(chan struct{})
	reports := newLogReports(c, quiet(), pause)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); reports.run(ctx) }()
	for i := range uint32(2) { // the catalog takes none of them yet
		reports.add(kept(n), model.ShardLog{Shard: i, Log: model.LogID{byte(i + 1)}})
	}
	close(c.gate)
	cancel() // the last flush takes what is left
	<-done
	if s, err := c.Stream(t.Context(), n); err != nil || s.Log(1) != (model.LogID{2}) {
		t.Fatalf("%x, %v", s.Logs, err)
	}
}

// A stream and a cache of one name, and of one incarnation, have logs of their own.
func TestAReportReachesTheCacheOrTheStreamThatItIsOf(t *testing.T) {
	c, n := durableCatalog(t, 1)
	cache, err := model.CacheSpec{Cache: n.Name}.Record(devTenant, devNamespace, 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.CreateCache(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	reports := newLogReports(c, quiet(), pause)
	name := route.Name{Kind: route.Cache, Tenant: devTenant, Namespace: devNamespace, Name: n.Name}
	reports.add(ownerOf(name, 7), model.ShardLog{Log: model.LogID{2}})
	name.Kind = route.Stream
	reports.add(ownerOf(name, 7), model.ShardLog{Log: model.LogID{1}})
	name.Kind, name.Name = route.Cache, "gone"
	reports.add(ownerOf(name, 7), model.ShardLog{Log: model.LogID{3}})
	if !reports.flush(t.Context()) || len(reports.take()) != 0 || c.writes != 3 {
		t.Fatalf("%d writes", c.writes)
	}
	s, err := c.Stream(t.Context(), n)
	if err != nil || s.Log(0) != (model.LogID{1}) {
		t.Fatalf("the stream has log %x, %v", s.Logs, err)
	}
	if cache, err = c.Cache(t.Context(), n); err != nil || cache.Log(0) != (model.LogID{2}) {
		t.Fatalf("the cache has log %x, %v", cache.Logs, err)
	}
}
