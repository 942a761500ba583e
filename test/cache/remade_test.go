package cache

import (
	"errors"
	"fmt"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
)

// A cache that is deleted and made again is another one: a watch of the one before, and one from a place in it, are given what there is and all that
// follows, and are told that changes are missing; and a version of the one before does not match.
func TestNothingOfADeletedCacheMeansAnythingInTheNextOneOfItsName(t *testing.T) {
	s := newSite(t, 1)
	b := s.start(vfs.NewMem())
	c := s.connect()
	ctx, cancel := testkit.Within()
	defer cancel()
	w := testkit.Must(c.WatchCache(ctx, namespace, users, client.WatchOptions{}))(t)
	defer w.Close()
	next := func(w *client.CacheWatch, kind client.ItemKind) client.CacheItem {
		t.Helper()
		item, err := w.NextItem(ctx)
		if err != nil || item.Kind != kind {
			t.Fatalf("got %+v, %v, want %v", item, err, kind)
		}
		return item
	}
	for i := range 3 {
		if err := c.CachePut(ctx, namespace, users, "k", []byte(fmt.Sprint(i)), 0); err != nil {
			t.Fatal(err)
		}
		next(w, client.ItemEvent)
	}
	old, at := testkit.Must(c.CacheGetVersion(ctx, namespace, users, "k"))(t), w.Positions()
	b.node.Apply(route.Desired{Version: 2})
	next(w, client.ItemShardLost)
	again := s.desired().Assignments[0]
	again.Incarnation, again.Generation, again.Logs = 2, 2, ""
	b.node.Apply(route.Desired{Version: 3, Assignments: []route.Assignment{again}})
	put := func(i int) {
		t.Helper()
		err := c.CachePut(ctx, namespace, users, "k", []byte(fmt.Sprint("new", i)), 0)
		for errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrUnavailable) { // it is on its way
			err = c.CachePut(ctx, namespace, users, "k", []byte(fmt.Sprint("new", i)), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		put(i)
	}
	if r, err := c.CacheDeleteIf(ctx, namespace, users, "k", old.Version); err != nil || r.Applied {
		t.Errorf("a delete with a version of the deleted cache: %+v, %v", r, err)
	}
	other := testkit.Must(c.WatchCache(ctx, namespace, users, client.WatchOptions{From: at}))(t)
	defer other.Close()
	if back := next(w, client.ItemShardRecovered); back.Exact {
		t.Errorf("nothing is missing, it says: %+v", back)
	}
	put(5)
	for _, w := range []*client.CacheWatch{w, other} {
		if snap := next(w, client.ItemSnapshot); !snap.Resnapshot {
			t.Errorf("%+v", snap)
		}
		for last := ""; last != "new5"; {
			item, err := w.NextItem(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if item.Kind == client.ItemEvent {
				last = string(item.Change.Value)
			}
		}
	}
}
