package hostile

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/testkit"
)

// daemon is felixd as it is delivered, in a process of its own.
type daemon struct {
	t    testing.TB
	cmd  *exec.Cmd
	said *testkit.Tail // its log
	dir  string
	http *http.Client

	Client   string `json:"client_addr"`
	API      string `json:"control_plane"`
	Health   string `json:"http"`
	Token    string `json:"client_token"`
	Admin    string `json:"admin_token"`
	CAFile   string `json:"ca_file"`
	TenantID string `json:"tenant_id"`
}

// runDaemon starts felixd dev in a folder of its own. When the test ends it must stop in order.
func runDaemon(t testing.TB) *daemon {
	t.Helper()
	d := &daemon{t: t, said: &testkit.Tail{}, dir: filepath.Join(t.TempDir(), "data")}
	d.cmd = exec.Command(os.Getenv(binaryVariable), "dev", "--data-dir", d.dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0")
	d.cmd.Stderr = d.said
	out := must(d.cmd.StdoutPipe())(t)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready in ") {
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join(d.dir, "dev.json")))(t), d); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(d.CAFile))(t))
	d.http = &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}}}
	return d
}

func (d *daemon) stop() {
	d.http.CloseIdleConnections()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- d.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			d.t.Errorf("felixd ended with %v\n%s", err, d.said)
		}
	case <-time.After(patience):
		_ = d.cmd.Process.Kill()
		<-done
		d.t.Errorf("felixd does not stop\n%s", d.said)
	}
	if text := d.said.String(); strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
		d.t.Errorf("felixd panicked:\n%s", text)
	}
}

// call makes an API request as the administrator and returns status and body.
func (d *daemon) call(method, path, body string) (int, string) {
	d.t.Helper()
	r := must(http.NewRequest(method, d.API+path, bytes.NewBufferString(body)))(d.t)
	r.Header.Set("Authorization", "Bearer "+d.Admin)
	r.Header.Set("Content-Type", "application/json")
	answer := must(d.http.Do(r))(d.t)
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode, string(must(io.ReadAll(io.LimitReader(answer.Body, 1<<20)))(d.t))
}

// page reads a page of the health port.
func (d *daemon) page(path string) string {
	d.t.Helper()
	answer := must(d.http.Get(d.Health + path))(d.t)
	defer func() { _ = answer.Body.Close() }()
	return string(must(io.ReadAll(io.LimitReader(answer.Body, 4<<20)))(d.t))
}

// files is how many descriptors the process has; -1 where the system does not tell.
func (d *daemon) files() int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	if err != nil {
		return -1
	}
	return len(list)
}
