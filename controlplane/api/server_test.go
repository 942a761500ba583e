package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

// httptestServer serves h with the bounds of Server on a loopback port and returns its URL.
func httptestServer(t *testing.T, h http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	s := Server("", h, nil)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		check(t, s.Close())
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func TestRoutesAndMethodsThatDoNotExistGetJSON(t *testing.T) {
	b := newBench(t, nil)
	for _, path := range []string{"/", "/v1", "/v2/tenants", "/v1/tenants/", "/v1//tenants", "/v1/tenants/../tenants", "/v1/tenants/t1/",
		streams + "/s/x", "/v1/tenants/t1/namespaces/pay/queues", "/internal/raft/append", "/internal/bootstrap/tenants"} {
		b.fails(path, b.do("GET", path, "", ""), 404, CodeNotFound, "no such route")
	}
	for path, allow := range map[string]string{"/v1/tenants": "GET, HEAD, POST", streams: "GET, HEAD, POST", streams + "/s": "GET, HEAD, PATCH, DELETE",
		"/v1/tenants/t1": "GET, HEAD, DELETE", "/v1/system/live": "GET, HEAD"} {
		for _, method := range []string{"PUT", "OPTIONS", "TRACE", "BREW"} {
			a := b.do(method, path, "", "")
			b.fails(method+" "+path, a, 405, CodeMethodNotAllowed, allow)
			if a.header.Get("Allow") != allow {
				t.Errorf("%s %s: Allow is %q", method, path, a.header.Get("Allow"))
			}
		}
	}
}

func TestLiveAndReady(t *testing.T) {
	var trouble *Unready
	b := newBench(t, func(o *Options) { o.Ready = func() *Unready { return trouble } })
	for _, path := range []string{"/v1/system/ready", "/v1/system/health", "/v1/system/live"} {
		into[map[string]string](b, path, b.do("GET", path, "", ""), 200)
	}
	trouble = &Unready{Reason: "draining", Message: "shutting down"}
	for _, path := range []string{"/v1/system/ready", "/v1/system/health"} {
		got := into[map[string]string](b, path, b.do("GET", path, "", ""), 503)
		if got["status"] != "unready" || got["reason"] != "draining" || got["message"] != "shutting down" {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := into[map[string]string](b, "live while draining", b.do("GET", "/v1/system/live", "", ""), 200); got["status"] != "live" {
		t.Errorf("live: %v", got)
	}
	always := newBench(t, nil)
	into[map[string]string](always, "no Ready given", always.do("GET", "/v1/system/ready", "", ""), 200)
}

func TestLongAnswersAreCompressedForThoseWhoAskForIt(t *testing.T) {
	b := newBench(t, nil)
	token := b.admin()
	for i := range 50 {
		into[model.Stream](b, "create", b.do("POST", streams, token, fmt.Sprintf(`{"stream":"s%02d"}`, i)), 201)
	}
	plain := b.do("GET", streams, token, "")
	if plain.header.Get("Content-Encoding") != "" {
		t.Fatal("compressed without being asked")
	}
	r := httptest.NewRequest("GET", streams, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept-Encoding", "gzip")
	packed := b.send(r)
	if packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) > len(plain.body)/4 {
		t.Fatalf("encoding %q, %d of %d bytes", packed.header.Get("Content-Encoding"), len(packed.body), len(plain.body))
	}
	z, err := gzip.NewReader(bytes.NewReader(packed.body))
	check(t, err)
	text, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(text, plain.body) {
		t.Fatalf("unpacked to something else (%v)", err)
	}
}

// held is a store that blocks in Tenants until let go.
type held struct {
	store.Store
	entered chan struct{}
	leave   chan struct{}
}

func (h held) Tenants(ctx context.Context, after string, limit int) ([]model.Tenant, error) {
	h.entered <- struct{}{}
	select {
	case <-h.leave:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return h.Store.Tenants(ctx, after, limit)
}

func TestRequestsBeyondTheBoundAreToldToComeBack(t *testing.T) {
	h := held{entered: make(chan struct{}, 3), leave: make(chan struct{})}
	b := newBench(t, func(o *Options) { h.Store, o.InFlightMax = o.Store, 3; o.Store = h })
	token := b.cluster()
	statuses := make(chan int, 3)
	for range 3 {
		go func() {
			r := httptest.NewRequest("GET", "/v1/tenants", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			b.handler.ServeHTTP(w, r)
			statuses <- w.Code
		}()
	}
	for range 3 {
		await(t, h.entered)
	}
	a := b.do("GET", "/v1/tenants", token, "")
	b.fails("the fourth", a, 503, CodeUnavailable, "3 requests")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	into[map[string]string](b, "system routes still answer", b.do("GET", "/v1/system/ready", "", ""), 200)
	close(h.leave)
	for range 3 {
		if status := await(t, statuses); status != 200 {
			t.Errorf("a request within the bound got %d", status)
		}
	}
	into[Page[model.Tenant]](b, "after they left", b.do("GET", "/v1/tenants", token, ""), 200)
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("what was waited for did not happen")
		panic("unreachable")
	}
}

// failing answers every read of a tenant with err, or panics when err is nil.
type failing struct {
	store.Store
	err error
}

func (f failing) Tenant(context.Context, string) (model.Tenant, error) {
	if f.err == nil {
		panic("MARKER-PANIC")
	}
	return model.Tenant{}, f.err
}

func TestStoreTroubleIsAnsweredWithoutDetails(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   Code
		logged bool
	}{
		"deadline":    {context.DeadlineExceeded, 503, CodeUnavailable, false},
		"unavailable": {fmt.Errorf("no quorum: %w", store.ErrUnavailable), 503, CodeUnavailable, false},
		"conflict":    {fmt.Errorf("write: %w", store.ErrConflict), 409, CodeConflict, false},
		"full":        {&store.FullError{What: "streams", Bound: 1}, 409, CodeCatalogFull, false},
		"surprise":    {errors.New("MARKER-SECRET of the database"), 500, CodeInternal, true},
		"panic":       {nil, 500, CodeInternal, true},
	} {
		var log bytes.Buffer
		b := newBench(t, func(o *Options) {
			o.Store, o.Logger = failing{o.Store, c.err}, slog.New(slog.NewTextHandler(&log, nil))
		})
		a := b.do("GET", "/v1/tenants/t1", b.cluster(), "")
		b.fails(name, a, c.status, c.code, "")
		if bytes.Contains(a.body, []byte("MARKER")) {
			t.Errorf("%s: the answer tells internals: %s", name, a.body)
		}
		if logged := strings.Contains(log.String(), "MARKER"); logged != c.logged {
			t.Errorf("%s: logged is %v: %s", name, logged, log.String())
		}
	}
}

func TestTokensNeverReachTheLog(t *testing.T) {
	var log bytes.Buffer
	b := newBench(t, func(o *Options) {
		o.Store = failing{o.Store, nil}
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	token := b.cluster()
	b.do("GET", "/v1/tenants/t1", token, "")
	b.do("GET", streams, token, "")
	b.do("GET", "/v1/tenants/t1", token[:len(token)-4], "")
	for _, part := range strings.Split(token, ".") {
		if strings.Contains(log.String(), part[:12]) {
			t.Fatalf("the log repeats a token: %s", log.String())
		}
	}
	if !strings.Contains(log.String(), "reason=signature") {
		t.Errorf("the log does not say why a token was refused: %s", log.String())
	}
}

func TestObserverSeesEveryAnswerWithFewLabels(t *testing.T) {
	var seen []Observation
	b := newBench(t, func(o *Options) { o.Observe = func(n Observation) { seen = append(seen, n) } })
	b.do("GET", streams+"/whatever", b.admin(), "")
	b.do("BREW", "/coffee", "", "")
	b.do("GET", "/v1/system/live", "", "")
	b.do("DELETE", "/v1/tenants", "", "")
	want := []Observation{{"GET", "/v1/tenants/{tenant}/namespaces/{namespace}/streams/{stream}", 404, 0}, {"other", "unknown", 404, 0},
		{"GET", "/v1/system/live", 200, 0}, {"DELETE", "/v1/tenants", 405, 0}}
	if !slices.Equal(seen, want) {
		t.Fatalf("seen %+v", seen)
	}
}

func TestServerBoundsHeadersAndSpeaksModernTLSOnly(t *testing.T) {
	b := newBench(t, nil)
	url := httptestServer(t, b.handler)
	r, err := http.NewRequest("GET", url+"/v1/system/live", nil)
	check(t, err)
	r.Header.Set("X-Filler", strings.Repeat("x", 80<<10))
	inOneWrite := &http.Transport{WriteBufferSize: 128 << 10} // the server answers in the middle, and hangs up on who goes on later
	defer inOneWrite.CloseIdleConnections()
	answer, err := inOneWrite.RoundTrip(r)
	check(t, err)
	check(t, answer.Body.Close())
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("80 KiB of headers: %d", answer.StatusCode)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	s := Server("127.0.0.1:1", b.handler, config)
	if s.TLSConfig.MinVersion != tls.VersionTLS13 || config.MinVersion != tls.VersionTLS12 || s.Addr != "127.0.0.1:1" {
		t.Errorf("TLS from %x, the caller's configuration says %x", s.TLSConfig.MinVersion, config.MinVersion)
	}
	if s.ReadHeaderTimeout != 5*time.Second || s.ReadTimeout == 0 || s.WriteTimeout <= RequestTimeout || s.IdleTimeout == 0 || s.MaxHeaderBytes != 64<<10 {
		t.Errorf("bounds %+v", s)
	}
	if s := Server("", b.handler, nil); s.TLSConfig != nil {
		t.Error("TLS without a configuration")
	}
}

func TestOptionsThatAreMissingAreNamed(t *testing.T) {
	for _, o := range []Options{{}, {Store: store.NewMemory(store.MemoryOptions{})}, {InFlightMax: -1}} {
		if h, err := New(o); err == nil || h != nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestErrorBodyDecodesIntoError(t *testing.T) {
	b := newBench(t, nil)
	var e Error
	check(t, json.Unmarshal(b.do("GET", "/nope", "", "").body, &e))
	if e.Code != CodeNotFound || e.Error() != "not_found: there is no such route" {
		t.Errorf("%+v", e)
	}
}
