package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store/catalogfile"
)

const devStreamsPath = "/v1/tenants/" + devTenant + "/namespaces/" + devNamespace + "/streams"

// api does one request as the administrator.
func (r *running) api(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	ca, err := os.ReadFile(r.dev.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, r.dev.ControlPlane+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.dev.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// must is an api call that succeeds.
func (r *running) must(t *testing.T, method, path, body string) string {
	t.Helper()
	code, text := r.api(t, method, path, body)
	if code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	return text
}

// publishOnce waits until a client may publish to a stream, and publishes.
func publishOnce(t *testing.T, r *running, stream, payload string) {
	t.Helper()
	c := r.connect(t)
	defer closeClient(c)
	for deadline := time.Now().Add(patience); ; pause(t.Context(), 5*time.Millisecond) {
		_, err := c.Publish(t.Context(), devNamespace, stream, []byte(payload))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func closeClient(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// fails starts a daemon that does not come up, and returns its code and its last words.
func fails(t *testing.T, dir string, more ...string) (int, string) {
	t.Helper()
	var stderr bytes.Buffer
	args := append([]string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0"}, more...)
	code := run(args, nil, io.Discard, &stderr, make(chan os.Signal))
	return code, stderr.String()
}

// field case DUR-14
func TestTheCatalogSurvivesARestart(t *testing.T) {
	first := start(t, t.TempDir())
	made := first.must(t, "POST", devStreamsPath, `{"stream":"made","shards":3}`)
	first.must(t, "DELETE", devStreamsPath+"/"+devStreams[0], "")
	first.stop(t)

	second := start(t, first.dir)
	defer second.stop(t)
	if again := second.must(t, "GET", devStreamsPath+"/made", ""); again != made {
		t.Errorf("it was %s and is %s", made, again)
	}
	if code, text := second.api(t, "GET", devStreamsPath+"/"+devStreams[0], ""); code != http.StatusNotFound {
		t.Errorf("what was deleted is there again: %d %s", code, text)
	}
	publishOnce(t, second, "made", "x")
}

// mission 282
func TestADurableStreamHasItsRecordsAfterARestart(t *testing.T) {
	first := start(t, t.TempDir())
	first.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	for i := range 3 {
		publishOnce(t, first, "kept", fmt.Sprint("kept ", i))
	}
	if code := first.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, first.err)
	}
	if _, err := os.Stat(filepath.Join(first.dir, logFolder, "LOCK")); err != nil {
		t.Fatal(err)
	}

	second := start(t, first.dir)
	defer second.stop(t)
	c := second.connect(t)
	defer closeClient(c)
	sub, err := c.Subscribe(t.Context(), devNamespace, "kept", client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != fmt.Sprint("kept ", i) {
			t.Fatalf("record %d is %q, %v", i, e.Payload, err)
		}
	}
	recorded(t, func() (model.LogID, error) { return logOf(second.dir, "kept") })
}

func TestAReadAndAStreamsViewAreAsTheSettingsSay(t *testing.T) {
	r := start(t, t.TempDir(), "--durable-max-records-per-read", "2", "--durable-fsync-mode", "none")
	defer r.stop(t)
	if made := r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`); !strings.Contains(made, `"fsync_mode":"none"`) {
		t.Errorf("the stream is shown as %s", made)
	}
	for i := range 3 {
		publishOnce(t, r, "kept", fmt.Sprint(i))
	}
	c := r.connect(t)
	defer closeClient(c)
	if page, err := c.Read(t.Context(), devNamespace, "kept", client.ReadOptions{MaxRecords: 3}); err != nil || len(page.Records) != 2 || page.Next != 2 {
		t.Errorf("one read got %+v, %v", page, err)
	}
	n := 0
	for record, err := range c.ReadRange(t.Context(), devNamespace, "kept", client.ReadOptions{}) {
		if err != nil || string(record.Payload) != fmt.Sprint(n) {
			t.Fatalf("record %d is %+v, %v", n, record, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("all reads together got %d", n)
	}
}

// logOf is the log that the catalog knows of shard 0.
func logOf(dir, stream string) (l model.LogID, err error) {
	text, err := os.ReadFile(filepath.Join(dir, catalogfile.Name))
	if err != nil {
		return l, err
	}
	c, err := catalogfile.Decode(text)
	for _, s := range c.Streams {
		if s.Stream == stream {
			l = s.Log(0)
		}
	}
	return l, err
}

func TestACatalogThatCannotBeReadIsAnExitCodeAndLeftAlone(t *testing.T) {
	r := start(t, t.TempDir())
	r.stop(t)
	name := filepath.Join(r.dir, catalogfile.Name)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Replace(good, []byte("Development"), []byte("Devel0pment"), 1)
	newer := bytes.Replace(good, []byte(`"version":2`), []byte(`"version":9`), 1)
	for want, bad := range map[int][]byte{exitDamaged: flipped, exitDataDir: newer} {
		if bytes.Equal(bad, good) {
			t.Fatal("the test changed nothing")
		}
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, text := fails(t, r.dir); code != want || !strings.Contains(text, catalogfile.Name) || !strings.Contains(text, r.dir) {
			t.Errorf("exit code %d, want %d: %s", code, want, text)
		}
		if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("it was changed: %v", err)
		}
	}
}

func TestWithoutStorageADurableStreamIsRefusedByName(t *testing.T) {
	r := start(t, t.TempDir(), "--durable-storage-dir", noStorage)
	defer r.stop(t)
	code, text := r.api(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	var answer struct{ Code, Message string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusConflict || answer.Code != "durable_unsupported" {
		t.Fatalf("%d %s, %v", code, text, err)
	}
	r.must(t, "POST", devStreamsPath, `{"stream":"made"}`)
	publishOnce(t, r, "made", "x")
	if _, err := os.Stat(filepath.Join(r.dir, logFolder)); !os.IsNotExist(err) {
		t.Fatalf("there is a folder for logs: %v", err)
	}
}

// matrix E21, L15
func TestOneStorageDirectoryHasOneDaemonAndItIsNamed(t *testing.T) {
	logs := t.TempDir()
	r := start(t, t.TempDir(), "--durable-storage-dir", logs)
	defer r.stop(t)
	code, text := fails(t, t.TempDir(), "--durable-storage-dir", logs)
	if code != exitDataDir || !strings.Contains(text, "--durable-storage-dir") || !strings.Contains(text, fmt.Sprint("pid ", os.Getpid())) {
		t.Fatalf("exit code %d: %s", code, text)
	}
}

func TestAStorageDirectoryThatIsAFileIsToldWithWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, text := fails(t, t.TempDir(), "--durable-storage-dir", file)
	if code != exitDataDir || !strings.Contains(text, "--durable-storage-dir") || !strings.Contains(text, "name a folder that can be written") {
		t.Fatalf("exit code %d: %s", code, text)
	}
}

// segments are the files of a stream's logs.
func segments(t *testing.T, dir, stream string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, logFolder, "*_"+stream+"_*", "*.log"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%q, %v", found, err)
	}
	return found
}

// mission 278
//
// field case DUR-03
func TestADamagedLogEndsTheDaemonAndItsWordsNameTheFile(t *testing.T) {
	r := start(t, t.TempDir(), "--durable-segment-bytes", "4096")
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	for range 4 {
		publishOnce(t, r, "kept", strings.Repeat("x", 3000))
	}
	r.stop(t)
	oldest := segments(t, r.dir, "kept")[0]
	text, err := os.ReadFile(oldest)
	if err != nil {
		t.Fatal(err)
	}
	text[1000] ^= 1
	if err := os.WriteFile(oldest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	code, said := fails(t, r.dir)
	if code != exitDamaged || !strings.Contains(said, filepath.Base(oldest)) || !strings.Contains(said, "kept") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if now, err := os.ReadFile(oldest); err != nil || !bytes.Equal(now, text) {
		t.Fatalf("the damaged file was changed: %v", err)
	}

	up := start(t, r.dir, "--durable-quarantine-damaged") // the rest is served
	defer up.stop(t)
	publishOnce(t, up, devStreams[0], "x")
}

// field case DUR-13
func TestALogThatIsGoneEndsTheDaemon(t *testing.T) {
	r := start(t, t.TempDir())
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	publishOnce(t, r, "kept", "x")
	recorded(t, func() (model.LogID, error) { return logOf(r.dir, "kept") })
	r.stop(t)
	if err := os.RemoveAll(filepath.Dir(segments(t, r.dir, "kept")[0])); err != nil {
		t.Fatal(err)
	}
	if code, said := fails(t, r.dir); code != exitDamaged || !strings.Contains(said, "log_missing") || !strings.Contains(said, "kept") {
		t.Fatalf("exit code %d: %s", code, said)
	}
}

// freePort is an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// heldUp begins a daemon whose logs can't be read until the returned file is removed, and returns when it says that it is opening them.
func heldUp(t *testing.T, more ...string) (r *running, file, ready string) {
	t.Helper()
	first := start(t, t.TempDir())
	first.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	publishOnce(t, first, "kept", "x")
	first.stop(t)
	file = filepath.Join(t.TempDir(), "faults")
	if err := os.WriteFile(file, []byte("read block\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for {
		addr := freePort(t)
		r = begin(first.dir, append([]string{"--http", addr, "--storage-fault-file", file}, more...)...)
		if r.opening(t) {
			return r, file, "http://" + addr + "/ready"
		}
	}
}

// opening returns when the daemon says that it is opening its logs, or false when somebody else has taken its address.
func (r *running) opening(t *testing.T) bool {
	t.Helper()
	late := time.After(patience)
	for !strings.Contains(r.out.String(), "opening logs: ") {
		select {
		case <-r.out.more:
		case code := <-r.code:
			if code != exitListen {
				t.Fatalf("exit code %d: %s", code, r.err)
			}
			return false
		case <-late:
			t.Fatalf("it does not open its logs: %s%s", r.out, r.err)
		}
	}
	return true
}

// mission 394: while it recovers.
func TestADaemonIsReadyWhenItsLogsAreOpenAndTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	r, file, ready := heldUp(t)
	if want := "opening logs: 0 of 3 after "; !strings.Contains(r.out.String(), want) { // of the stream, and of the entries and the counters of the cache
		t.Errorf("%q is not told in %s", want, r.out)
	}
	if code, body := r.get(t, ready); code != http.StatusServiceUnavailable || !strings.Contains(body, "starting") {
		t.Errorf("while a log is being opened /ready is %d %q", code, body)
	}
	if code, body := r.get(t, strings.TrimSuffix(ready, "/ready")+"/live"); code != http.StatusOK || strings.TrimSpace(body) != "ok" {
		t.Errorf("while a log is being opened /live is %d %q", code, body)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r.out.wait(t, "ready in ")
	if code, _ := r.get(t, ready); code != http.StatusOK {
		t.Errorf("/ready is %d", code)
	}
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, r.err)
	}
}

func TestADaemonThatIsOpeningItsLogsStopsWhenItIsTold(t *testing.T) {
	t.Parallel()
	r, _, _ := heldUp(t, "--drain-timeout-ms", "300")
	if code := r.stop(t); code != exitOK && code != exitDrain {
		t.Fatalf("exit code %d: %s", code, r.err)
	}
}

// field case OPS-01
func TestTheReserveIsThereWhileADaemonRuns(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	name := filepath.Join(r.dir, reserveFile)
	for deadline := time.Now().Add(patience); ; pause(t.Context(), time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("there is no reserve")
		}
	}
	r.stop(t)
	if _, err := os.Stat(name); err != nil {
		t.Fatalf("the next start has no reserve to give back: %v", err)
	}
}

// awaitFiles waits until a stream's logs have a number of files that the test is content with.
func awaitFiles(t *testing.T, r *running, stream string, ok func(n int) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause(t.Context(), 10*time.Millisecond) {
		n := len(segments(t, r.dir, stream))
		if ok(n) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there are %d files", n)
		}
	}
}

// mission 283, mission 284, mission 288, mission 289
func TestRetentionOfTheBrokerAndOfAStreamReachRunningLogs(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "--durable-segment-bytes", "4096", "--durable-retention-interval-seconds", "1", "--durable-retention-bytes", "20000")
	defer r.stop(t)
	r.must(t, "POST", devStreamsPath, `{"stream":"brokers","durable":true}`)
	r.must(t, "POST", devStreamsPath, fmt.Sprintf(`{"stream":"own","durable":true,"retention":{"max_size_bytes":%d}}`, 1<<40))
	for range 12 {
		publishOnce(t, r, "brokers", strings.Repeat("x", 3000))
		publishOnce(t, r, "own", strings.Repeat("x", 3000))
	}
	awaitFiles(t, r, "brokers", func(n int) bool { return n <= 6 })
	if n := len(segments(t, r.dir, "own")); n != 12 {
		t.Fatalf("the stream's own bound is larger, and %d files are left", n)
	}
	r.must(t, "PATCH", devStreamsPath+"/own", `{"retention":{"max_size_bytes":1}}`)
	awaitFiles(t, r, "own", func(n int) bool { return n == 1 })
}

// With catch_up a durable stream loses nothing to a reader that stands still, and an ephemeral one is served as with drop_new.
func TestCatchUpServesDurableAndEphemeralStreams(t *testing.T) {
	r := start(t, t.TempDir(), "--durable-fsync-mode", "none", "--subscriber-queue-policy", "catch_up", "--subscriber-queue-capacity", "2")
	defer r.stop(t)
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	publishOnce(t, r, "kept", "0")
	c := r.connect(t)
	defer closeClient(c)
	sub, err := c.Subscribe(t.Context(), devNamespace, "kept", client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for i := 1; i < 200; i++ {
		if _, err := c.Publish(t.Context(), devNamespace, "kept", []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("record %d is %q, %v", i, e.Payload, err)
		}
	}
	publishOnce(t, r, devStreams[0], "x")
}
