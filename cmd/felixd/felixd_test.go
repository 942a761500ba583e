package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/controlplane/auth"
)

// patience is how long a test waits for something that should happen at once.
const patience = 60 * time.Second

// output collects what a daemon prints and can be waited on.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newOutput() *output { return &output{more: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) wait(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(o.String(), want) {
		select {
		case <-o.more:
		case <-deadline:
			t.Fatalf("waited for %q; printed:\n%s", want, o)
		}
	}
}

// running is a daemon under test.
type running struct {
	out, err *output
	signals  chan os.Signal
	code     chan int
	dev      devContext
	dir      string
}

func start(t *testing.T, dir string, more ...string) *running {
	t.Helper()
	r := begin(dir, append([]string{"--http", "127.0.0.1:0"}, more...)...)
	r.out.wait(t, "ready in ")
	text, err := os.ReadFile(filepath.Join(dir, devFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r.dev); err != nil {
		t.Fatal(err)
	}
	return r
}

// begin starts a daemon and does not wait for it. A disk that needs a while for a sync leaves no outcome unknown: whoever repeats a publish
// for that has it twice. Who is slow to sign in is not hung up on.
func begin(dir string, more ...string) *running {
	r := &running{out: newOutput(), err: newOutput(), signals: make(chan os.Signal, 2), code: make(chan int, 1), dir: dir}
	args := append([]string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "--ack-wait-timeout-ms", ms(patience),
		"--auth-timeout-ms", ms(patience)}, more...)
	go func() { r.code <- run(args, nil, r.out, r.err, r.signals) }()
	return r
}

func (r *running) stop(t *testing.T) int {
	t.Helper()
	r.signals <- syscall.SIGTERM
	return r.wait(t)
}

func (r *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-r.code:
		return code
	case <-time.After(patience):
		t.Fatalf("the daemon does not stop; it printed:\n%s%s", r.out, r.err)
		return -1
	}
}

