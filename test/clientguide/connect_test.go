package clientguide

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

func connect(ctx context.Context, addr, token, caFile string) error {
	c, err := client.Connect(ctx, client.Options{
		Addrs:    []string{addr}, // felixd dev: 127.0.0.1:5000
		TenantID: "t1",
		Token:    token,
		CAFile:   caFile, // felixd dev: felix-data/ca.pem
	})
	if err != nil {
		return err
	}
	defer c.Close(context.Background())

	return c.CachePut(ctx, "default", "users", "alice", []byte("42"), 0)
}

func TestConnecting(t *testing.T) {
	s := begin(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, s.options.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := connect(s.ctx, s.options.Addrs[0], s.options.Token, file); err != nil {
		t.Error(err)
	}
}

func connectFromEnvironment(ctx context.Context) (*client.Client, error) {
	o, err := client.OptionsFromEnv(client.Options{TenantID: "t1"})
	if err != nil {
		return nil, err // names the variable
	}
	return client.Connect(ctx, o)
}

func TestConnectingFromTheEnvironment(t *testing.T) {
	s := begin(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, s.options.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FELIX_BROKERS", s.options.Addrs[0])
	t.Setenv("FELIX_AUTH_TOKEN", s.options.Token)
	t.Setenv("FELIX_CA_FILE", file)
	c, err := connectFromEnvironment(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(s.ctx); err != nil {
		t.Error(err)
	}
	t.Setenv("FELIX_PUB_CONN_POOL", "many")
	if _, err := connectFromEnvironment(s.ctx); err == nil || !strings.Contains(err.Error(), "FELIX_PUB_CONN_POOL") {
		t.Errorf("a wrong variable: %v", err)
	}
}

func connectWithSource(ctx context.Context, o client.Options, signIn func(context.Context) (string, time.Time, error)) (*client.Client, error) {
	o.Token = ""
	o.TokenSource = client.NewTokenSource(func(ctx context.Context) (client.Token, error) {
		value, expires, err := signIn(ctx)
		return client.Token{Value: value, Expires: expires}, err
	})
	return client.Connect(ctx, o)
}

func TestTokensThatRenewThemselves(t *testing.T) {
	s := begin(t)
	var fetched atomic.Int64
	c, err := connectWithSource(s.ctx, s.options, func(context.Context) (string, time.Time, error) {
		fetched.Add(1)
		return s.options.Token, time.Now().Add(time.Hour), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(s.ctx)
	if err := c.CachePut(s.ctx, "default", "users", "alice", []byte("42"), 0); err != nil {
		t.Error(err)
	}
	if n := fetched.Load(); n != 1 {
		t.Errorf("%d tokens were fetched, want 1 for all streams", n)
	}
}

func watchConnections(o client.Options, logf func(string, ...any)) client.Options {
	o.Hooks = client.Hooks{
		Connected:    func(c client.ConnectionInfo) { logf("connected to %s", c.Addr) },
		Disconnected: func(c client.ConnectionInfo, err error) { logf("lost %s: %v", c.Addr, err) },
		Retrying:     func(r client.Retry) { logf("%s: try %d failed: %v; again in %v", r.Op, r.Try, r.Err, r.Pause) },
	}
	return o
}

func TestWatchingAClient(t *testing.T) {
	s := begin(t)
	lines := make(chan string, 16)
	c, err := client.Connect(s.ctx, watchConnections(s.options, func(format string, args ...any) { lines <- fmt.Sprintf(format, args...) }))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := <-lines, "connected to "+s.options.Addrs[0]; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
	if _, err := c.Publish(s.ctx, "default", "orders", []byte("x")); err != nil {
		t.Error(err)
	}
	n := c.Stats()
	if n.PublishRecords != 1 || n.Connects != 1 {
		t.Errorf("counted %+v", n)
	}
	if err := c.Close(s.ctx); err != nil {
		t.Error(err)
	}
	<-lines
}
