package sessionactor

import (
	"cmp"
	"strings"
	"time"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// ListSubscriptions answers a request for one page of the subscriptions that a node serves, in the order of stream, shard and subscriber. The
// page has at most wire.MaxInspectPage entries; its NextCursor is set when there may be more. It looks at each log for a moment only, so
// the page is no picture of one instant.
func ListSubscriptions(table *shardactor.Table, policy storage.Policy, now time.Time, q *wire.SubscriptionsList) *wire.SubscriptionsListInfo {
	l := lister{q: q, policy: policy, now: now, room: wire.InspectPage, page: &wire.SubscriptionsListInfo{RequestID: q.RequestID}}
	if q.Limit.Set {
		l.room = int(min(max(q.Limit.V, 1), wire.MaxInspectPage))
	}
	for _, e := range table.Entries() {
		if e.Name.Kind != route.Stream || !l.wants(e.Name) {
			continue
		}
		for n, t := range e.Shards() {
			if t.State == route.Local && !l.shard(e, uint32(n), t.Shard.Log) {
				return l.page
			}
		}
	}
	return l.page
}

type lister struct {
	q      *wire.SubscriptionsList
	policy storage.Policy
	now    time.Time
	room   int
	page   *wire.SubscriptionsListInfo
}

// wants reports whether the page may hold subscriptions of the stream.
func (l *lister) wants(n route.Name) bool {
	if f := l.q.Filter.V; !matches(f.TenantID, n.Tenant) || !matches(f.Namespace, n.Namespace) || !matches(f.Stream, n.Name) {
		return false
	}
	return !l.q.Cursor.Set || compareStream(n, l.q.Cursor.V) >= 0
}

func matches(want wire.Opt[string], have string) bool { return !want.Set || want.V == have }

func compareStream(n route.Name, c wire.SubscriptionCursor) int {
	return cmp.Or(strings.Compare(n.Tenant, c.TenantID), strings.Compare(n.Namespace, c.Namespace), strings.Compare(n.Name, c.Stream))
}

// listStep is how many readers are looked at with a log's lock held.
const listStep = 256

// shard adds the subscriptions of one shard; false when the page is full.
func (l *lister) shard(e *shardactor.Entry, n uint32, log storage.Reader) bool {
	after := uint64(0)
	if c := l.q.Cursor.V; l.q.Cursor.Set && compareStream(e.Name, c) == 0 {
		if n < c.Shard {
			return true
		}
		if n == c.Shard {
			after = c.SubscriberID
		}
	}
	if f := l.q.Filter.V.Shard; f.Set && f.V != n {
		return true
	}
	for {
		states := log.Cursors(after, listStep)
		for i := range states {
			if !l.add(e, n, &states[i]) {
				return false
			}
			after = states[i].Number
		}
		if len(states) < listStep {
			return true
		}
	}
}

// add puts one subscription on the page if the filter lets it; false when there is no room for it.
func (l *lister) add(e *shardactor.Entry, n uint32, s *storage.CursorState) bool {
	owner, ok := s.Owner.(*SubscriptionOwner)
	f := l.q.Filter.V
	if !ok || !matches(f.Principal, owner.Principal) || f.Dropping.Set && f.Dropping.V != (s.Dropped > 0) {
		return true
	}
	if len(l.page.Subscriptions) == l.room {
		last := l.page.Subscriptions[l.room-1]
		l.page.NextCursor = wire.Some(wire.SubscriptionCursor{TenantID: last.TenantID, Namespace: last.Namespace, Stream: last.Stream, Shard: last.Shard, SubscriberID: last.SubscriberID})
		return false
	}
	view := wire.SubscriptionView{
		TenantID: e.Name.Tenant, Namespace: e.Name.Namespace, Stream: e.Name.Name, Shard: n, SubscriberID: s.Number,
		SubscriptionID: wire.Some(owner.Subscription), Connection: wire.Some(owner.Session), Peer: wire.Some(owner.Peer), Principal: wire.Some(owner.Principal),
		Policy: l.policy.String(), Depth: uint64(s.Queued), Capacity: uint64(s.Capacity), Dropped: s.Dropped, Tail: s.Tail,
		AgeMillis: uint64(max(0, l.now.Sub(owner.Since).Milliseconds())),
	}
	if e.Durable { // records of an ephemeral stream have no offsets
		view.Position = wire.Some(s.Position)
	}
	l.page.Subscriptions = append(l.page.Subscriptions, view)
	return true
}