func (r *running) connect(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Options{
		Addrs: []string{r.dev.ClientAddr}, TenantID: r.dev.TenantID, Token: r.dev.ClientToken, CAFile: r.dev.CAFile, DialTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (r *running) get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestDevServesClientsFromDevJSONAndDrainsOnSIGTERM(t *testing.T) {
	r := start(t, t.TempDir())
	if info, err := os.Stat(filepath.Join(r.dir, devFile)); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Fatalf("dev.json: %v, %v; it holds tokens and must be readable by its owner only", info.Mode(), err)
	}
	c := r.connect(t)
	sub, err := c.Subscribe(t.Context(), "default", "orders", client.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), "default", "orders", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != "hello" {
		t.Fatalf("received %q, %v", e.Payload, err)
	}
	for path, want := range map[string]string{"/live": "ok", "/ready": "ok", "/metrics": "felix_client_connections 1"} {
		if code, body := r.get(t, r.dev.HTTP+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %q", path, code, want)
		}
	}
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d; it printed:\n%s%s", code, r.out, r.err)
	}
	if _, err := sub.Next(t.Context()); err == nil {
		t.Fatal("the subscription goes on after the broker has stopped")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

func TestTheAuthorityAndTokensSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	ca, err := os.ReadFile(first.dev.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	first.stop(t)
	second := start(t, dir)
	defer second.stop(t)
	again, err := os.ReadFile(second.dev.CAFile)
	if err != nil || !bytes.Equal(ca, again) {
		t.Fatalf("the authority changed at the restart: %v", err)
	}
	second.dev.ClientToken = first.dev.ClientToken // an old token still works
	c := second.connect(t)
	if err := c.CachePut(t.Context(), "default", "users", "k", []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

func TestTheAPITakesTheAdminTokenOverTLSAndRefusesTheClientToken(t *testing.T) {
	r := start(t, t.TempDir())
	defer r.stop(t)
	ca, err := os.ReadFile(r.dev.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	defer transport.CloseIdleConnections()
	get := func(token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.dev.ControlPlane+"/v1/tenants/t1/namespaces/default/streams", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		answer, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if code := get(r.dev.AdminToken); code != http.StatusOK {
		t.Errorf("admin token: %d", code)
	}
	if code := get(r.dev.ClientToken); code != http.StatusUnauthorized {
		t.Errorf("client token: %d, want 401: audiences are apart", code)
	}
	// TLS 1.2 is refused (mission 199).
	old := &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(r.dev.ControlPlane, "https://"), old); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
}

func TestASecondSignalStopsAtOnce(t *testing.T) {
	r := start(t, t.TempDir())
	c := r.connect(t)
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Close(ctx)
	}()
	r.signals <- syscall.SIGTERM
	r.signals <- syscall.SIGTERM
	if code := r.wait(t); code != exitForced && code != exitOK { // it may have drained before the second one was looked at
		t.Fatalf("exit code %d", code)
	}
}

func TestOneDataDirectoryHasOneDaemon(t *testing.T) {
	r := start(t, t.TempDir())
	defer r.stop(t)
	var stderr bytes.Buffer
	code := run([]string{"dev", "--data-dir", r.dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0"}, nil, io.Discard, &stderr, nil)
	if code != exitDataDir || !strings.Contains(stderr.String(), "another felixd uses it") {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
}

func TestAnAddressInUseIsExitCode3AndNamesTheFlag(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	for flag, addr := range map[string]string{"--api": l.Addr().String(), "--http": l.Addr().String(), "--listen": udp.LocalAddr().String()} {
		args := []string{"dev", "--data-dir", t.TempDir()}
		for _, f := range []string{"--listen", "--http", "--api"} {
			value := "127.0.0.1:0"
			if f == flag {
				value = addr
			}
			args = append(args, f, value)
		}
		var stderr bytes.Buffer
		if code := run(args, nil, io.Discard, &stderr, nil); code != exitListen || !strings.Contains(stderr.String(), "name another address with "+flag) {
			t.Errorf("%s in use: exit code %d: %s", flag, code, &stderr)
		}
	}
}

func TestABadValueIsOneLineThatNamesItsFlagOrVariable(t *testing.T) {
	for _, s := range settings() {
		if s.flag == "data-dir" || s.flag == "durable-storage-dir" { // any text names a folder
			continue
		}
		for _, where := range []string{"--" + s.flag, s.variable} {
			args, environ := []string{"dev"}, []string{s.variable + "=!"}
			if where != s.variable {
				args, environ = append(args, where+"=!"), nil
			}
			var stderr bytes.Buffer
			code := run(args, environ, io.Discard, &stderr, nil)
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			if code != exitUsage || len(lines) != 1 || !strings.Contains(lines[0], where) {
				t.Errorf("%s: exit code %d: %s", where, code, &stderr)
			}
		}
	}
}

func TestAFlagWinsOverItsVariableWhichWinsOverTheDefault(t *testing.T) {
	all := settings()
	flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	addFlags(flags, all)
	if err := flags.Parse([]string{"--executors", "7"}); err != nil {
		t.Fatal(err)
	}
	c, _, err := load(all, flags, []string{"FELIX_BROKER_PUB_WORKERS_PER_CONN=3", "FELIX_BROKER_PUBLISH_WINDOW=11"})
	if err != nil || c.Executors != 7 || c.Limits.PublishWindow != 11 || c.MaxPerIP != DefaultConfig().MaxPerIP {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestAnAliasIsReadWhenTheVariableIsNotSet(t *testing.T) {
	for want, environ := range map[int][]string{
		9:  {"FELIX_SUB_QUEUE_CAPACITY=9"},
		11: {"FELIX_SUB_QUEUE_CAPACITY=9", "FELIX_SUBSCRIBER_QUEUE_CAPACITY=11"},
	} {
		all := settings()
		flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
		addFlags(flags, all)
		if c, warnings, err := load(all, flags, environ); err != nil || c.Limits.Delivery.Capacity != want || len(warnings) > 0 {
			t.Errorf("%v: %d, %q, %v", environ, c.Limits.Delivery.Capacity, warnings, err)
		}
	}
	var stderr bytes.Buffer
	if code := run([]string{"dev"}, []string{"FELIX_SUB_QUEUE_CAPACITY=none"}, io.Discard, &stderr, nil); code != exitUsage || !strings.Contains(stderr.String(), "FELIX_SUB_QUEUE_CAPACITY") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

func TestAPolicyThatNeedsDurableStreamsIsRefusedWhereThereAreNone(t *testing.T) {
	for _, policy := range []string{"catch_up", "newest"} {
		var stderr bytes.Buffer
		code := run([]string{"dev", "--durable-storage-dir", "none", "--subscriber-queue-policy", policy}, nil, io.Discard, &stderr, nil)
		if code != exitUsage || !strings.Contains(stderr.String(), "--subscriber-queue-policy") || !strings.Contains(stderr.String(), "drop_new, block, drop_old") {
			t.Errorf("%s: exit code %d: %s", policy, code, &stderr)
		}
	}
}

func TestACommandLineThatIsNotUnderstoodNamesTheHelp(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag: --grup-max; see felixd dev --help":       {"dev", "--grup-max", "3"},
		`unknown command "run" for "felixd"; see felixd --help`: {"run"},
	} {
		var stderr bytes.Buffer
		if code := run(args, nil, io.Discard, &stderr, nil); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	var stderr bytes.Buffer
	run([]string{"dev", "--listen", "nowhere", "--executors", "0", "--http", "127.0.0.1"}, nil, io.Discard, &stderr, nil)
	for _, want := range []string{"--listen", "--executors", "--http"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("nothing about %s in:\n%s", want, &stderr)
		}
	}
}

func TestValuesThatOnlyContradictEachOtherAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"--http":                        {"--http", "127.0.0.1:1", "--api", "127.0.0.1:1"},
		"--stream-recv-window":          {"--conn-recv-window", "65536", "--stream-recv-window", "131072"},
		"--publish-conn-inflight-bytes": {"--publish-inflight-bytes", "1048576", "--publish-conn-inflight-bytes", "2097152"},
		"--subscriber-queue-capacity:":  {"--subscriber-queue-capacity", "9", "--subscriber-queue-capacity-max", "8"},
		"--subscriber-queue-max-bytes":  {"--subscriber-queue-max-bytes", "131072", "--subscriber-memory-bytes", "65536"},
		"--event-batch-max-bytes":       {"--event-batch-max-bytes", "16777217"},
		"--max-subscriptions-per-conn:": {"--max-subscriptions-per-conn", "9", "--max-subscriptions-per-conn-total", "8"},
		"--ephemeral-shard-bytes":       {"--ephemeral-memory-bytes", "65536", "--ephemeral-shard-bytes", "131072"},
	} {
		var stderr bytes.Buffer
		if code := run(append([]string{"dev"}, args...), nil, io.Discard, &stderr, nil); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
}

func TestAVariableThatNothingReadsIsToldWithTheNearestName(t *testing.T) {
	got := unread(settings(), []string{"FELIX_DATADIR=x", "FELIX_INITIAL_MTU=1200", "FELIX_SOMETHING_ELSE_ENTIRELY=1", "PATH=/bin", "FELIX_DATA_DIR=y"})
	if len(got) != 2 || !strings.Contains(got[0], "did you mean FELIX_DATA_DIR?") || strings.Contains(got[1], "mean") {
		t.Fatalf("%q", got)
	}
}

func TestDefaultsInTheHelpAreTheDefaultsInForce(t *testing.T) {
	all := settings()
	flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	addFlags(flags, all)
	c, warnings, err := load(all, flags, nil)
	if want := DefaultConfig(); err != nil || len(warnings) > 0 || fmt.Sprintf("%+v", c) != fmt.Sprintf("%+v", want) {
		t.Fatalf("loaded\n%+v, %v\nwant\n%+v", c, err, want)
	}
}

func TestHalfAnAuthorityIsRefusedAndNothingIsReplaced(t *testing.T) {
	r := start(t, t.TempDir())
	r.stop(t)
	if err := os.Remove(filepath.Join(r.dir, caKeyFile)); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code := run([]string{"dev", "--data-dir", r.dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0"}, nil, io.Discard, &stderr, nil)
	if code != exitDataDir || !strings.Contains(stderr.String(), caKeyFile) {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if _, err := os.Stat(filepath.Join(r.dir, caFile)); err != nil {
		t.Fatal("the certificate that was left is gone")
	}
}

func TestCommandsThatComeLaterSaySo(t *testing.T) {
	for _, name := range []string{"broker", "controlplane"} {
		var stderr bytes.Buffer
		if code := run([]string{name, "--anything"}, nil, io.Discard, &stderr, nil); code != exitUsage {
			t.Errorf("felixd %s: exit code %d: %s", name, code, &stderr)
		}
	}
	var stdout bytes.Buffer
	if code := run([]string{"version"}, nil, &stdout, io.Discard, nil); code != exitOK || !strings.Contains(stdout.String(), "FLX1") {
		t.Errorf("felixd version: %d, %q", code, &stdout)
	}
}

// The client token covers one namespace and nothing else; the admin token is of no use at a broker.
func TestDevTokensCoverWhatTheySayAndNoMore(t *testing.T) {
	d, err := openDataDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	now := time.Now()
	id, err := loadIdentity(d, []string{"127.0.0.1:5000"}, now)
	if err != nil {
		t.Fatal(err)
	}
	clientToken, adminToken, err := id.tokens(now)
	if err != nil {
		t.Fatal(err)
	}
	g, refusal := authenticator{id.verifier}.Authenticate(devTenant, clientToken, now)
	if refusal != nil {
		t.Fatal(refusal)
	}
	p := g.(grants).p
	for object, want := range map[auth.Object]bool{
		auth.StreamObject(devTenant, devNamespace, "anything"): true,
		auth.StreamObject(devTenant, "other", "anything"):      false,
		auth.StreamObject("t2", devNamespace, "anything"):      false,
	} {
		if got := p.Permissions.Allows(auth.StreamPublish, object); got != want {
			t.Errorf("publish to %s: %v", object, got)
		}
	}
	if left := p.Expires.Sub(now); left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("the client token lives %s", left)
	}
	if _, refusal := (authenticator{id.verifier}).Authenticate(devTenant, adminToken, now); refusal == nil {
		t.Error("a broker took the admin token")
	}
}
