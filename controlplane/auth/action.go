package auth

// Action is what somebody wants to do. The zero Action is none and allowed to nobody.
type Action string

// The actions, with the kinds of object each may be granted over.
const (
	TenantManage         Action = "tenant.manage"          // tenant, cluster
	TokenDelegate        Action = "token.delegate"         // tenant
	NamespaceManage      Action = "ns.manage"              // namespace
	StreamManage         Action = "stream.manage"          // stream
	StreamPublish        Action = "stream.publish"         // stream
	StreamSubscribe      Action = "stream.subscribe"       // stream
	CacheManage          Action = "cache.manage"           // cache
	CacheRead            Action = "cache.read"             // cache, keys of a cache
	CacheWrite           Action = "cache.write"            // cache, keys of a cache
	GroupConsume         Action = "group.consume"          // stream, group
	GroupManage          Action = "group.manage"           // stream, group
	RBACView             Action = "rbac.view"              // tenant, namespace, stream, cache
	RBACPolicyManage     Action = "rbac.policy.manage"     // tenant, namespace, stream, cache
	RBACAssignmentManage Action = "rbac.assignment.manage" // tenant, namespace, stream, cache
	NodeView             Action = "node.view"              // cluster
	NodeManage           Action = "node.manage"            // node, cluster
)

// kindsOf returns the kinds of object the action may be granted over; none for an unknown action.
func (a Action) kindsOf() []objectKind {
	switch a {
	case TenantManage:
		return []objectKind{kindTenant, kindCluster}
	case TokenDelegate:
		return []objectKind{kindTenant}
	case NamespaceManage:
		return []objectKind{kindNamespace}
	case StreamManage, StreamPublish, StreamSubscribe:
		return []objectKind{kindStream}
	case CacheManage:
		return []objectKind{kindCache}
	case CacheRead, CacheWrite:
		return []objectKind{kindCache, kindCacheKey, kindCachePrefix}
	case GroupConsume, GroupManage:
		return []objectKind{kindStream, kindGroup}
	case RBACView, RBACPolicyManage, RBACAssignmentManage:
		return []objectKind{kindTenant, kindNamespace, kindStream, kindCache}
	case NodeView:
		return []objectKind{kindCluster}
	case NodeManage:
		return []objectKind{kindNode, kindCluster}
	}
	return nil
}

// grantedBy returns the actions whose grants count for a: a itself, and for the group actions the stream action that
// includes it. Only one step is ever taken; no implication follows from another.
func (a Action) grantedBy() []Action {
	switch a {
	case GroupConsume:
		return []Action{GroupConsume, StreamSubscribe}
	case GroupManage:
		return []Action{GroupManage, StreamManage}
	}
	return []Action{a}
}
