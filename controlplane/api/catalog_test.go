package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
)

const (
	streams = "/v1/tenants/t1/namespaces/pay/streams"
	caches  = "/v1/tenants/t1/namespaces/pay/caches"
)

// mission 297, mission 359: streams are created, read, changed, listed and removed.
func TestStreamLife(t *testing.T) {
	b := newBench(t, nil)
	token := b.admin()
	made := into[model.Stream](b, "create", b.do("POST", streams, token, `{"stream":"orders","shards":4,"retention":{"max_age_seconds":60}}`), 201)
	if made.Stream != "orders" || made.TenantID != "t1" || made.Namespace != "pay" || made.Shards != 4 || made.Durable ||
		made.Retention.MaxAgeSeconds != 60 || made.Incarnation == 0 || made.Routing != model.RoutingModulo {
		t.Fatalf("created %+v", made)
	}
	same := into[model.Stream](b, "create again", b.do("POST", streams, token, `{"stream":"orders","shards":4,"retention":{"max_age_seconds":60},"kind":"STREAM"}`), 200)
	if same != made {
		t.Fatalf("created again: %+v", same)
	}
	a := b.do("POST", streams, token, `{"stream":"orders","shards":5}`)
	b.fails("create otherwise", a, 409, CodeAlreadyExists, "shards, retention differ")
	if got := into[model.Stream](b, "get", b.do("GET", streams+"/orders", token, ""), 200); got != made {
		t.Fatalf("read %+v", got)
	}
	patched := into[model.Stream](b, "patch", b.do("PATCH", streams+"/orders", token,
		`{"consistency":"quorum","delivery":"AtMostOnce","durable":false,"retention":{"max_age_seconds":null,"max_size_bytes":1024}}`), 200)
	made.Consistency, made.Delivery, made.Retention = "Quorum", "AtMostOnce", model.Retention{MaxSizeBytes: 1024}
	if patched != made {
		t.Fatalf("patched to %+v", patched)
	}
	page := into[Page[model.Stream]](b, "list", b.do("GET", streams, token, ""), 200)
	if len(page.Items) != 1 || page.Items[0] != made || page.NextCursor != "" {
		t.Fatalf("listed %+v", page)
	}
	if a := b.do("DELETE", streams+"/orders", token, ""); a.status != 204 || len(a.body) != 0 {
		t.Fatalf("delete: %d %q", a.status, a.body)
	}
	b.fails("get after delete", b.do("GET", streams+"/orders", token, ""), 404, CodeNotFound, "stream t1/pay/orders")
	b.fails("delete twice", b.do("DELETE", streams+"/orders", token, ""), 404, CodeNotFound, "")
	b.fails("patch after delete", b.do("PATCH", streams+"/orders", token, `{}`), 404, CodeNotFound, "")
	again := into[model.Stream](b, "create the name again", b.do("POST", streams, token, `{"stream":"orders"}`), 201)
	if again.Incarnation == made.Incarnation {
		t.Fatal("a new stream has the incarnation of the old one")
	}
}

// A durable stream's retention and compression change while it is in use; zero is never guessed at. mission 288, mission 290
func TestADurableStreamTakesItsOptionsAndChangesThem(t *testing.T) {
	b := newBench(t, nil)
	token := b.admin()
	made := into[model.Stream](b, "create", b.do("POST", streams, token, `{"stream":"orders","durable":true,"compress":true,"retention":{"max_size_bytes":4096}}`), 201)
	if !made.Durable || !made.Compress || made.Retention != (model.Retention{MaxSizeBytes: 4096}) {
		t.Fatalf("created %+v", made)
	}
	b.fails("create otherwise", b.do("POST", streams, token, `{"stream":"orders","durable":true,"retention":{"max_size_bytes":4096}}`), 409, CodeAlreadyExists, "compress differ")
	patched := into[model.Stream](b, "patch", b.do("PATCH", streams+"/orders", token, `{"compress":false,"retention":{"max_age_seconds":60}}`), 200)
	made.Compress, made.Retention.MaxAgeSeconds = false, 60
	if patched != made {
		t.Fatalf("patched to %+v", patched)
	}
	for _, zero := range []string{`{"retention":{"max_age_seconds":0}}`, `{"retention":{"max_size_bytes":0}}`} {
		b.fails("patch to zero", b.do("PATCH", streams+"/orders", token, zero), 400, CodeInvalidRequest, "is 0")
	}
	b.fails("create with zero", b.do("POST", streams, token, `{"stream":"other","durable":true,"retention":{"max_age_seconds":0}}`), 400, CodeInvalidRequest, "is 0")
}

