package sessionactor

import (
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

func (x *site) list(q *wire.SubscriptionsList) *wire.SubscriptionsListInfo {
	return ListSubscriptions(x.opts.Table, storage.DropNew, x.opts.Clock.Now(), q)
}

func TestSubscriptionsAreListedPageByPageInOneOrder(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x := open(t, setting{clock: clock})
	c := x.connect()
	l := dial(t, c, today())
	wide := subscribeTo("wide", wire.StartLatest)
	wide.Shard = wire.Some(uint32(3))
	for range 3 {
		l.subscribe(c, wide)
		l.subscribe(c, subscribeTo("orders", wire.StartLatest))
		wide.Shard = wire.Some(wide.Shard.V - 1)
	}
	type entry struct {
		stream string
		shard  uint32
	}
	var got []entry
	q := &wire.SubscriptionsList{RequestID: 9, Limit: wire.Some(uint32(2))}
	for pages := 1; ; pages++ {
		page := x.list(q)
		if page.RequestID != 9 || len(page.Subscriptions) != 2 {
			t.Fatalf("page %d: %+v", pages, page)
		}
		for _, s := range page.Subscriptions {
			got = append(got, entry{s.Stream, s.Shard})
		}
		if !page.NextCursor.Set {
			break
		}
		q.Cursor = page.NextCursor
	}
	if want := []entry{{"orders", 0}, {"orders", 0}, {"orders", 0}, {"wide", 1}, {"wide", 2}, {"wide", 3}}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	q = &wire.SubscriptionsList{Filter: wire.Some(wire.SubscriptionFilter{Stream: wire.Some("wide"), Shard: wire.Some(uint32(2))})}
	if page := x.list(q); len(page.Subscriptions) != 1 || page.Subscriptions[0].Shard != 2 {
		t.Errorf("shard 2 of wide: %+v", page)
	}
}

func TestAListedSubscriptionTellsWhoseItIsAndHowFarBehind(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x := open(t, setting{clock: clock})
	x.stalled(asking("orders", wire.StartLatest, 4))
	l := dial(t, x.connect(), today())
	for _, r := range numbered(0, 6) {
		l.publish("orders", r, r)
	}
	clock.Advance(3 * time.Second)
	filter := func(f wire.SubscriptionFilter) []wire.SubscriptionView {
		return x.list(&wire.SubscriptionsList{Filter: wire.Some(f)}).Subscriptions
	}
	want := wire.SubscriptionView{
		TenantID: tenant, Namespace: namespace, Stream: "orders", SubscriberID: 1, SubscriptionID: wire.Some(uint64(1)), Connection: wire.Some(uint64(1)),
		Peer: wire.Some("memory"), Principal: wire.Some("alice"), Policy: "drop_new", Depth: 4, Capacity: 4, Dropped: 4, Tail: 12, AgeMillis: 3000,
	}
	if got := filter(wire.SubscriptionFilter{Principal: wire.Some("alice"), Dropping: wire.Some(true)}); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, f := range []wire.SubscriptionFilter{{Dropping: wire.Some(false)}, {Principal: wire.Some("bob")}, {TenantID: wire.Some("t2")}, {Namespace: wire.Some("n")}} {
		if got := filter(f); len(got) != 0 {
			t.Errorf("%+v: %+v", f, got)
		}
	}
}
