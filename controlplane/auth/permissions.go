package auth

import "fmt"

// Permissions is an immutable set of permissions, indexed so that one decision costs a few map look-ups whatever the
// number of grants. The zero Permissions allows nothing. It is safe for concurrent use.
type Permissions struct {
	all     []Permission // sorted by text, no repetition
	actions map[Action]*grants
}

// grants are the scopes one action was granted over.
type grants struct {
	scopes   map[Scope]bool
	prefixes map[Object][]string // whole-cache object -> key prefixes granted in it
	grouped  map[Object]bool     // stream pattern -> some group of such a stream is named in a grant
	touched  map[Object]bool     // tenant, and namespace (or '*'), in which anything is granted
}

// NewPermissions builds the set of ps.
func NewPermissions(ps ...Permission) Permissions {
	set := Permissions{all: sortPermissions(ps), actions: make(map[Action]*grants)}
	for _, p := range set.all {
		g := set.actions[p.Action]
		if g == nil {
			g = &grants{make(map[Scope]bool), make(map[Object][]string), make(map[Object]bool), make(map[Object]bool)}
			set.actions[p.Action] = g
		}
		g.add(p.Scope)
	}
	return set
}

// ParsePermissions reads the permissions of a token of the given tenant. It is all or nothing: the first string that
// is out of grammar, names an unknown action, or reaches into another tenant refuses the whole list, because whoever
// wrote it meant something this build can't judge. The error is a *PermissionError.
func ParsePermissions(tenant string, texts []string) (Permissions, error) {
	ps := make([]Permission, len(texts))
	for i, text := range texts {
		p, err := ParsePermission(text)
		if err != nil {
			return Permissions{}, err
		}
		if t, has := p.Scope.Tenant(); has && t != tenant {
			return Permissions{}, badPermission(text, "the object belongs to another tenant")
		}
		ps[i] = p
	}
	return NewPermissions(ps...), nil
}

func (g *grants) add(s Scope) {
	o := s.o
	g.scopes[s] = true
	switch o.kind {
	case kindCachePrefix:
		cache := CacheObject(o.tenant, o.namespace, o.name)
		g.prefixes[cache] = append(g.prefixes[cache], o.rest)
	case kindGroup:
		g.grouped[StreamObject(o.tenant, o.namespace, o.name)] = true
	}
	if o.tenant != "" {
		g.touched[TenantObject(o.tenant)] = true
	}
	if o.namespace != "" {
		g.touched[NamespaceObject(o.tenant, o.namespace)] = true
	}
}

// List returns the permissions as strings, sorted.
func (p Permissions) List() []string {
	out := make([]string, len(p.all))
	for i, one := range p.all {
		out[i] = one.String()
	}
	return out
}

// Len returns how many different permissions the set holds.
func (p Permissions) Len() int { return len(p.all) }

// Allows reports whether a principal with these permissions may do action to the object. Segments are compared whole;
// a wildcard matches one segment. Three rules go beyond that:
//
//   - A key needs a grant of the whole cache, of that key, or of a prefix it starts with; a key prefix needs the whole
//     cache or a granted prefix that it starts with, never exact keys.
//   - A grant of stream.subscribe counts as group.consume on the stream, one of stream.manage as group.manage.
//   - A group is decided by the grants that name groups where there is one, for that action, that could match a group of
//     the stream; only else by the grants over the stream. One group grant so narrows the stream grants on that stream.
func (p Permissions) Allows(action Action, o Object) bool {
	if !o.whole() {
		return false
	}
	if o.kind == kindGroup {
		return p.allowsGroup(action, o)
	}
	for _, a := range action.grantedBy() {
		if g := p.actions[a]; g != nil && g.cover(o) {
			return true
		}
	}
	return false
}

func (p Permissions) allowsGroup(action Action, o Object) bool {
	stream := StreamObject(o.tenant, o.namespace, o.name)
	if g := p.actions[action]; g != nil {
		if g.coverGroup(o) {
			return true
		}
		if namedIn(g.grouped, stream) {
			return false
		}
	}
	if action != GroupConsume && action != GroupManage {
		return false
	}
	return p.Allows(action, stream)
}

// cover reports whether some scope matches o, which is no group.
func (g *grants) cover(o Object) bool {
	switch o.kind {
	case kindNamespace:
		return g.scopes[Scope{o}] || g.scopes[Scope{NamespaceObject(o.tenant, wild)}]
	case kindStream:
		return g.scopes[Scope{o}] || g.scopes[Scope{StreamObject(o.tenant, o.namespace, wild)}] ||
			g.scopes[Scope{StreamObject(o.tenant, wild, wild)}]
	case kindCache:
		return g.coverCache(o)
	case kindCacheKey, kindCachePrefix:
		cache := CacheObject(o.tenant, o.namespace, o.name)
		return g.scopes[Scope{o}] || g.coverCache(cache) || startsWithAny(o.rest, g.prefixes[cache])
	}
	return g.scopes[Scope{o}]
}

func (g *grants) coverCache(o Object) bool {
	return g.scopes[Scope{o}] || g.scopes[Scope{CacheObject(o.tenant, o.namespace, wild)}] ||
		g.scopes[Scope{CacheObject(o.tenant, wild, wild)}]
}

func (g *grants) coverGroup(o Object) bool {
	return g.scopes[Scope{o}] || g.scopes[Scope{GroupObject(o.tenant, o.namespace, o.name, wild)}] ||
		g.scopes[Scope{GroupObject(o.tenant, o.namespace, wild, wild)}] ||
		g.scopes[Scope{GroupObject(o.tenant, wild, wild, wild)}]
}

// namedIn reports whether set holds a pattern that matches the stream.
func namedIn(set map[Object]bool, stream Object) bool {
	return set[stream] || set[StreamObject(stream.tenant, stream.namespace, wild)] || set[StreamObject(stream.tenant, wild, wild)]
}

// MayAllow reports whether there is any object inside scope, a TenantObject or NamespaceObject, to which Allows could
// say yes. Callers use it to tell "nothing here is yours" from a list that happens to be empty. It panics on another
// kind of object.
func (p Permissions) MayAllow(action Action, scope Object) bool {
	if scope.kind != kindTenant && scope.kind != kindNamespace {
		panic(fmt.Sprintf("auth: MayAllow asked about an object of kind %d, neither a tenant nor a namespace", scope.kind))
	}
	if !scope.whole() {
		return false
	}
	for _, a := range action.grantedBy() {
		g := p.actions[a]
		if g == nil {
			continue
		}
		if g.touched[scope] || scope.kind == kindNamespace && g.touched[NamespaceObject(scope.tenant, wild)] {
			return true
		}
	}
	return false
}

func startsWithAny(key string, prefixes []string) bool {
	for _, p := range prefixes {
		if len(key) >= len(p) && key[:len(p)] == p {
			return true
		}
	}
	return false
}