// A cache is in memory when it is made so, and stays what it is.
func TestACacheIsInMemoryWhenItIsMadeSo(t *testing.T) {
	b := newBench(t, nil)
	token := b.admin()
	for name, body := range map[string]string{"volatile": `{"cache":"volatile","in_memory":true}`, "kept": `{"cache":"kept","in_memory":false}`, "plain": `{"cache":"plain","in_memory":null}`} {
		memory := name == "volatile"
		made := into[model.Cache](b, "create", b.do("POST", caches, token, body), 201)
		got := b.do("GET", caches+"/"+name, token, "")
		if read := into[model.Cache](b, "get", got, 200); made.InMemory != memory || read != made || strings.Contains(string(got.body), "in_memory") != memory {
			t.Errorf("%s: %s", name, got.body)
		}
		otherwise := fmt.Sprintf(`{"cache":%q,"in_memory":%v}`, name, !memory)
		b.fails("create otherwise", b.do("POST", caches, token, otherwise), 409, CodeAlreadyExists, "in_memory differ")
		b.fails("patch", b.do("PATCH", caches+"/"+name, token, fmt.Sprintf(`{"in_memory":%v}`, memory)), 400, CodeInvalidRequest, "in_memory can't be changed after creation")
		b.fails("no truth value", b.do("POST", caches, token, fmt.Sprintf(`{"cache":%q,"in_memory":"yes"}`, name)), 400, CodeInvalidRequest, "in_memory is a JSON string")
	}
	page := into[Page[model.Cache]](b, "list", b.do("GET", caches, token, ""), 200)
	if len(page.Items) != 3 || page.Items[0].InMemory || page.Items[1].InMemory || !page.Items[2].InMemory {
		t.Errorf("listed %+v", page.Items)
	}
}

func TestCacheLife(t *testing.T) {
	b := newBench(t, nil)
	token := b.admin()
	made := into[model.Cache](b, "create", b.do("POST", caches, token, `{"cache":"sessions","consistency":"Quorum","display_name":"S"}`), 201)
	if same := into[model.Cache](b, "again", b.do("POST", caches, token, `{"cache":"sessions","consistency":"Quorum","display_name":"S"}`), 200); same != made {
		t.Fatalf("created again: %+v", same)
	}
	b.fails("otherwise", b.do("POST", caches, token, `{"cache":"sessions","display_name":"S"}`), 409, CodeAlreadyExists, "consistency")
	made.DisplayName = "Sessions"
	if got := into[model.Cache](b, "patch", b.do("PATCH", caches+"/sessions", token, `{"display_name":"Sessions"}`), 200); got != made {
		t.Fatalf("patched to %+v", got)
	}
	b.fails("patch in_memory", b.do("PATCH", caches+"/sessions", token, `{"in_memory":true}`), 400, CodeInvalidRequest, "in_memory can't be changed after creation")
	b.fails("patch shards", b.do("PATCH", caches+"/sessions", token, `{"shards":2}`), 400, CodeInvalidRequest, "shards can't be changed after creation")
	if got := into[Page[model.Cache]](b, "list", b.do("GET", caches, token, ""), 200); len(got.Items) != 1 || got.Items[0] != made {
		t.Fatalf("listed %+v", got)
	}
	if got := into[model.Cache](b, "get", b.do("GET", caches+"/sessions", token, ""), 200); got != made {
		t.Fatalf("read %+v", got)
	}
	if a := b.do("DELETE", caches+"/sessions", token, ""); a.status != 204 {
		t.Fatalf("delete: %d", a.status)
	}
	b.fails("get after delete", b.do("GET", caches+"/sessions", token, ""), 404, CodeNotFound, "cache t1/pay/sessions")
}

