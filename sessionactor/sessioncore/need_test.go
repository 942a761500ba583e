package sessioncore

import (
	"testing"

	"github.com/felixd/felixd/wire"
)

// Which right each request takes, of all that the protocol has: the actions of a token by what they are used for. A kind that is served and has
// no row here fails the test, so that a new request is not let in by whoever has a token.
func TestEveryRequestTakesTheRightThatTheTableOfActionsNames(t *testing.T) {
	group := wire.GroupTarget{TenantID: tenant, Namespace: "n", Stream: "s", Group: "g"}
	key, prefix := wire.Some("k"), wire.Some("p")
	type row struct {
		request wire.Message
		want    needed
	}
	stream := func(a Action) needed {
		return needed{action: a, object: "stream", on: Object{Tenant: tenant, Namespace: "n", Name: "s"}}
	}
	cache := func(a Action) needed {
		return needed{action: a, object: "cache", on: Object{Tenant: tenant, Namespace: "n", Name: "c", Key: "k", HasKey: true}}
	}
	watch := func(prefix string) needed {
		return needed{action: ActionCacheRead, object: "cache", on: Object{Tenant: tenant, Namespace: "n", Name: "c", Prefix: prefix, HasPrefix: true}}
	}
	work := func(a Action) needed {
		return needed{action: a, object: "group", on: Object{Tenant: tenant, Namespace: "n", Name: "s", Group: "g"}}
	}
	inTenant := needed{on: Object{Tenant: tenant}, tenantOnly: true}
	seen := map[wire.RequestKind]bool{
		wire.KindAuth: true, // it brings the token
		// These have binary layouts, and their right is checked where they are decoded: admitPublish.
		wire.KindPublish: true, wire.KindPublishIdempotent: true, wire.KindPublishIf: true,
	}
	for _, c := range []row{
		{&wire.Subscribe{TenantID: tenant, Namespace: "n", Stream: "s"}, stream(ActionSubscribe)},
		{&wire.StreamRead{TenantID: tenant, Namespace: "n", Stream: "s"}, stream(ActionSubscribe)},
		{&wire.OffsetForTime{TenantID: tenant, Namespace: "n", Stream: "s"}, stream(ActionSubscribe)},
		{&wire.StateGet{TenantID: tenant, Namespace: "n", Stream: "s"}, stream(ActionSubscribe)},
		{&wire.Commit{TenantID: tenant, Namespace: "n", Stream: "s"}, stream(ActionPublish)},

		{&wire.CacheGet{TenantID: tenant, Namespace: "n", Cache: "c", Key: "k"}, cache(ActionCacheRead)},
		{&wire.CounterGet{TenantID: tenant, Namespace: "n", Cache: "c", Key: "k"}, cache(ActionCacheRead)},
		{&wire.CacheWatch{TenantID: tenant, Namespace: "n", Cache: "c", Key: key}, cache(ActionCacheRead)},
		{&wire.CacheWatch{TenantID: tenant, Namespace: "n", Cache: "c", Prefix: prefix}, watch("p")},
		{&wire.CacheWatch{TenantID: tenant, Namespace: "n", Cache: "c", Key: key, Prefix: prefix}, watch("p")},
		{&wire.CacheWatch{TenantID: tenant, Namespace: "n", Cache: "c"}, watch("")},
		{&wire.CachePut{TenantID: tenant, Namespace: "n", Cache: "c", Key: "k"}, cache(ActionCacheWrite)},
		{&wire.CacheDelete{TenantID: tenant, Namespace: "n", Cache: "c", Key: "k"}, cache(ActionCacheWrite)},
		{&wire.CachePutIf{TenantID: tenant, Namespace: "n", Cache: "c", Key: "k"}, cache(ActionCacheWrite)},
		{&wire.CacheDeleteIf{TenantID: tenant, Namespace: "n", Cache: "c", Key: "k"}, cache(ActionCacheWrite)},
		{&wire.CounterAdd{TenantID: tenant, Namespace: "n", Cache: "c", Key: "k"}, cache(ActionCacheWrite)},

		// Poll, settle, list dead letters, describe.
		{&wire.GroupPoll{GroupTarget: group}, work(ActionGroupConsume)},
		{&wire.GroupAck{GroupTarget: group}, work(ActionGroupConsume)},
		{&wire.GroupNack{GroupTarget: group}, work(ActionGroupConsume)},
		{&wire.GroupExtend{GroupTarget: group}, work(ActionGroupConsume)},
		{&wire.GroupDeadLetter{GroupTarget: group}, work(ActionGroupConsume)},
		{&wire.GroupDeadLetters{GroupTarget: group}, work(ActionGroupConsume)},
		{&wire.GroupDescribe{GroupTarget: group}, work(ActionGroupConsume)},
		// Redrive, discard, seek, delete.
		{&wire.GroupRedrive{GroupTarget: group}, work(ActionGroupManage)},
		{&wire.GroupDiscard{GroupTarget: group}, work(ActionGroupManage)},
		{&wire.GroupSeek{GroupTarget: group}, work(ActionGroupManage)},
		{&wire.GroupDelete{GroupTarget: group}, work(ActionGroupManage)},

		// Whoever has a token of the tenant may ask where its streams and caches are, whoever has any where the brokers are.
		{&wire.StreamShards{TenantID: tenant}, inTenant},
		{&wire.CacheShards{TenantID: tenant}, inTenant},
		{&wire.ShardOwners{TenantID: tenant}, inTenant},
		{&wire.Topology{}, needed{}},
		{&wire.ProducerInit{}, needed{}},
	} {
		if got := need(c.request); got != c.want {
			t.Errorf("%s takes %+v, want %+v", c.request.MessageType(), got, c.want)
		}
		seen[wire.RequestKindOf(c.request)] = true
	}
	for k := range wire.RequestKind(wire.RequestKinds) {
		if k.Served() && !seen[k] {
			t.Errorf("%s has no row: which right does it take?", k)
		}
	}
}
