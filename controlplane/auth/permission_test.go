package auth

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestPermissionGrammarAccepts(t *testing.T) {
	for _, text := range []string{
		"tenant.manage:tenant:t1", "tenant.manage:cluster:*", "token.delegate:tenant:t1",
		"ns.manage:namespace:t1/payments", "ns.manage:namespace:t1/*",
		"stream.publish:stream:t1/payments/orders", "stream.publish:stream:t1/payments/*", "stream.subscribe:stream:t1/*/*",
		"stream.manage:stream:t1/a.b/c_d", "cache.manage:cache:t1/payments/*", "cache.read:cache:t1/*/*",
		"cache.write:cache:t1/payments/session/user:42/*", "cache.read:cache:t1/payments/session/user:42",
		"cache.read:cache:t1/payments/session//", "cache.read:cache:t1/payments/session/ключ",
		"group.consume:group:t1/ns/s/g", "group.consume:group:t1/ns/s/*", "group.manage:group:t1/ns/*/*", "group.manage:group:t1/*/*/*",
		"group.consume:group:t1/ns/s/my group", "group.consume:stream:t1/ns/s", "group.manage:stream:t1/*/*",
		"rbac.view:tenant:t1", "rbac.policy.manage:namespace:t1/*", "rbac.assignment.manage:stream:t1/a/*", "rbac.view:cache:t1/a/c",
		"node.view:cluster:*", "node.manage:cluster:*", "node.manage:node:b1",
	} {
		p, err := ParsePermission(text)
		if err != nil || p.String() != text {
			t.Errorf("%s: %v, rendered as %s", text, err, p)
		}
	}
}

func TestPermissionGrammarRefuses(t *testing.T) {
	for _, text := range []string{
		"", ":", "::", "stream.publish", "stream.publish:", "stream.publish:stream", "stream.publish:stream:",
		// objects
		"tenant.manage:tenant:*", "tenant.manage:tenant:", "tenant.manage:tenant:t1/x", "tenant.manage:tenant:t 1",
		"ns.manage:namespace:t1", "ns.manage:namespace:t1/", "ns.manage:namespace:*/*", "ns.manage:namespace:t1/a/b", "ns.manage:namespace:/a",
		"stream.publish:stream:*", "stream.publish:stream:*/*", "stream.publish:stream:*/*/*", "stream.publish:stream:t1/*/name",
		"stream.publish:stream:t1/a", "stream.publish:stream:t1/a/b/c", "stream.publish:stream:t1/payments/../x", "stream.publish:stream:t1/a/..",
		"stream.publish:stream:t1/a/b*", "stream.publish:stream:t1/a*/*", "stream.publish:stream:t1//s", "stream.publish:stream:t1/:ns/s",
		"cache.read:cache:*", "cache.read:cache:*/*", "cache.read:cache:t1/a/c/", "cache.read:cache:t1/a/c/*", "cache.read:cache:t1/*/c/k",
		"cache.read:cache:t1/*/*/k", "cache.read:cache:t1/a/*/k", "cache.read:cache:t1/a/c/k*k", "cache.read:cache:t1/a/c/k**", "cache.read:cache:t1/a/c/\xff",
		"group.consume:group:t1/ns/s", "group.consume:group:t1/ns/*/g", "group.consume:group:t1/*/s/g", "group.consume:group:t1/*/s/*",
		"group.consume:group:*/*/*/*", "group.consume:group:t1/ns/s/", "group.consume:group:t1/ns/s/a*", "group.consume:group:t1/ns/s/a:b",
		"group.consume:group:t1/ns/s/a/b", "group.consume:group:t1/ns/s/\x01", "group.consume:group:t1/ns/s/" + strings.Repeat("g", groupBytesMax+1),
		"node.view:cluster:", "node.view:cluster:nodes", "node.view:cluster", "node.manage:node:*", "node.manage:node:", "node.manage:node:a/b",
		// kinds and actions
		"stream.publish:topic:t1/a/b", "stream.publish:Stream:t1/a/b", "stream.delete:stream:t1/a/b", "Stream.publish:stream:t1/a/b", "*:stream:t1/a/b",
		// actions over kinds they don't fit
		"tenant.manage:namespace:t1/a", "token.delegate:cluster:*", "ns.manage:tenant:t1", "stream.publish:cache:t1/a/b",
		"stream.subscribe:group:t1/a/b/c", "stream.manage:namespace:t1/a", "cache.manage:cache:t1/a/c/key", "cache.manage:cache:t1/a/c/k*",
		"cache.read:stream:t1/a/b", "group.consume:cache:t1/a/b", "rbac.view:cluster:*", "rbac.view:node:b1", "rbac.view:group:t1/a/b/c",
		"rbac.view:cache:t1/a/c/k", "node.view:node:b1", "node.view:tenant:t1",
	} {
		_, err := ParsePermission(text)
		var refusal *PermissionError
		if !errors.As(err, &refusal) {
			t.Errorf("%q is accepted (%v)", text, err)
		}
	}
}

