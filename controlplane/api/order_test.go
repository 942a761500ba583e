package api

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/controlplane/model"
)

// everyRoute lists one request of each kind that needs a token, with a body that is fine.
func everyRoute() []struct{ method, path, body string } {
	return []struct{ method, path, body string }{
		{"GET", "/v1/tenants", ""}, {"POST", "/v1/tenants", `{"tenant_id":"t3","display_name":"x"}`},
		{"GET", "/v1/tenants/t1", ""}, {"DELETE", "/v1/tenants/t1", ""},
		{"GET", "/v1/tenants/t1/namespaces", ""}, {"POST", "/v1/tenants/t1/namespaces", `{"namespace":"x"}`},
		{"GET", "/v1/tenants/t1/namespaces/pay", ""}, {"DELETE", "/v1/tenants/t1/namespaces/pay", ""},
		{"GET", streams, ""}, {"POST", streams, `{"stream":"s"}`},
		{"GET", streams + "/s", ""}, {"PATCH", streams + "/s", `{}`}, {"DELETE", streams + "/s", ""},
		{"GET", caches, ""}, {"POST", caches, `{"cache":"c"}`},
		{"GET", caches + "/c", ""}, {"PATCH", caches + "/c", `{}`}, {"DELETE", caches + "/c", ""},
	}
}

// mission 381, mission 382 (API side): who is not known, or known elsewhere, gets 401 on every route, whatever exists.
func TestUnknownCallersAreTurnedAwayBeforeAnythingElse(t *testing.T) {
	b := newBench(t, nil)
	all := []string{"tenant.manage:cluster:*", "ns.manage:namespace:t1/*", "stream.manage:stream:t1/*/*", "cache.manage:cache:t1/*/*"}
	for name, token := range map[string]string{
		"no token":     "",
		"garbage":      "abc",
		"broker token": b.mint("t1", auth.AudienceBroker, time.Minute, noon(), all...),
		"expired":      b.mint("t1", auth.AudienceControlPlane, time.Minute, noon().Add(-time.Hour), all...),
		"not yet":      b.mint("t1", auth.AudienceControlPlane, time.Minute, noon().Add(time.Hour), all...),
	} {
		for _, r := range everyRoute() {
			a := b.do(r.method, r.path, token, "{broken")
			b.fails(name+" "+r.method+" "+r.path, a, 401, CodeUnauthenticated, "unauthorized: ")
			if a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: no WWW-Authenticate", name)
			}
			if token != "" && len(token) > 10 && strings.Contains(string(a.body), token[10:20]) {
				t.Errorf("%s: the answer repeats the token: %s", name, a.body)
			}
		}
	}
	if _, err := b.store.Tenant(t.Context(), "t1"); err != nil {
		t.Fatalf("a turned-away caller deleted the tenant: %v", err)
	}
}

func TestTokenOfAnotherTenantGetsOneAnswerWhateverExists(t *testing.T) {
	b := newBench(t, nil)
	foreign := b.token("t2", "ns.manage:namespace:t2/*", "stream.manage:stream:t2/*/*")
	first := b.do("GET", "/v1/tenants/t1/namespaces/pay/streams", foreign, "")
	b.fails("tenant that exists", first, 401, CodeUnauthenticated, "token")
	for _, path := range []string{"/v1/tenants/t9/namespaces/pay/streams", "/v1/tenants/t1/namespaces/nope/streams", "/v1/tenants/a%2Fb/namespaces",
		"/v1/tenants/%00/namespaces/pay", "/v1/tenants/*/namespaces"} {
		if a := b.do("GET", path, foreign, ""); a.status != 401 || string(a.body) != string(first.body) {
			t.Errorf("%s: %d %s, want the answer of an existing tenant %s", path, a.status, a.body, first.body)
		}
	}
}

