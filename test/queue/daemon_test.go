package queue

import (
	"context"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// daemon is felixd as it is delivered.
type daemon struct {
	*testkit.Daemon
	t testing.TB
}

func newDaemon(t testing.TB, env ...string) *daemon {
	t.Helper()
	return &daemon{testkit.NewDaemon(t, &programs, env...), t}
}

// value reads one metric of a page; it has to be there.
func (d *daemon) value(page, name string) float64 {
	d.t.Helper()
	v, found := testkit.Metric(page, name)
	if !found {
		d.t.Fatalf("there is no metric %s", name)
	}
	return v
}

// dial is a new client of the daemon, which may be about to start. The caller closes it.
func (d *daemon) dial(ctx context.Context) (*client.Client, error) {
	o := d.Client()
	o.DialTimeout, o.RetryDeadline = 10*time.Second, 2*time.Second
	return client.Connect(ctx, o)
}
