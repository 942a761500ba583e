// Package queue proves the work queues of a whole broker. The campaign kills felixd, as it is delivered, under workers that crash, stall,
// nack and ack; the cases by id run on the real node behind real QUIC, with real clients, and a disk in memory whose power can be cut and
// whose calls can be made to fail.
package queue

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		built.mu.Lock()
		_ = os.RemoveAll(built.dir)
		os.Exit(code)
	}))
}

// built is where the programs are, once a test has needed them.
var built struct {
	mu  sync.Mutex
	dir string
}

// programs builds felixd and felixctl once for all tests, as they are delivered: without instrumentation.
func programs(t testing.TB) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir != "" {
		return built.dir
	}
	dir := must(os.MkdirTemp("", "queue"))(t)
	out, err := exec.Command("go", "build", "-o", dir, "github.com/felixd/felixd/cmd/felixd", "github.com/felixd/felixd/cmd/felixctl").CombinedOutput()
	if err != nil {
		_ = os.RemoveAll(dir)
		t.Fatal(fmt.Errorf("build felixd: %w\n%s", err, out))
	}
	built.dir = dir
	return dir
}
