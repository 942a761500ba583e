package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

func pages(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	for i, n := range []string{"b", "a.b", "a", "B", "a-b", "10", "9"} {
		mustCreateStream(ctx, t, s, name("t1", "a", n), model.Incarnation(i+1))
		mustCreateStream(ctx, t, s, name("t2", "a", n), model.Incarnation(i+1)) // never shows
		mustCreateCache(ctx, t, s, name("t1", "a", n), model.Incarnation(i+1))
	}
	sorted := []string{"10", "9", "B", "a", "a-b", "a.b", "b"} // bytewise
	if got := listAll(ctx, t, s, 3, nil); !slices.Equal(got, sorted) {
		t.Fatalf("pages of 3 give %v, want %v", got, sorted)
	}
	caches, err := s.Caches(ctx, "t1", "a", "a", 2)
	if err != nil || len(caches) != 2 || caches[0].Cache != "a-b" || caches[1].Cache != "a.b" {
		t.Fatalf("caches after a: %v, %v", caches, err)
	}
	// Between two pages the entry the next page starts from goes away, one comes in behind and one ahead.
	got := listAll(ctx, t, s, 3, func(after string) {
		if after != "B" {
			return
		}
		want(t, "delete behind", s.DeleteStream(ctx, name("t1", "a", "B")), nil)
		mustCreateStream(ctx, t, s, name("t1", "a", "A"), 100)
		mustCreateStream(ctx, t, s, name("t1", "a", "a0"), 101)
	})
	if expected := []string{"10", "9", "B", "a", "a-b", "a.b", "a0", "b"}; !slices.Equal(got, expected) {
		t.Fatalf("pages under changes give %v, want %v", got, expected)
	}
	ns, err := s.Namespaces(ctx, "t1", "a", 10)
	if err != nil || len(ns) != 1 || ns[0].Namespace != "b" {
		t.Fatalf("namespaces after a: %v, %v", ns, err)
	}
	tenants, err := s.Tenants(ctx, "t1", 10)
	if err != nil || len(tenants) != 1 || tenants[0].TenantID != "t2" {
		t.Fatalf("tenants after t1: %v, %v", tenants, err)
	}
}

func listAll(ctx context.Context, t *testing.T, s store.Store, limit int, between func(after string)) []string {
	t.Helper()
	var names []string
	for after := ""; ; {
		rows, err := s.Streams(ctx, "t1", "a", after, limit)
		want(t, "list streams", err, nil)
		for _, r := range rows {
			names = append(names, r.Stream)
			after = r.Stream
		}
		if len(rows) < limit {
			return names
		}
		if between != nil {
			between(after)
		}
	}
}

func sequence(t *testing.T, s store.Store) {
	empty, err := s.Snapshot(context.Background(), model.KindStreams)
	if err != nil || empty.Seq != 0 || len(empty.Items) != 0 {
		t.Fatalf("snapshot of an empty store: %+v, %v", empty, err)
	}
	ctx := seed(t, s)
	mustCreateStream(ctx, t, s, name("t1", "a", "s"), 1)
	compress := true
	_, err = s.PatchStream(ctx, name("t1", "a", "s"), model.StreamPatch{Compress: &compress})
	want(t, "patch", err, nil)
	want(t, "delete", s.DeleteStream(ctx, name("t1", "a", "s")), nil)
	checkHistory(ctx, t, s, 0, "created tenant t1//", "created tenant t2//", "created namespace t1/a/", "created namespace t1/b/",
		"created namespace t2/a/", "created stream t1/a/s", "updated stream t1/a/s", "deleted stream t1/a/s")
	page, err := s.Changes(ctx, model.KindTenants, 0, 1)
	if err != nil || page.Seq != 1 || len(page.Items) != 1 {
		t.Fatalf("a page cut by its limit goes on from %d, want 1 (%v)", page.Seq, err)
	}
	page, err = s.Changes(ctx, model.KindTenants, 2, 1)
	if err != nil || page.Seq != 8 || len(page.Items) != 0 {
		t.Fatalf("an empty page goes on from %d, want 8 (%v)", page.Seq, err)
	}
}

// snapshotJoins lets writers work while a watcher takes a snapshot and follows in pages of one.
func snapshotJoins(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	const writers, rounds = 4, 40
	var group sync.WaitGroup
	failed := make(chan error, writers)
	for w := range writers {
		group.Go(func() { failed <- churn(ctx, s, w, rounds) })
	}
	snap, err := s.Snapshot(ctx, model.KindStreams)
	want(t, "snapshot", err, nil)
	held := make(map[model.ResourceName]model.Stream)
	for _, r := range snap.Items {
		held[r.Key()] = r.(model.Stream)
	}
	group.Wait()
	for range writers {
		want(t, "writer", <-failed, nil)
	}
	for at := snap.Seq; ; {
		page, err := s.Changes(ctx, model.KindStreams, at, 1)
		want(t, "changes", err, nil)
		if len(page.Items) == 0 {
			break
		}
		at = page.Seq
		apply(t, held, page.Items[0])
	}
	final, err := s.Snapshot(ctx, model.KindStreams)
	want(t, "snapshot", err, nil)
	if len(final.Items) != len(held) {
		t.Fatalf("the watcher holds %d streams, the store %d", len(held), len(final.Items))
	}
	for _, r := range final.Items {
		if held[r.Key()] != r.(model.Stream) {
			t.Fatalf("the watcher holds %+v for %+v", held[r.Key()], r)
		}
	}
}

