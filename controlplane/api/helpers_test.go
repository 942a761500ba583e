package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

// counting yields 1, 2, 3, ... so that incarnations in tests differ and repeat from run to run.
type counting struct {
	mu sync.Mutex
	n  byte
}

func (c *counting) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range p {
		c.n++
		p[i] = c.n
	}
	return len(p), nil
}

// bench is an API over an empty memory store with the tenants t1 and t2, keys for both, and the namespace t1/pay.
type bench struct {
	t       testing.TB
	store   *store.Memory
	handler http.Handler
	signers map[string]*auth.Signer
}

func newBench(t testing.TB, change func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, store: store.NewMemory(store.MemoryOptions{Capabilities: store.Capabilities{Durable: true}}), signers: make(map[string]*auth.Signer)}
	var ring auth.KeyRing
	for i, tenant := range []string{"t1", "t2"} {
		key, err := auth.NewKey(bytes.NewReader(bytes.Repeat([]byte{byte(i + 1)}, 32)))
		check(t, err)
		check(t, ring.Publish(tenant, key.Public()))
		b.signers[tenant] = auth.NewSigner(tenant, key, nil)
		check(t, b.store.CreateTenant(t.Context(), model.Tenant{TenantID: tenant, DisplayName: tenant}))
	}
	check(t, b.store.CreateNamespace(t.Context(), model.Namespace{TenantID: "t1", Namespace: "pay"}))
	verifier, err := auth.NewVerifier(auth.VerifierOptions{Keys: &ring})
	check(t, err)
	o := Options{Store: b.store, Verifier: verifier, Clock: noon, Random: &counting{}, DurableSupported: true}
	if change != nil {
		change(&o)
	}
	b.handler, err = New(o)
	check(t, err)
	return b
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// token mints a control-plane token of a tenant with these permissions.
func (b *bench) token(tenant string, permissions ...string) string {
	b.t.Helper()
	return b.mint(tenant, auth.AudienceControlPlane, 15*time.Minute, noon(), permissions...)
}

func (b *bench) mint(tenant, audience string, ttl time.Duration, at time.Time, permissions ...string) string {
	b.t.Helper()
	token, err := b.signers[tenant].Mint(auth.Claims{Tenant: tenant, Subject: "p:test", Audience: audience, Permissions: permissions, TTL: ttl, Now: at})
	check(b.t, err)
	return token
}

// admin may manage everything in t1.
func (b *bench) admin() string {
	b.t.Helper()
	return b.token("t1", "ns.manage:namespace:t1/*", "stream.manage:stream:t1/*/*", "cache.manage:cache:t1/*/*")
}

// cluster may manage the tenants.
func (b *bench) cluster() string {
	b.t.Helper()
	return b.token("t2", "tenant.manage:cluster:*")
}

// answer is a response read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends one request straight into the handler.
func (b *bench) do(method, path, token, body string) answer {
	b.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return b.send(r)
}

func (b *bench) send(r *http.Request) answer {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	check(b.t, err)
	return answer{w.Code, w.Header(), body}
}

// fails checks status, code, the shape of the error body, and that the message says something.
func (b *bench) fails(name string, a answer, status int, code Code, says string) {
	b.t.Helper()
	var e struct {
		Code    Code           `json:"code"`
		Message string         `json:"message"`
		Detail  map[string]any `json:"detail"`
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		b.t.Errorf("%s: status %d with a body that is no error: %q (%v)", name, a.status, a.body, err)
		return
	}
	if a.status != status || e.Code != code || e.Message == "" || !strings.Contains(e.Message, says) {
		b.t.Errorf("%s: %d %s %q, want %d %s saying %q", name, a.status, e.Code, e.Message, status, code, says)
	}
	if a.header.Get("Content-Type") != "application/json" {
		b.t.Errorf("%s: content type %q", name, a.header.Get("Content-Type"))
	}
}

// into checks the status and decodes the body.
func into[T any](b *bench, name string, a answer, status int) T {
	b.t.Helper()
	var v T
	if a.status != status {
		b.t.Fatalf("%s: status %d, want %d: %s", name, a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		b.t.Fatalf("%s: %v in %s", name, err, a.body)
	}
	return v
}
