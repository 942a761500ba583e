package auth

import (
	"testing"

	"pgregory.net/rapid"
)

func set(t testing.TB, texts ...string) Permissions {
	t.Helper()
	p, err := ParsePermissions("t1", texts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type decision struct {
	action Action
	object Object
	want   bool
}

func decide(t *testing.T, p Permissions, cases []decision) {
	t.Helper()
	for _, c := range cases {
		if got := p.Allows(c.action, c.object); got != c.want {
			t.Errorf("%v: %s over %s is %v, want %v", p.List(), c.action, c.object, got, c.want)
		}
	}
}

func TestWildcardsMatchWholeSegments(t *testing.T) {
	decide(t, set(t, "stream.publish:stream:t1/pay/*", "stream.subscribe:stream:t1/*/*", "stream.manage:stream:t1/pay/orders"), []decision{
		{StreamPublish, StreamObject("t1", "pay", "orders"), true},
		{StreamPublish, StreamObject("t1", "pays", "orders"), false},
		{StreamPublish, StreamObject("t1", "pay/x", "orders"), false},
		{StreamPublish, StreamObject("t1", "pay", ""), false},
		{StreamPublish, StreamObject("t1", "", "orders"), false},
		{StreamPublish, CacheObject("t1", "pay", "orders"), false},
		{StreamSubscribe, StreamObject("t1", "other", "x"), true},
		{StreamSubscribe, StreamObject("", "other", "x"), false},
		{StreamManage, StreamObject("t1", "pay", "orders"), true},
		{StreamManage, StreamObject("t1", "pay", "order"), false},
		{StreamManage, StreamObject("t1", "pay", "*"), false},
		{NamespaceManage, NamespaceObject("t1", "pay"), false},
		{"", StreamObject("t1", "pay", "orders"), false},
		{StreamPublish, Object{}, false},
	})
}

// A matcher that reads ":name" inside a pattern as a placeholder would say yes to all of these.
func TestNoGrantReachesAnotherTenant(t *testing.T) {
	p := set(t, "stream.publish:stream:t1/ns/*", "stream.publish:stream:t1/*/*", "cache.read:cache:t1/*/*", "ns.manage:namespace:t1/*",
		"group.consume:group:t1/*/*/*", "tenant.manage:tenant:t1")
	decide(t, p, []decision{
		{StreamPublish, StreamObject("t2", "ns", "x"), false},
		{CacheRead, CacheObject("t2", "ns", "x"), false},
		{CacheRead, CacheKeyObject("t2", "ns", "x", "k"), false},
		{NamespaceManage, NamespaceObject("t2", "ns"), false},
		{GroupConsume, GroupObject("t2", "ns", "s", "g"), false},
		{TenantManage, TenantObject("t2"), false},
		{TenantManage, ClusterObject(), false},
	})
	if p.MayAllow(StreamPublish, TenantObject("t2")) || p.MayAllow(StreamPublish, NamespaceObject("t2", "ns")) {
		t.Error("MayAllow reaches another tenant")
	}
}

func TestKeysOfACache(t *testing.T) {
	decide(t, set(t, "cache.read:cache:t1/ns/c/user:1*", "cache.read:cache:t1/ns/c/exact", "cache.write:cache:t1/ns/c"), []decision{
		{CacheRead, CacheKeyObject("t1", "ns", "c", "user:1"), true},
		{CacheRead, CacheKeyObject("t1", "ns", "c", "user:10"), true}, // plain string prefix
		{CacheRead, CacheKeyObject("t1", "ns", "c", "user:1/a:b"), true},
		{CacheRead, CacheKeyObject("t1", "ns", "c", "user:"), false},
		{CacheRead, CacheKeyObject("t1", "ns", "c", "exact"), true},
		{CacheRead, CacheKeyObject("t1", "ns", "c", "exactly"), false},
		{CacheRead, CacheKeyObject("t1", "ns", "c", ""), false},
		{CacheRead, CacheKeyObject("t1", "ns", "d", "exact"), false},
		{CacheRead, CachePrefixObject("t1", "ns", "c", "user:1"), true},
		{CacheRead, CachePrefixObject("t1", "ns", "c", "user:12"), true},
		{CacheRead, CachePrefixObject("t1", "ns", "c", "user:"), false},
		{CacheRead, CachePrefixObject("t1", "ns", "c", "exact"), false}, // an exact key never allows a prefix watch
		{CacheRead, CachePrefixObject("t1", "ns", "c", ""), false},
		{CacheRead, CacheObject("t1", "ns", "c"), false}, // a whole-cache watch needs a whole-cache grant
		{CacheWrite, CacheObject("t1", "ns", "c"), true},
		{CacheWrite, CacheKeyObject("t1", "ns", "c", "any/thing:*"), true},
		{CacheWrite, CachePrefixObject("t1", "ns", "c", ""), true},
		{CacheWrite, CachePrefixObject("t1", "ns", "c", "p"), true},
		{CacheManage, CacheObject("t1", "ns", "c"), false},
	})
}

func TestGroupsNarrowTheStreamTheyAreOn(t *testing.T) {
	decide(t, set(t, "stream.subscribe:stream:t1/ns/*", "group.consume:group:t1/ns/s/g"), []decision{
		{GroupConsume, GroupObject("t1", "ns", "s", "g"), true},
		{GroupConsume, GroupObject("t1", "ns", "s", "h"), false}, // narrowed on s
		{GroupConsume, GroupObject("t1", "ns", "u", "h"), true},  // not on another stream
		{GroupManage, GroupObject("t1", "ns", "s", "g"), false},
		{GroupConsume, StreamObject("t1", "ns", "s"), true},
		{StreamSubscribe, StreamObject("t1", "ns", "s"), true}, // narrowing is for groups only
		{StreamSubscribe, GroupObject("t1", "ns", "s", "g"), false},
	})
	decide(t, set(t, "stream.manage:stream:t1/ns/s", "group.consume:group:t1/ns/s/g"), []decision{
		{GroupManage, GroupObject("t1", "ns", "s", "h"), true}, // a consume grant narrows consume only
		{GroupConsume, GroupObject("t1", "ns", "s", "h"), false},
	})
	decide(t, set(t, "group.consume:stream:t1/ns/s", "group.consume:group:t1/ns/*/*"), []decision{
		{GroupConsume, GroupObject("t1", "ns", "s", "g"), true},
		{GroupConsume, GroupObject("t1", "ns2", "s", "g"), false},
	})
	decide(t, set(t, "stream.subscribe:stream:t1/ns/s"), []decision{
		{GroupConsume, GroupObject("t1", "ns", "s", "a:b/*"), true}, // opaque names are decided by the stream
		{GroupConsume, GroupObject("t1", "ns", "s", ""), false},
		{GroupManage, GroupObject("t1", "ns", "s", "g"), false},
	})
}

func TestMayAllowSeesWhetherAnythingInsideIsAllowed(t *testing.T) {
	p := set(t, "stream.manage:stream:t1/a/s", "stream.publish:stream:t1/*/*", "ns.manage:namespace:t1/b", "group.consume:group:t1/c/s/g")
	for _, c := range []struct {
		action Action
		scope  Object
		want   bool
	}{
		{StreamManage, NamespaceObject("t1", "a"), true},
		{StreamManage, NamespaceObject("t1", "b"), false},
		{StreamManage, TenantObject("t1"), true},
		{GroupManage, NamespaceObject("t1", "a"), true}, // by stream.manage
		{StreamPublish, NamespaceObject("t1", "zzz"), true},
		{StreamPublish, NamespaceObject("t1", ""), false},
		{NamespaceManage, TenantObject("t1"), true},
		{NamespaceManage, TenantObject("t3"), false},
		{GroupConsume, NamespaceObject("t1", "c"), true},
		{CacheManage, TenantObject("t1"), false},
	} {
		if got := p.MayAllow(c.action, c.scope); got != c.want {
			t.Errorf("MayAllow(%s, %s) is %v", c.action, c.scope, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("MayAllow about a stream did not panic")
		}
	}()
	p.MayAllow(StreamManage, StreamObject("t1", "a", "s"))
}

func TestZeroPermissionsAllowNothing(t *testing.T) {
	var p Permissions
	if p.Allows(StreamPublish, StreamObject("t1", "a", "b")) || p.MayAllow(StreamPublish, TenantObject("t1")) || p.Len() != 0 || len(p.List()) != 0 {
		t.Error("the zero Permissions allow something")
	}
}

// twinAllows decides from the texts of the grants with loops and string comparison only.
func twinAllows(grants []Permission, action Action, o Object) bool {
	if !o.whole() {
		return false
	}
	direct, groupNamed := false, false
	for _, g := range grants {
		if g.Action != action && (g.Action != StreamSubscribe || action != GroupConsume) && (g.Action != StreamManage || action != GroupManage) {
			continue
		}
		s := g.Scope.o
		if o.kind != kindGroup {
			direct = direct || twinMatch(s, o)
			continue
		}
		if s.kind == kindGroup {
			direct = direct || twinMatch(s, o)
			groupNamed = groupNamed || twinSegments(s, o)
		}
	}
	if o.kind != kindGroup || direct || groupNamed {
		return direct
	}
	if action != GroupConsume && action != GroupManage {
		return false
	}
	return twinAllows(grants, action, StreamObject(o.tenant, o.namespace, o.name))
}

func twinSegments(s, o Object) bool {
	is := func(pattern, name string) bool { return pattern == "*" || pattern == name }
	return s.tenant == o.tenant && is(s.namespace, o.namespace) && is(s.name, o.name)
}

func twinMatch(s, o Object) bool {
	if !twinSegments(s, o) {
		return false
	}
	starts := func(text, prefix string) bool { return len(text) >= len(prefix) && text[:len(prefix)] == prefix }
	switch {
	case s.kind == kindCache && (o.kind == kindCacheKey || o.kind == kindCachePrefix):
		return true
	case s.kind == kindCachePrefix && (o.kind == kindCacheKey || o.kind == kindCachePrefix):
		return starts(o.rest, s.rest)
	case s.kind == kindGroup && o.kind == kindGroup:
		return s.rest == "*" || s.rest == o.rest
	}
	return s.kind == o.kind && s.rest == o.rest
}

func TestMatcherAgreesWithANaiveTwin(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "ab"})
	tenants := rapid.SampledFrom([]string{"a", "a", "a", "b"})
	rests := rapid.SampledFrom([]string{"k", "k:1", "k:12", "k/1", "g"})
	actions := rapid.SampledFrom([]Action{TenantManage, NamespaceManage, StreamManage, StreamPublish, StreamSubscribe, CacheManage, CacheRead,
		CacheWrite, GroupConsume, GroupManage, RBACView, NodeView, NodeManage})
	object := rapid.Custom(func(t *rapid.T) Object {
		return Object{kind: objectKind(rapid.IntRange(int(kindTenant), int(kindNode)).Draw(t, "kind")), tenant: tenants.Draw(t, "tenant"),
			namespace: names.Draw(t, "namespace"), name: names.Draw(t, "name"), rest: rests.Draw(t, "rest")}.trimmed()
	})
	grant := rapid.Custom(func(t *rapid.T) Permission {
		o := object.Filter(func(o Object) bool { return o.kind != kindTenant || o.tenant != "" }).Draw(t, "scope")
		switch rapid.IntRange(0, 3).Draw(t, "wildcards") {
		case 1:
			o = o.widened(1)
		case 2:
			o = o.widened(2)
		case 3:
			o = o.widened(3)
		}
		return Permission{actions.Draw(t, "action"), Scope{o}}
	})
	rapid.Check(t, func(t *rapid.T) {
		var held []Permission
		for _, p := range rapid.SliceOfN(grant, 0, 8).Draw(t, "grants") {
			if parsed, err := ParsePermission(p.String()); err == nil && parsed == p { // keep what the grammar allows
				held = append(held, p)
			}
		}
		set := NewPermissions(held...)
		for range 20 {
			action, o := actions.Draw(t, "asked action"), object.Draw(t, "asked object")
			if got, want := set.Allows(action, o), twinAllows(held, action, o); got != want {
				t.Fatalf("%v: %s over %s: matcher says %v, twin %v", set.List(), action, o, got, want)
			}
			if set.Allows(action, o) && o.namespace != "" && !set.MayAllow(action, NamespaceObject(o.tenant, o.namespace)) {
				t.Fatalf("%v: %s over %s is allowed but MayAllow says nothing in the namespace is", set.List(), action, o)
			}
		}
	})
}

// trimmed drops the parts the kind does not have.
func (o Object) trimmed() Object {
	switch o.kind {
	case kindTenant:
		return TenantObject(o.tenant)
	case kindNamespace:
		return NamespaceObject(o.tenant, o.namespace)
	case kindStream, kindCache:
		o.rest = ""
	case kindCluster:
		return ClusterObject()
	case kindNode:
		return NodeObject(o.name)
	}
	return o
}

// widened turns the last n parts into wildcards.
func (o Object) widened(n int) Object {
	switch o.kind {
	case kindNamespace:
		o.namespace = wild
	case kindStream, kindCache:
		o.name = wild
		if n > 1 {
			o.namespace = wild
		}
	case kindGroup:
		o.rest = wild
		if n > 1 {
			o.name = wild
		}
		if n > 2 {
			o.namespace = wild
		}
	}
	return o
}
