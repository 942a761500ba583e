package queue

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// daemon is felixd over one data directory, which outlives its processes. Its ports stay the same.
type daemon struct {
	t        testing.TB
	programs string
	dir      string
	env      []string
	args     []string
	cmd      *exec.Cmd
	said     *testkit.Tail // the log of the process that runs
	ended    chan error    // what Wait said
	life     atomic.Int64  // even: that process runs; odd: between two
	known    atomic.Pointer[location]
}

// location is what the running process says of itself. Workers look at it while another one starts.
type location struct {
	Client string `json:"client_addr"`
	Health string `json:"http"`
	Token  string `json:"client_token"`
	CAFile string `json:"ca_file"`
	Tenant string `json:"tenant_id"`

	http *http.Client
}

// newDaemon starts felixd over an empty directory. It is stopped, in order, when the test ends.
func newDaemon(t testing.TB, env ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, programs: programs(t), dir: filepath.Join(t.TempDir(), "data"), env: env}
	d.life.Store(-1)
	d.args = []string{"dev", "--data-dir", d.dir, "--listen", freePort(t, "udp"), "--http", freePort(t, "tcp"), "--api", freePort(t, "tcp")}
	d.start()
	t.Cleanup(func() {
		if d.cmd != nil {
			d.stop()
		}
	})
	return d
}

// freePort is an address that nobody listens on just now.
func freePort(t testing.TB, network string) string {
	t.Helper()
	if network == "udp" {
		c := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
		defer func() { _ = c.Close() }()
		return c.LocalAddr().String()
	}
	l := must(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// start runs felixd and returns when it says that it is ready.
func (d *daemon) start() {
	d.t.Helper()
	d.said, d.ended = &testkit.Tail{}, make(chan error, 1)
	cmd := exec.Command(filepath.Join(d.programs, "felixd"), d.args...)
	cmd.Env = append(os.Environ(), d.env...)
	cmd.Stderr = d.said
	out := must(cmd.StdoutPipe())(d.t)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.cmd = cmd
	lines, ready := bufio.NewScanner(out), false
	for !ready && lines.Scan() {
		ready = strings.HasPrefix(lines.Text(), "ready in ")
	}
	ended := d.ended
	go func() {
		_, _ = io.Copy(io.Discard, out)
		ended <- cmd.Wait()
	}()
	if !ready {
		err := <-ended
		d.cmd = nil
		d.t.Fatalf("felixd did not become ready: %v\n%s", err, d.said)
	}
	at := &location{}
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join(d.dir, "dev.json")))(d.t), at); err != nil {
		d.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(at.CAFile))(d.t))
	at.http = &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}}}
	d.known.Store(at)
	d.life.Add(1)
}

// kill ends the process as it stands.
func (d *daemon) kill() {
	d.t.Helper()
	d.life.Add(1)
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	<-d.ended
	d.cmd = nil
	if text := d.said.String(); strings.Contains(text, "panic:") || strings.Contains(text, "goroutine 1 [") {
		d.t.Errorf("felixd panicked:\n%s", text)
	}
}

// stop ends it in order.
func (d *daemon) stop() {
	d.t.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-d.ended:
		if err != nil {
			d.t.Errorf("felixd ended with %v\n%s", err, d.said)
		}
	case <-time.After(testkit.Patience):
		d.t.Errorf("felixd does not stop\n%s", d.said)
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
	d.cmd = nil
}

// metrics is the page of metrics.
func (d *daemon) metrics() string {
	d.t.Helper()
	at := d.known.Load()
	answer := must(at.http.Get(at.Health + "/metrics"))(d.t)
	defer func() { _ = answer.Body.Close() }()
	return string(must(io.ReadAll(io.LimitReader(answer.Body, 4<<20)))(d.t))
}

// value reads one metric of a page; it has to be there.
func (d *daemon) value(page, name string) (v float64) {
	d.t.Helper()
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &v); err == nil {
				return v
			}
		}
	}
	d.t.Fatalf("there is no metric %s", name)
	return 0
}

// createStream makes a durable stream.
func (d *daemon) createStream(name string, shards int) {
	d.t.Helper()
	cmd := exec.Command(filepath.Join(d.programs, "felixctl"), "stream", "create", name, "--durable", "--shards", fmt.Sprint(shards))
	cmd.Env = append(os.Environ(), "FELIX_CONTEXT_FILE="+filepath.Join(d.dir, "dev.json"))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("create stream: %v: %s", err, out)
	}
}

// dial is a new client of the daemon. The caller closes it.
func (d *daemon) dial(ctx context.Context) (*client.Client, error) {
	at := d.known.Load()
	return client.Connect(ctx, client.Options{
		Addrs: []string{at.Client}, TenantID: at.Tenant, Token: at.Token, CAFile: at.CAFile, DialTimeout: 500 * time.Millisecond, RetryDeadline: 2 * time.Second,
	})
}

// connect is a client of the daemon, as long as the test goes.
func (d *daemon) connect() *client.Client {
	d.t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	c := must(d.dial(ctx))(d.t)
	d.t.Cleanup(func() { hangUp(c) })
	return c
}

// hangUp closes a client whose broker may be gone.
func hangUp(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
