package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
)

// adminToken is the one the control plane of these tests takes.
const adminToken = "admin-token"

// controlPlane is a control plane for tests: streams and caches of one namespace, two per page.
type controlPlane struct {
	*httptest.Server
	mu      sync.Mutex
	records map[string]map[string]string // path, then field and value as JSON text
}

func newControlPlane(t *testing.T, b *testbroker.Broker) *controlPlane {
	t.Helper()
	cert, key, err := b.CA().Issue(transport.LeafRequest{Names: []string{"127.0.0.1"}, Now: time.Now(), Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	src, err := transport.NewCertSource(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	p := &controlPlane{records: make(map[string]map[string]string)}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.TLS = transport.HTTPSTLS(src, transport.Policy{})
	p.TLS.Certificates = []tls.Certificate{*src.Certificate()} // or httptest adds its own, of another authority
	p.Config.ErrorLog = log.New(io.Discard, "", 0)             // refused handshakes are part of the tests
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func (p *controlPlane) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.TLS == nil || r.TLS.Version != tls.VersionTLS13 || r.Header.Get("Authorization") != "Bearer "+adminToken {
		answer(w, http.StatusUnauthorized, `{"code":"unauthenticated","message":"no"}`)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1/tenants/t1/namespaces/default/")
	collection, name, one := strings.Cut(rest, "/")
	switch {
	case !ok || collection != "streams" && collection != "caches":
		answer(w, http.StatusNotFound, `{"code":"not_found","message":"no such path"}`)
	case r.Method == http.MethodPost && !one:
		p.create(w, r, collection)
	case r.Method == http.MethodGet && !one:
		p.list(w, r, collection)
	case strings.HasSuffix(rest, "/groups") && p.records[strings.TrimSuffix(rest, "/groups")] != nil:
		answer(w, http.StatusOK, `{"items":[{"group":"billing"},{"group":"two words"},{"group":"\u001b[2Jgone"}]}`)
	case p.records[rest] == nil:
		answer(w, http.StatusNotFound, fmt.Sprintf(`{"code":"not_found","message":"%s does not exist"}`, name))
	case r.Method == http.MethodDelete:
		delete(p.records, rest)
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusOK, p.text(rest))
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func (p *controlPlane) create(w http.ResponseWriter, r *http.Request, collection string) {
	var body map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answer(w, http.StatusBadRequest, `{"code":"invalid_request","message":"no JSON"}`)
		return
	}
	record := map[string]string{"shards": "1", "replication_factor": "1", "consistency": `"Leader"`, "future_field": "true"}
	for k, v := range body {
		record[k] = string(v)
	}
	if string(body["durable"]) == "true" {
		record["fsync_mode"] = `"on_commit"`
	}
	var name string
	if err := json.Unmarshal(body[strings.TrimSuffix(collection, "s")], &name); err != nil {
		answer(w, http.StatusBadRequest, `{"code":"invalid_name","message":"no name"}`)
		return
	}
	path := collection + "/" + name
	switch old := p.records[path]; {
	case old == nil:
		p.records[path] = record
		answer(w, http.StatusCreated, p.text(path))
	case fmt.Sprint(old) == fmt.Sprint(record):
		answer(w, http.StatusOK, p.text(path))
	default:
		answer(w, http.StatusConflict, `{"code":"already_exists","message":"it differs in shards"}`)
	}
}

func (p *controlPlane) text(path string) string {
	var fields []string
	for k, v := range p.records[path] {
		fields = append(fields, fmt.Sprintf("%q:%s", k, v))
	}
	slices.Sort(fields)
	return "{" + strings.Join(fields, ",") + "}"
}

func (p *controlPlane) list(w http.ResponseWriter, r *http.Request, collection string) {
	var paths []string
	for path := range p.records {
		if strings.HasPrefix(path, collection+"/") && path > r.URL.Query().Get("cursor") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	next := ""
	if len(paths) > 2 {
		paths = paths[:2]
		next = fmt.Sprintf(`,"next_cursor":%q`, paths[1])
	}
	for i, path := range paths {
		paths[i] = p.text(path)
	}
	answer(w, http.StatusOK, `{"items":[`+strings.Join(paths, ",")+`]`+next+`}`)
}

func TestStreamsAreCreatedListedShownAndRemoved(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	wantContains(t, c.run(exitOK, "stream", "create", "s1", "--shards", "4", "--durable", "--consistency", "QUORUM",
		"--delivery", "at-most-once", "--routing", "jump-hash", "--replication", "3", "--kind", "queue", "--retention-secs", "60"),
		`"stream":"s1"`, `"shards":4`, `"durable":true`, `"Quorum"`, `"AtMostOnce"`, `"jump_hash"`, `"replication_factor":3`, `"Queue"`,
		`"max_age_seconds":60`, `"future_field":true`)
	c.onTerminal()
	for _, name := range []string{"s2", "s3", "s4", "s5"} {
		wantText(t, c.run(exitOK, "stream", "create", name), "created stream default/"+name+"\n")
	}
	wantText(t, c.run(exitOK, "stream", "create", "s2"), "stream default/s2 exists already, with the same settings\n")
	c.run(exitRefused, "stream", "create", "s2", "--shards", "9")
	wantContains(t, c.stderr.String(), "already_exists", "409")
	table := c.run(exitOK, "stream", "ls")
	wantContains(t, table, "NAME  SHARDS", "s1    4", "s5")
	if n := strings.Count(table, "\n"); n != 6 {
		t.Fatalf("%d lines, want a head and five streams:\n%s", n, table)
	}
	wantContains(t, c.run(exitOK, "stream", "info", "s1"), "consistency", "Quorum", "1m0s", "as the broker decides")
	wantText(t, c.input("y\n").onTerminal().run(exitOK, "stream", "rm", "s1"), "removed stream default/s1\n")
	c.run(exitNotFound, "stream", "info", "s1")
	c.run(exitNotFound, "stream", "rm", "s1", "--yes")
}

func TestGroupsOfAStreamAreListed(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	c.run(exitOK, "stream", "create", "jobs", "--durable")
	wantText(t, c.run(exitOK, "group", "ls", "jobs"), `{"items":[{"group":"billing"},{"group":"two words"},{"group":"\u001b[2Jgone"}]}`+"\n")
	wantContains(t, c.onTerminal().run(exitOK, "group", "ls", "jobs"), "GROUP", "billing", "two words", `\x1b[2Jgone`)
	c.run(exitNotFound, "group", "ls", "none")
	wantContains(t, c.run(exitOK, "__complete", "group", "ls", ""), "jobs\n")
}

func TestListingElsewhereIsJSONWithEveryPageAndEveryField(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	wantText(t, c.run(exitOK, "stream", "ls"), `{"items":[]}`+"\n")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		c.run(exitOK, "cache", "create", name, "--shards", "2", "--display-name", "x")
	}
	var listing struct {
		Items []struct {
			Cache       string
			Shards      int
			FutureField bool `json:"future_field"`
		}
	}
	if err := json.Unmarshal([]byte(c.run(exitOK, "cache", "ls")), &listing); err != nil {
		t.Fatal(err)
	}
	if len(listing.Items) != 5 || listing.Items[4].Cache != "e" || listing.Items[4].Shards != 2 || !listing.Items[4].FutureField {
		t.Fatalf("%+v", listing.Items)
	}
	wantContains(t, c.run(exitOK, "cache", "info", "a"), `"cache":"a"`)
	wantContains(t, c.onTerminal().run(exitOK, "cache", "ls"), "DISPLAY NAME")
}

func TestRemovingNeedsAWord(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	c.run(exitOK, "cache", "create", "c1")
	c.run(exitUsage, "cache", "rm", "c1")
	wantContains(t, c.stderr.String(), "--yes")
	c.onTerminal().input("\n")
	c.run(exitUsage, "cache", "rm", "c1")
	c.input("").run(exitUsage, "cache", "rm", "c1")
	wantText(t, c.run(exitOK, "cache", "rm", "c1", "-y"), "removed cache default/c1\n")
}

func TestControlPlaneRefusalsHaveTheirExitCodes(t *testing.T) {
	b := newBroker(t)
	p := newControlPlane(t, b)
	c := newCLI(t).at(b, p.URL)
	c.run(exitRefused, "stream", "ls", "--controlplane-token", "bad")
	wantContains(t, c.stderr.String(), "unauthenticated")
	c.run(exitNotFound, "stream", "info", "none")
	c.run(exitUsage, "stream", "ls", "--controlplane-url", "http://127.0.0.1:1")
	c.run(exitUsage, "stream", "create", "s", "--consistency", "most")
	c.run(exitUnreachable, "stream", "ls", "--controlplane-ca-file", newBroker(t).CAFile(t))
	p.Close()
	c.run(exitUnreachable, "stream", "ls", "--json")
	wantContains(t, c.stderr.String(), `"exit":3`)
}

func TestNamesOfStreamsAreCompleted(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	for _, name := range []string{"s1", "s2", "s3"} {
		c.run(exitOK, "stream", "create", name)
	}
	wantContains(t, c.run(exitOK, "__complete", "sub", ""), "s1\ns2\ns3\n")
	wantContains(t, c.run(exitOK, "__complete", "pub", "s1", "x", "--ack", ""), "none\nrecord\nbatch\n")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		wantContains(t, c.run(exitOK, "completion", shell), "felixctl")
	}
}

func TestVersionIsPrinted(t *testing.T) {
	c := newCLI(t)
	wantContains(t, c.run(exitOK, "version"), `"version":`)
	wantContains(t, c.onTerminal().run(exitOK, "version"), "felixctl ")
	wantContains(t, c.run(exitOK), "Exit codes")
}

func TestProgressShowsOnlyAfterTwoSecondsAndCleansUp(t *testing.T) {
	synctest.Test(t, testProgress) // two seconds of its clock
}

func testProgress(t *testing.T) {
	c := newCLI(t)
	a := &app{sys: c.sys}
	a.progress(func() string { return "nobody looks" })()
	a.sys.stderrTerminal = true
	a.progress(func() string { return "too quick" })()
	wantText(t, c.stderr.String(), "")
	stop := a.progress(func() string { return "working" })
	<-time.After(progressAfter - 1)
	synctest.Wait()
	wantText(t, c.stderr.String(), "")
	c.stderr.await(t, "working (2s)")
	stop()
	stop()
	if !strings.HasSuffix(c.stderr.String(), "\r\x1b[K") {
		t.Fatalf("the line stays: %q", c.stderr)
	}
}

func TestNeitherAPipeNorTheNullDeviceIsATerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{null, r, w} {
		if isTerminal(f) {
			t.Errorf("%s counts as a terminal", f.Name())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if isTerminal(f) {
			t.Errorf("%s counts as a terminal when it is closed", f.Name())
		}
	}
}
