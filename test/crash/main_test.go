// Package crash kills felixd and lies to it about its disk.
package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/testkit"
)

// folder is where TestMain has built felixd and felixctl.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(folder)
		os.Exit(code)
	}))
}

// build builds the programs once for all tests, as they are delivered: without instrumentation.
func build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "crash"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir, "github.com/felixd/felixd/cmd/felixd", "github.com/felixd/felixd/cmd/felixctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build felixd: %w\n%s", err, out)
	}
	return dir, nil
}

func program(name string) string { return filepath.Join(folder, name) }

func must[T any](v T, err error) func(testing.TB) T { return testkit.Must(v, err) }

func size(name string) int { return testkit.Size(name) }