func TestPermissionErrorIsShort(t *testing.T) {
	_, err := ParsePermission(strings.Repeat("x", 1<<20))
	if err == nil || len(err.Error()) > 200 {
		t.Fatalf("error of %d bytes", len(err.Error()))
	}
}

func TestOnePermissionThatCanNotBeReadRefusesAll(t *testing.T) {
	good := "stream.publish:stream:t1/a/b"
	for _, bad := range []string{"stream.fly:stream:t1/a/b", "stream.publish:stream:t2/a/b", "tenant.manage:tenant:t2", "cache.read:cache:t2/a/b/k", ""} {
		set, err := ParsePermissions("t1", []string{good, bad})
		if err == nil || set.Len() != 0 || set.Allows(StreamPublish, StreamObject("t1", "a", "b")) {
			t.Errorf("with %q the rest still counts (%v)", bad, err)
		}
	}
	set, err := ParsePermissions("t1", []string{good, good, "node.manage:node:b1", "tenant.manage:cluster:*"})
	if err != nil || !slices.Equal(set.List(), []string{"node.manage:node:b1", good, "tenant.manage:cluster:*"}) {
		t.Errorf("list %v, %v", set.List(), err)
	}
}

func TestExpansionAtMint(t *testing.T) {
	expand := func(texts ...string) []string {
		var held []Permission
		for _, text := range texts {
			p, err := ParsePermission(text)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, p)
		}
		return NewPermissions(ExpandForMint(held)...).List()
	}
	six := func(ns string) []string {
		return []string{"cache.manage:cache:t1/" + ns + "/*", "cache.read:cache:t1/" + ns + "/*", "cache.write:cache:t1/" + ns + "/*",
			"stream.manage:stream:t1/" + ns + "/*", "stream.publish:stream:t1/" + ns + "/*", "stream.subscribe:stream:t1/" + ns + "/*"}
	}
	for _, c := range []struct{ held, want []string }{
		{[]string{"tenant.manage:tenant:t1"}, append(six("*"), "tenant.manage:tenant:t1", "ns.manage:namespace:t1/*")},
		{[]string{"ns.manage:namespace:t1/pay"}, append(six("pay"), "ns.manage:namespace:t1/pay")},
		{[]string{"ns.manage:namespace:t1/*"}, append(six("*"), "ns.manage:namespace:t1/*")},
		{[]string{"tenant.manage:tenant:t1", "ns.manage:namespace:t1/*"}, append(six("*"), "tenant.manage:tenant:t1", "ns.manage:namespace:t1/*")},
		{[]string{"tenant.manage:cluster:*"}, []string{"tenant.manage:cluster:*"}},
		{[]string{"rbac.policy.manage:tenant:t1", "token.delegate:tenant:t1"}, []string{"rbac.policy.manage:tenant:t1", "token.delegate:tenant:t1"}},
		{[]string{"stream.manage:stream:t1/a/b", "group.manage:group:t1/a/b/*"}, []string{"group.manage:group:t1/a/b/*", "stream.manage:stream:t1/a/b"}},
		{[]string{"node.manage:cluster:*", "node.view:cluster:*"}, []string{"node.manage:cluster:*", "node.view:cluster:*"}},
		{nil, nil},
	} {
		slices.Sort(c.want)
		if got := expand(c.held...); !slices.Equal(got, c.want) {
			t.Errorf("%v expands to\n  %v\nwant\n  %v", c.held, got, c.want)
		}
	}
}

// FuzzParsePermission: whatever the text, no panic, and what is accepted reads back as itself.
func FuzzParsePermission(f *testing.F) {
	for _, seed := range []string{"stream.publish:stream:t1/a/b", "cache.read:cache:t1/a/c/user:1*", "group.consume:group:t1/*/*/*", "node.view:cluster:*",
		"ns.manage:namespace:t1/*", "tenant.manage:tenant:t1", "node.manage:node:b1", "cache.read:cache:t1/a/c/*", "::::", "stream.publish:stream:t1/*/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePermission(text)
		if err != nil {
			if p != (Permission{}) {
				t.Fatalf("refused, but returned %v", p)
			}
			return
		}
		if p.String() != text {
			t.Fatalf("%q reads back as %q", text, p)
		}
		set := NewPermissions(ExpandForMint([]Permission{p})...)
		if again, err := ParsePermission(set.List()[0]); err != nil {
			t.Fatalf("%q expands to %v which is refused: %v", text, again, err)
		}
		if set.Allows(p.Action, StreamObject("other", "a", "b")) && !strings.Contains(text, "other") {
			t.Fatalf("%q reaches into another tenant", text)
		}
	})
}