func TestAuthorizationHeaderIsReadStrictly(t *testing.T) {
	b := newBench(t, nil)
	good := b.admin()
	for name, values := range map[string][]string{
		"two headers": {"Bearer " + good, "Bearer " + good}, "another scheme": {"Basic " + good}, "no scheme": {good},
		"nothing after": {"Bearer "}, "two spaces": {"Bearer  " + good}, "tail": {"Bearer " + good + " x"},
	} {
		r := httptest.NewRequest("GET", streams, nil)
		r.Header["Authorization"] = values
		b.fails(name, b.send(r), 401, CodeUnauthenticated, "unauthorized: ")
	}
	r := httptest.NewRequest("GET", streams, nil)
	r.Header.Set("Authorization", "bearer "+good) // the scheme is case-insensitive
	into[Page[model.Stream]](b, "lower-case scheme", b.send(r), 200)
}

func TestForbiddenComesBeforeBodyAndExistence(t *testing.T) {
	b := newBench(t, nil)
	// A token with rights in the tenant, but none of those the routes need.
	other := b.token("t1", "stream.publish:stream:t1/*/*", "cache.read:cache:t1/*/*", "rbac.view:tenant:t1")
	for _, r := range everyRoute() {
		b.fails(r.method+" "+r.path, b.do(r.method, r.path, other, "{broken"), 403, CodeForbidden, "forbidden: needs ")
	}
	b.fails("a page size out of bounds", b.do("GET", streams+"?limit=0", other, ""), 403, CodeForbidden, "")
	b.fails("what does not exist", b.do("GET", "/v1/tenants/t1/namespaces/nope/streams/x", other, ""), 403, CodeForbidden, "")

	// Rights over one stream: another one is forbidden whether it exists or not, and whatever else the body says.
	into[model.Stream](b, "create b", b.do("POST", streams, b.admin(), `{"stream":"b"}`), 201)
	one := b.token("t1", "stream.manage:stream:t1/pay/a")
	for _, name := range []string{"b", "nope"} {
		for _, r := range []struct{ method, body string }{{"GET", ""}, {"PATCH", "{broken"}, {"DELETE", ""}} {
			b.fails(r.method+" "+name, b.do(r.method, streams+"/"+name, one, r.body), 403, CodeForbidden, "stream:t1/pay/"+name)
		}
		b.fails("POST "+name, b.do("POST", streams, one, `{"stream":"`+name+`","shards":0,"colour":1}`), 403, CodeForbidden, "stream:t1/pay/"+name)
	}
	b.fails("POST of two names", b.do("POST", streams, one, `{"stream":"a","stream":"b"}`), 403, CodeForbidden, "stream:t1/pay/b")
	b.fails("POST of two spellings", b.do("POST", streams, one, `{"stream":"a","STREAM":"b"}`), 403, CodeForbidden, "stream:t1/pay/b")
	b.fails("POST without a name", b.do("POST", streams, one, `{"shards":1}`), 400, CodeInvalidName, "stream is empty")
	into[model.Stream](b, "POST of its own", b.do("POST", streams, one, `{"stream":"a"}`), 201)
	b.fails("a namespace admin elsewhere", b.do("POST", streams, b.token("t1", "stream.manage:stream:t1/other/*"), `{"stream":"a"}`), 403, CodeForbidden, "")
}

func TestOnlyClusterRightsReachTenants(t *testing.T) {
	b := newBench(t, nil)
	own := b.token("t1", "tenant.manage:tenant:t1", "ns.manage:namespace:t1/*")
	for _, r := range everyRoute()[:4] {
		b.fails(r.method+" "+r.path, b.do(r.method, r.path, own, r.body), 403, CodeForbidden, "tenant.manage over cluster:*")
	}
	// Cluster rights confer nothing inside a tenant, not even the token's own.
	for _, r := range everyRoute()[4:] {
		path := strings.Replace(r.path, "/t1/", "/t2/", 1)
		b.fails(r.method+" "+path, b.do(r.method, path, b.cluster(), r.body), 403, CodeForbidden, "")
	}
}

func TestNameInThePathThatCanNotExistIsNotFound(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"%2A", "a%2Fb", "%00", "a%20b", "..%2Fx", strings.Repeat("x", 500)} {
		b.fails(name, b.do("GET", streams+"/"+name, b.admin(), ""), 404, CodeNotFound, "")
		b.fails(name, b.do("GET", "/v1/tenants/t1/namespaces/"+name, b.admin(), ""), 404, CodeNotFound, "")
	}
}
