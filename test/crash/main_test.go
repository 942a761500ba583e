// Package crash kills felixd and lies to it about its disk.
package crash

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// programs are what the tests with a daemon run.
var programs testkit.Programs

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(effort.Settled(m), goleak.Cleanup(func(code int) {
		programs.Remove()
		os.Exit(code)
	}))
}

func must[T any](v T, err error) func(testing.TB) T { return testkit.Must(v, err) }

func size(name string) int { return testkit.Size(name) }
