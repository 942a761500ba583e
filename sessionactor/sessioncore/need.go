package sessioncore

import "github.com/felixd/felixd/wire"

// needed is the right a request takes.
type needed struct {
	action     Action
	object     string // kind of object, as in a permission: stream, cache or group
	on         Object
	tenantOnly bool // no action, but the tenant must be the stream's own
}

// need says which right a message takes. Topology and producer_init need none beyond a valid token.
func need(m wire.Message) needed {
	switch m := m.(type) {
	case *wire.Subscribe:
		return needed{ActionSubscribe, "stream", Object{Tenant: m.TenantID, Namespace: m.Namespace, Name: m.Stream}, false}
	case *wire.StreamRead:
		return needed{ActionSubscribe, "stream", Object{Tenant: m.TenantID, Namespace: m.Namespace, Name: m.Stream}, false}
	case *wire.OffsetForTime:
		return needed{ActionSubscribe, "stream", Object{Tenant: m.TenantID, Namespace: m.Namespace, Name: m.Stream}, false}
	case *wire.StateGet:
		return needed{ActionSubscribe, "stream", Object{Tenant: m.TenantID, Namespace: m.Namespace, Name: m.Stream}, false}
	case *wire.Commit:
		return needed{ActionPublish, "stream", Object{Tenant: m.TenantID, Namespace: m.Namespace, Name: m.Stream}, false}
	case *wire.CachePut:
		return cacheNeed(ActionCacheWrite, m.TenantID, m.Namespace, m.Cache, m.Key)
	case *wire.CacheGet:
		return cacheNeed(ActionCacheRead, m.TenantID, m.Namespace, m.Cache, m.Key)
	case *wire.CacheDelete:
		return cacheNeed(ActionCacheWrite, m.TenantID, m.Namespace, m.Cache, m.Key)
	case *wire.CachePutIf:
		return cacheNeed(ActionCacheWrite, m.TenantID, m.Namespace, m.Cache, m.Key)
	case *wire.CacheDeleteIf:
		return cacheNeed(ActionCacheWrite, m.TenantID, m.Namespace, m.Cache, m.Key)
	case *wire.CounterAdd:
		return cacheNeed(ActionCacheWrite, m.TenantID, m.Namespace, m.Cache, m.Key)
	case *wire.CounterGet:
		return cacheNeed(ActionCacheRead, m.TenantID, m.Namespace, m.Cache, m.Key)
	case *wire.CacheWatch:
		return watchNeed(m)
	case *wire.GroupPoll:
		return groupNeed(ActionGroupConsume, &m.GroupTarget)
	case *wire.GroupAck:
		return groupNeed(ActionGroupConsume, &m.GroupTarget)
	case *wire.GroupNack:
		return groupNeed(ActionGroupConsume, &m.GroupTarget)
	case *wire.GroupExtend:
		return groupNeed(ActionGroupConsume, &m.GroupTarget)
	case *wire.GroupDeadLetter:
		return groupNeed(ActionGroupConsume, &m.GroupTarget)
	case *wire.GroupDeadLetters:
		return groupNeed(ActionGroupConsume, &m.GroupTarget)
	case *wire.GroupDescribe:
		return groupNeed(ActionGroupConsume, &m.GroupTarget)
	case *wire.GroupDiscard: // whoever may only read must not make a failed record vanish, or have work done again
		return groupNeed(ActionGroupManage, &m.GroupTarget)
	case *wire.GroupRedrive:
		return groupNeed(ActionGroupManage, &m.GroupTarget)
	case *wire.GroupSeek:
		return groupNeed(ActionGroupManage, &m.GroupTarget)
	case *wire.GroupDelete:
		return groupNeed(ActionGroupManage, &m.GroupTarget)
	case *wire.StreamShards:
		return needed{on: Object{Tenant: m.TenantID}, tenantOnly: true}
	case *wire.CacheShards:
		return needed{on: Object{Tenant: m.TenantID}, tenantOnly: true}
	case *wire.ShardOwners:
		return needed{on: Object{Tenant: m.TenantID}, tenantOnly: true}
	}
	return needed{}
}

func cacheNeed(a Action, tenant, namespace, cache, key string) needed {
	return needed{a, "cache", Object{Tenant: tenant, Namespace: namespace, Name: cache, Key: key, HasKey: true}, false}
}

// groupNeed is the right to do something with a group. One without a name is refused later; until then it is a matter of its stream.
func groupNeed(a Action, g *wire.GroupTarget) needed {
	return needed{a, "group", Object{Tenant: g.TenantID, Namespace: g.Namespace, Name: g.Stream, Group: g.Group}, false}
}

// watchNeed is the right that a watch takes. One that names neither a key nor a prefix, or both, is refused later; until then it is one of a
// prefix, which takes most.
func watchNeed(m *wire.CacheWatch) needed {
	if m.Key.Set && !m.Prefix.Set {
		return cacheNeed(ActionCacheRead, m.TenantID, m.Namespace, m.Cache, m.Key.V)
	}
	return needed{ActionCacheRead, "cache", Object{Tenant: m.TenantID, Namespace: m.Namespace, Name: m.Cache, Prefix: m.Prefix.V, HasPrefix: true}, false}
}
