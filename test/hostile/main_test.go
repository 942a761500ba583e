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
)

const (
	// roleVariable makes the test binary be the broker under attack instead: a process of its own, whose memory, goroutines and
	// exit code are nobody else's. With -race the broker is instrumented too.
	roleVariable = "HOSTILE_BROKER"
	// binaryVariable tells the tests where the daemon is that TestMain has built.
	binaryVariable = "HOSTILE_FELIXD"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(roleVariable); ok {
		os.Exit(serveBroker(text, os.Stdin, os.Stdout))
	}
	if text, ok := os.LookupEnv(attackerVariable); ok {
		os.Exit(serveAttacker(text, os.Stdin))
	}
	dir, err := buildDaemon()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
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

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eventually looks until cond holds. It is for effects that announce themselves nowhere.
func eventually(t testing.TB, what string, cond func() bool) bool {
	t.Helper()
	timeout, look := time.NewTimer(patience), time.NewTicker(20*time.Millisecond)
	defer timeout.Stop()
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-timeout.C:
			t.Errorf("it never happened: %s", what)
			return false
		}
	}
	return true
}

// size is how much of a campaign to run: a fifth of the table's at a landing with -race -short, where all is five times slower.
func size(name string) int {
	n := effort.Size(name)
	if raceEnabled && testing.Short() && !effort.Full() {
		return max(1, n/5)
	}
	return n
}

// after waits for time to pass, where what is measured is a quantity over time.
func after(d time.Duration) { <-time.After(d) }
