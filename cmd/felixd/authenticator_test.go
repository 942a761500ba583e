package main

import (
	"testing"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/sessionactor/sessioncore"
)

// What a token grants on keys decides which watches it allows: a prefix watch needs a grant of all that begins with its prefix, and an exact
// key grants none.
func TestAWatchNeedsAGrantOfEverythingItCanSee(t *testing.T) {
	key := func(k string) sessioncore.Object {
		return sessioncore.Object{Tenant: "t1", Namespace: "ns", Name: "users", Key: k}
	}
	prefix := func(p string) sessioncore.Object {
		return sessioncore.Object{Tenant: "t1", Namespace: "ns", Name: "users", Prefix: p, HasPrefix: true}
	}
	for _, c := range []struct {
		grant  string
		object sessioncore.Object
		want   bool
	}{
		{"cache.read:cache:t1/ns/users", prefix(""), true},
		{"cache.read:cache:t1/ns/users", prefix("a"), true},
		{"cache.read:cache:t1/ns/users", key("a"), true},
		{"cache.read:cache:t1/ns/users/a*", prefix("ab"), true},
		{"cache.read:cache:t1/ns/users/a*", prefix("a"), true},
		{"cache.read:cache:t1/ns/users/a*", key("abc"), true},
		{"cache.read:cache:t1/ns/users/a*", prefix(""), false},
		{"cache.read:cache:t1/ns/users/a*", prefix("b"), false},
		{"cache.read:cache:t1/ns/users/ab", key("ab"), true},
		{"cache.read:cache:t1/ns/users/ab", prefix("ab"), false},
		{"cache.write:cache:t1/ns/users", prefix(""), false},
		{"cache.read:cache:t1/ns/users", key(""), true},
		{"cache.read:cache:t1/ns/users/a*", key(""), false},
	} {
		p, err := auth.ParsePermissions("t1", []string{c.grant})
		if err != nil {
			t.Fatal(err)
		}
		if got := (grants{&auth.Principal{Tenant: "t1", Permissions: p}}).Allows(sessioncore.ActionCacheRead, c.object); got != c.want {
			t.Errorf("%s on %+v: %v, want %v", c.grant, c.object, got, c.want)
		}
	}
}

// A grant over a stream counts for its groups until one names groups of it; to consume is not to manage.
func TestAGroupNeedsAGrantOfItOrOfItsStream(t *testing.T) {
	of := func(group string) sessioncore.Object {
		return sessioncore.Object{Tenant: "t1", Namespace: "ns", Name: "jobs", Group: group}
	}
	for _, c := range []struct {
		grants          []string
		consume, manage bool
	}{
		{[]string{"group.consume:group:t1/ns/jobs/g"}, true, false},
		{[]string{"group.manage:group:t1/ns/jobs/*"}, false, true},
		{[]string{"group.consume:stream:t1/ns/jobs", "group.manage:stream:t1/ns/*"}, true, true},
		{[]string{"stream.subscribe:stream:t1/ns/jobs"}, true, false},
		{[]string{"stream.subscribe:stream:t1/ns/jobs", "group.consume:group:t1/ns/jobs/other"}, false, false},
		{[]string{"stream.manage:stream:t1/ns/jobs"}, false, true},
		{[]string{"stream.publish:stream:t1/ns/jobs", "group.consume:group:t1/ns/others/g"}, false, false},
	} {
		p, err := auth.ParsePermissions("t1", c.grants)
		if err != nil {
			t.Fatal(err)
		}
		g := grants{&auth.Principal{Tenant: "t1", Permissions: p}}
		if consume, manage := g.Allows(sessioncore.ActionGroupConsume, of("g")), g.Allows(sessioncore.ActionGroupManage, of("g")); consume != c.consume || manage != c.manage {
			t.Errorf("%v: consume %v, manage %v", c.grants, consume, manage)
		}
	}
}
