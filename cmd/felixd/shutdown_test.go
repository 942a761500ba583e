package main

import (
	"context"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// hung starts a daemon with a client that subscribes and reads nothing, however much waits for it.
func hung(t *testing.T, more ...string) (r *running, c *client.Client) {
	t.Helper()
	r = start(t, t.TempDir(), more...)
	c, err := client.Connect(t.Context(), client.Options{
		Addrs: []string{r.dev.ClientAddr}, TenantID: r.dev.TenantID, Token: r.dev.ClientToken, CAFile: r.dev.CAFile,
		EventConnRecvWindow: 64 << 10, EventStreamRecvWindow: 64 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(t.Context(), devNamespace, devStreams[0], client.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sub.Close() })
	p := r.connect(t)
	defer closeClient(p)
	for range 4 { // what it has room for, and more
		if _, err := p.Publish(t.Context(), devNamespace, devStreams[0], make([]byte, 256<<10)); err != nil {
			t.Fatal(err)
		}
	}
	return r, c
}

// gone closes a client at once.
func gone(c *client.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ctx)
}

// A drain that waits for a client takes the daemon out of rotation and leaves it alive; once the client is gone it ends in order.
//
// mission 394: while it drains.
func TestADaemonThatDrainsIsLiveAndNotReady(t *testing.T) {
	t.Parallel()
	r, c := hung(t, "--drain-timeout-ms", "600000")
	r.signals <- syscall.SIGTERM
	r.out.wait(t, "draining, at most")
	if code, body := r.get(t, r.dev.HTTP+"/live"); code != http.StatusOK || strings.TrimSpace(body) != "ok" {
		t.Errorf("/live is %d %q", code, body)
	}
	if code, body := r.get(t, r.dev.HTTP+"/ready"); code != http.StatusServiceUnavailable || strings.TrimSpace(body) != "draining" {
		t.Errorf("/ready is %d %q", code, body)
	}
	select {
	case code := <-r.code:
		t.Fatalf("it has ended with code %d before what it waits for has", code)
	default:
	}
	gone(c)
	if code := r.wait(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, r.err)
	}
}

// A client that reads nothing keeps nobody from stopping: the drain ends with its bound, and the last words say what was cut off.
//
// mission 395
func TestADrainEndsWithItsBoundWhateverAClientDoes(t *testing.T) {
	t.Parallel()
	const bound = 100 * time.Millisecond
	r, c := hung(t, "--drain-timeout-ms", "100")
	began := time.Now()
	if code := r.stop(t); code != exitDrain {
		t.Errorf("exit code %d, want %d", code, exitDrain)
	}
	if took := time.Since(began); took < bound {
		t.Errorf("it took %v: nothing held the drain up", took)
	}
	if said := r.err.String(); !strings.Contains(said, "drain sessions") || !strings.Contains(said, "what was left was cut off") {
		t.Errorf("it does not say what was cut off: %s", said)
	}
	gone(c)
}