// churn creates, patches and now and then deletes streams.
func churn(ctx context.Context, s store.Store, writer, rounds int) error {
	for i := range rounds {
		n := name("t1", "a", fmt.Sprintf("w%d-%d", writer, i))
		if _, _, err := s.CreateStream(ctx, stream(n, model.Incarnation(i+1))); err != nil {
			return err
		}
		quorum := model.ConsistencyQuorum
		if _, err := s.PatchStream(ctx, n, model.StreamPatch{Consistency: &quorum}); err != nil {
			return err
		}
		if i%3 == 0 {
			if err := s.DeleteStream(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply follows one change and fails when it does not fit what is held: then a change was missed or came twice.
func apply(t *testing.T, held map[model.ResourceName]model.Stream, c store.Change) {
	t.Helper()
	r := c.Record.(model.Stream)
	old, there := held[r.Key()]
	switch {
	case (c.Op == store.OpCreated) == there:
		t.Fatalf("%s, but the watcher's view of that stream is %+v (held: %v)", tell(c), old, there)
	case c.Op == store.OpDeleted:
		delete(held, r.Key())
	default:
		held[r.Key()] = r
	}
}

// mission 303: one order for all metadata writes. 20 writers of all kinds, and watchers that follow while they write.
func oneOrder(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	start := last(ctx, t, s)
	const writers, rounds, watchers = 20, 10, 4
	total := start + writers*rounds
	seen := make([][]string, watchers)
	failed := make(chan error, writers+watchers)
	var group sync.WaitGroup
	for w := range watchers {
		group.Go(func() {
			var err error
			seen[w], err = follow(ctx, s, start, total)
			failed <- err
		})
	}
	for w := range writers {
		group.Go(func() { failed <- writeMixed(ctx, s, w, rounds) })
	}
	group.Wait()
	for range writers + watchers {
		want(t, "writer or watcher", <-failed, nil)
	}
	for w := range watchers {
		if len(seen[w]) != writers*rounds || !slices.Equal(seen[w], seen[0]) {
			t.Fatalf("watcher %d saw %d changes in another order than watcher 0 (%d)", w, len(seen[w]), len(seen[0]))
		}
	}
}

func writeMixed(ctx context.Context, s store.Store, writer, rounds int) error {
	for i := range rounds {
		n := name("t1", "b", fmt.Sprintf("w%d-%d", writer, i))
		var err error
		switch i % 3 {
		case 0:
			_, _, err = s.CreateStream(ctx, stream(n, 1))
		case 1:
			_, _, err = s.CreateCache(ctx, cache(n, 1))
		default:
			err = s.CreateNamespace(ctx, namespace("t2", n.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow reads all kinds from since until number end and returns what happened in the order of the numbers.
func follow(ctx context.Context, s store.Store, since, end uint64) ([]string, error) {
	told := make(map[uint64]string)
	at := since
	for at < end {
		head, err := s.WaitChanges(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, kind := range model.Kinds() {
			page, err := s.Changes(ctx, kind, at, 1<<20)
			if err != nil {
				return nil, err
			}
			for _, c := range page.Items {
				told[c.Seq] = tell(c)
			}
		}
		at = head
	}
	var order []string
	for seq := since + 1; seq <= end; seq++ {
		if told[seq] == "" {
			return nil, fmt.Errorf("no change has the number %d", seq)
		}
		order = append(order, told[seq])
	}
	return order, nil
}

func waiting(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	at := last(ctx, t, s)
	if head, err := s.WaitChanges(ctx, at-1); err != nil || head != at {
		t.Fatalf("waiting for what has happened: %d, %v", head, err)
	}
	const waiters = 50
	heads := make(chan uint64, waiters)
	var group sync.WaitGroup
	for range waiters {
		group.Go(func() {
			head, err := s.WaitChanges(ctx, at)
			if err != nil {
				head = 0
			}
			heads <- head
		})
	}
	mustCreateStream(ctx, t, s, name("t1", "a", "s"), 1)
	group.Wait()
	for range waiters {
		if head := <-heads; head != at+1 {
			t.Fatalf("a waiter was woken at %d, want %d", head, at+1)
		}
	}
	brief, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err := s.WaitChanges(brief, at+1)
	want(t, "wait for what does not happen", err, context.DeadlineExceeded)
}

func aheadRefused(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	at := last(ctx, t, s)
	_, err := s.Changes(ctx, model.KindStreams, at+1, 1)
	want(t, "changes", err, store.ErrAhead)
	_, err = s.WaitChanges(ctx, at+1)
	want(t, "wait", err, store.ErrAhead)
}

func compaction(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	n := name("t1", "a", "s")
	mustCreateStream(ctx, t, s, n, 1)
	first := last(ctx, t, s)
	compress := false
	for i := 0; ; i++ {
		compress = !compress
		_, err := s.PatchStream(ctx, n, model.StreamPatch{Compress: &compress})
		want(t, "patch", err, nil)
		if _, err = s.Changes(ctx, model.KindStreams, first, 1); err != nil {
			want(t, "changes of long ago", err, store.ErrCompacted)
			break
		}
		if i > 1_000_000 {
			t.Fatal("a million changes are still kept: the history has no bound")
		}
	}
	head := last(ctx, t, s)
	kept := history(ctx, t, s, head-100)
	if len(kept) != 100 || kept[99].Seq != head {
		t.Fatalf("of the last hundred changes %d are kept", len(kept))
	}
}
