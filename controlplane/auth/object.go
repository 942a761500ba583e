package auth

// objectKind tells the families of objects apart.
type objectKind uint8

const (
	kindTenant objectKind = iota + 1
	kindNamespace
	kindStream
	kindCache
	kindCacheKey
	kindCachePrefix
	kindGroup
	kindCluster
	kindNode
)

// Object is what a request touches: always literal, never a pattern. A part that is empty makes an object nobody may
// touch, and a part that is "*" is that very name, not a wildcard. The zero Object is nothing and allowed to nobody.
type Object struct {
	kind      objectKind
	tenant    string
	namespace string
	name      string // stream, cache or node
	rest      string // key, key prefix or group
}

// TenantObject is a tenant as a whole.
func TenantObject(tenant string) Object { return Object{kind: kindTenant, tenant: tenant} }

// NamespaceObject is a namespace as a whole.
func NamespaceObject(tenant, namespace string) Object {
	return Object{kind: kindNamespace, tenant: tenant, namespace: namespace}
}

// StreamObject is one stream.
func StreamObject(tenant, namespace, stream string) Object {
	return Object{kind: kindStream, tenant: tenant, namespace: namespace, name: stream}
}

// CacheObject is a cache with all its keys, as a watch of the whole cache or its definition needs it.
func CacheObject(tenant, namespace, cache string) Object {
	return Object{kind: kindCache, tenant: tenant, namespace: namespace, name: cache}
}

// CacheKeyObject is one key of a cache.
func CacheKeyObject(tenant, namespace, cache, key string) Object {
	return Object{kind: kindCacheKey, tenant: tenant, namespace: namespace, name: cache, rest: key}
}

// CachePrefixObject is every key of a cache that starts with prefix, as a prefix watch needs it. An empty prefix is
// every key, which is CacheObject.
func CachePrefixObject(tenant, namespace, cache, prefix string) Object {
	if prefix == "" {
		return CacheObject(tenant, namespace, cache)
	}
	return Object{kind: kindCachePrefix, tenant: tenant, namespace: namespace, name: cache, rest: prefix}
}

// GroupObject is one consumer group of a stream.
func GroupObject(tenant, namespace, stream, group string) Object {
	return Object{kind: kindGroup, tenant: tenant, namespace: namespace, name: stream, rest: group}
}

// ClusterObject is the cluster as a whole.
func ClusterObject() Object { return Object{kind: kindCluster} }

// NodeObject is one broker.
func NodeObject(node string) Object { return Object{kind: kindNode, name: node} }

// whole reports whether no part the kind needs is empty.
func (o Object) whole() bool {
	switch o.kind {
	case kindTenant:
		return o.tenant != ""
	case kindNamespace:
		return o.tenant != "" && o.namespace != ""
	case kindStream, kindCache:
		return o.tenant != "" && o.namespace != "" && o.name != ""
	case kindCacheKey, kindCachePrefix, kindGroup:
		return o.tenant != "" && o.namespace != "" && o.name != "" && o.rest != ""
	case kindNode:
		return o.name != ""
	}
	return o.kind == kindCluster
}

// String renders the object as a scope of a permission over exactly it would read.
func (o Object) String() string { return Scope{o}.String() }
