package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// binaryVariable tells the tests where the daemon is that TestMain has built.
const binaryVariable = "HOSTILE_FELIXD"

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// raceEnabled says that the tests and their broker are instrumented: several times slower, with more memory.
const raceEnabled = testkit.Raced

func TestMain(m *testing.M) {
	testkit.Main(hooks())
	if text, ok := os.LookupEnv(attackerVariable); ok {
		os.Exit(serveAttacker(text, os.Stdin))
	}
	dir, err := buildDaemon()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(effort.Settled(m), goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// buildDaemon builds felixd once for all tests, as it is delivered: without instrumentation.
func buildDaemon() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "hostile"); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "felixd")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/felixd/felixd/cmd/felixd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build felixd: %w\n%s", err, out)
	}
	return dir, os.Setenv(binaryVariable, bin)
}

func must[T any](v T, err error) func(testing.TB) T { return testkit.Must(v, err) }

func eventually(t testing.TB, what string, cond func() bool) bool {
	t.Helper()
	return testkit.Eventually(t, what, cond)
}

func size(name string) int { return testkit.Size(name) }

// raced is n, or few at a landing under the race detector.
func raced(n, few int) int {
	if raceEnabled && !effort.Full() {
		return few
	}
	return n
}

// aside lets a test run beside others at a landing. In full effort it has the machine to itself, since times are judged there.
func aside(t *testing.T) {
	t.Helper()
	if !effort.Full() {
		t.Parallel()
	}
}

func after(d time.Duration) { testkit.After(d) }

func percentile(times []time.Duration, p int) time.Duration { return testkit.Percentile(times, p) }

func median(times []time.Duration) time.Duration { return testkit.Median(times) }
