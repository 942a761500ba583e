package testkit

import (
	"bufio"
	"context"
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// Daemon is felixd over one data directory, which outlives its processes. Its ports stay the same. One goroutine starts and ends it; others may
// look for it meanwhile.
type Daemon struct {
	Dir string   // of its data
	Env []string // NAME=value, added to the environment of the next process

	t     testing.TB
	built *Programs
	args  []string
	cmd   *exec.Cmd  // nil: no process runs
	said  *Tail      // the log of the process that runs, or ran last
	ended chan error // what Wait said
	life  atomic.Int64
	known atomic.Pointer[location]
}

// location is what the running process says of itself.
type location struct {
	Client string `json:"client_addr"`
	Health string `json:"http"`
	Token  string `json:"client_token"`
	CAFile string `json:"ca_file"`
	Tenant string `json:"tenant_id"`

	http *http.Client
}

// NewDaemon starts felixd over an empty directory. It is stopped, in order, when the test ends.
func NewDaemon(t testing.TB, built *Programs, env ...string) *Daemon {
	t.Helper()
	d := &Daemon{t: t, built: built, Dir: filepath.Join(t.TempDir(), "data"), Env: env}
	d.life.Store(-1)
	d.args = []string{"dev", "--data-dir", d.Dir, "--listen", FreePort(t, "udp"), "--http", FreePort(t, "tcp"), "--api", FreePort(t, "tcp")}
	d.Start()
	t.Cleanup(func() {
		if d.cmd != nil {
			d.Stop()
		}
	})
	return d
}

// Start runs felixd and returns how long it took until it said that it is ready.
func (d *Daemon) Start() time.Duration {
	d.t.Helper()
	program := d.built.Path(d.t, "felixd")
	d.said, d.ended = &Tail{}, make(chan error, 1)
	cmd := exec.Command(program, d.args...)
	cmd.Env = append(append(os.Environ(), patientDisk), d.Env...)
	cmd.Stderr = d.said
	out := Must(cmd.StdoutPipe())(d.t)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.cmd = cmd
	lines, ready := bufio.NewScanner(out), false
	for !ready && lines.Scan() {
		ready = strings.HasPrefix(lines.Text(), "ready in ")
	}
	took, ended := time.Since(began), d.ended
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
	if err := json.Unmarshal(Must(os.ReadFile(d.contextFile()))(d.t), at); err != nil {
		d.t.Fatal(err)
	}
	at.http = &http.Client{Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authorities(d.t, at.CAFile)}}}
	d.known.Store(at)
	d.life.Add(1)
	return took
}

func authorities(t testing.TB, file string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(Must(os.ReadFile(file))(t))
	return pool
}

// patientDisk is how long a publish waits for a sync, in milliseconds: a slow disk leaves no outcome unknown that a test could know.
var patientDisk = fmt.Sprintf("FELIX_ACK_WAIT_TIMEOUT_MS=%d", Patience.Milliseconds())

// contextFile is where felixd writes for felixctl how to find it.
func (d *Daemon) contextFile() string { return filepath.Join(d.Dir, "dev.json") }

// Life is even while a process runs, and odd between two; it only grows.
func (d *Daemon) Life() int64 { return d.life.Load() }

// Kill ends the process as it stands.
func (d *Daemon) Kill() {
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

// Stop ends it in order.
func (d *Daemon) Stop() {
	d.t.Helper()
	d.life.Add(1)
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-d.ended:
		if err != nil {
			d.t.Errorf("felixd ended with %v\n%s", err, d.said)
		}
	case <-time.After(Patience):
		d.t.Errorf("felixd does not stop\n%s", d.said)
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
	d.cmd = nil
}

// Said is what the process that runs, or ran last, has logged.
func (d *Daemon) Said() string { return d.said.String() }

// Pid is the number of the process that runs.
func (d *Daemon) Pid() int { return d.cmd.Process.Pid }

// Metrics is the page of metrics.
func (d *Daemon) Metrics() string {
	d.t.Helper()
	at := d.known.Load()
	answer := Must(at.http.Get(at.Health + "/metrics"))(d.t)
	defer func() { _ = answer.Body.Close() }()
	return string(Must(io.ReadAll(io.LimitReader(answer.Body, 4<<20)))(d.t))
}

// Metric reads one metric of a page; found is false where the page has none of that name and labels.
func Metric(page, name string) (v float64, found bool) {
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &v); err == nil {
				return v, true
			}
		}
	}
	return 0, false
}

// Ctl is a felixctl for the daemon that does not run yet.
func (d *Daemon) Ctl(args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := exec.Command(d.built.Path(d.t, "felixctl"), args...)
	cmd.Env = append(os.Environ(), "FELIX_CONTEXT_FILE="+d.contextFile())
	return cmd
}

// CreateStream makes a durable stream.
func (d *Daemon) CreateStream(name string, shards int) {
	d.t.Helper()
	if out, err := d.Ctl("stream", "create", name, "--durable", "--shards", fmt.Sprint(shards)).CombinedOutput(); err != nil {
		d.t.Fatalf("create stream: %v: %s", err, out)
	}
}

// Client returns options that connect to the daemon; everything else is at its default.
func (d *Daemon) Client() client.Options {
	at := d.known.Load()
	return client.Options{Addrs: []string{at.Client}, TenantID: at.Tenant, Token: at.Token, CAFile: at.CAFile}
}

// dialPatience is how long one dial may take: a busy machine needs more than the default for a handshake.
const dialPatience = 10 * time.Second

// Connect is a client of the daemon, as long as the test goes.
func (d *Daemon) Connect(change ...func(*client.Options)) *client.Client {
	d.t.Helper()
	o := d.Client()
	o.DialTimeout = dialPatience
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := Within()
	defer cancel()
	c := Must(client.Connect(ctx, o))(d.t)
	d.t.Cleanup(func() { HangUp(c) })
	return c
}

// HangUp closes a client whose broker may be gone.
func HangUp(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