func TestTenantAndNamespaceLife(t *testing.T) {
	b := newBench(t, nil)
	root, admin := b.cluster(), b.admin()
	made := into[model.Tenant](b, "create tenant", b.do("POST", "/v1/tenants", root, `{"tenant_id":"t3","display_name":"Three"}`), 201)
	b.fails("create it again", b.do("POST", "/v1/tenants", root, `{"tenant_id":"t3","display_name":"Three"}`), 409, CodeAlreadyExists, "tenant t3")
	if got := into[model.Tenant](b, "get tenant", b.do("GET", "/v1/tenants/t3", root, ""), 200); got != made {
		t.Fatalf("read %+v", got)
	}
	if got := into[Page[model.Tenant]](b, "list tenants", b.do("GET", "/v1/tenants", root, ""), 200); len(got.Items) != 3 || got.Items[2] != made {
		t.Fatalf("listed %+v", got)
	}
	if a := b.do("DELETE", "/v1/tenants/t3", root, ""); a.status != 204 {
		t.Fatalf("delete tenant: %d %s", a.status, a.body)
	}
	b.fails("get deleted tenant", b.do("GET", "/v1/tenants/t3", root, ""), 404, CodeNotFound, "tenant t3")

	const namespaces = "/v1/tenants/t1/namespaces"
	ns := into[model.Namespace](b, "create namespace", b.do("POST", namespaces, admin, `{"namespace":"ship","display_name":"Shipping"}`), 201)
	b.fails("create it again", b.do("POST", namespaces, admin, `{"namespace":"ship"}`), 409, CodeAlreadyExists, "namespace t1/ship")
	if got := into[model.Namespace](b, "get namespace", b.do("GET", namespaces+"/ship", admin, ""), 200); got != ns {
		t.Fatalf("read %+v", got)
	}
	into[model.Stream](b, "create stream", b.do("POST", namespaces+"/ship/streams", admin, `{"stream":"s"}`), 201)
	if got := into[Page[model.Namespace]](b, "list namespaces", b.do("GET", namespaces, admin, ""), 200); len(got.Items) != 2 || got.Items[1] != ns {
		t.Fatalf("listed %+v", got)
	}
	if a := b.do("DELETE", namespaces+"/ship", admin, ""); a.status != 204 {
		t.Fatalf("delete namespace: %d %s", a.status, a.body)
	}
	b.fails("its streams are gone", b.do("GET", namespaces+"/ship/streams", admin, ""), 404, CodeNotFound, "namespace t1/ship")
	b.fails("and can't be created", b.do("POST", namespaces+"/ship/streams", admin, `{"stream":"s"}`), 404, CodeNotFound, "namespace t1/ship")
}

func TestDurableStreamIsRefusedWhereBrokersHaveNoStorage(t *testing.T) {
	b := newBench(t, func(o *Options) { o.DurableSupported = false })
	token := b.admin()
	a := b.do("POST", streams, token, `{"stream":"s","durable":true}`)
	b.fails("create", a, 409, CodeDurableUnsupported, "this broker has no storage directory")
	var e Error
	if json.Unmarshal(a.body, &e) != nil || e.Detail["field"] != "durable" {
		t.Errorf("detail %v", e.Detail)
	}
	into[model.Stream](b, "create ephemeral", b.do("POST", streams, token, `{"stream":"s","durable":false}`), 201)
}

// A stream does not forget what it acknowledged because a field was changed: that takes its removal.
func TestDurabilityCannotBeChanged(t *testing.T) {
	b := newBench(t, nil)
	token := b.admin()
	for _, durable := range []bool{false, true} {
		name := fmt.Sprintf("s%v", durable)
		made := into[model.Stream](b, "create", b.do("POST", streams, token, fmt.Sprintf(`{"stream":%q,"durable":%v}`, name, durable)), 201)
		b.fails("change", b.do("PATCH", streams+"/"+name, token, fmt.Sprintf(`{"durable":%v,"delivery":"AtMostOnce"}`, !durable)), 400, CodeInvalidRequest,
			"durable cannot be changed; delete the stream and create it again")
		if same := into[model.Stream](b, "name what is so", b.do("PATCH", streams+"/"+name, token, fmt.Sprintf(`{"durable":%v}`, durable)), 200); same != made {
			t.Fatalf("%+v, was %+v", same, made)
		}
	}
	b.fails("no such stream", b.do("PATCH", streams+"/none", token, `{"durable":true}`), 404, CodeNotFound, "stream t1/pay/none")
}

func TestHeadAnswersLikeGetWithoutBody(t *testing.T) {
	b := newBench(t, nil)
	server := httptestServer(t, b.handler)
	for path, want := range map[string]int{"/v1/system/live": 200, streams: 401} {
		r, err := http.Head(server + path)
		check(t, err)
		check(t, r.Body.Close())
		if r.StatusCode != want || r.ContentLength == 0 {
			t.Errorf("HEAD %s: %d, length %d", path, r.StatusCode, r.ContentLength)
		}
	}
}
