package crash

import (
	"testing"

	"github.com/felixd/felixd/internal/testkit"
)

const namespace = "default"

// daemon is felixd as it is delivered.
type daemon struct {
	*testkit.Daemon
	t testing.TB
}

func newDaemon(t testing.TB, env ...string) *daemon {
	t.Helper()
	return &daemon{testkit.NewDaemon(t, &programs, env...), t}
}
