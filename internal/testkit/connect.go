package testkit

import (
	"errors"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// Connect is a client of a broker that runs. A busy machine may hold up a handshake for longer than one dial may take by default: then another
// is dialed. Options.DialTimeout is left alone for that, so that the client dials again soon where a test takes its broker away.
func Connect(t testing.TB, o client.Options) *client.Client {
	t.Helper()
	ctx, cancel := Within()
	defer cancel()
	for {
		c, err := client.Connect(ctx, o)
		switch {
		case err == nil:
			return c
		case !errors.Is(err, client.ErrUnreachable) || ctx.Err() != nil:
			t.Fatal(err)
		}
		After(10 * time.Millisecond)
	}
}
