package crash

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/testkit"
)

// threads is how many threads the daemon has.
func (d *daemon) threads() int {
	d.t.Helper()
	f := must(os.Open(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid)))(d.t)
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "Threads:"); ok {
			return must(strconv.Atoi(strings.TrimSpace(text)))(d.t)
		}
	}
	d.t.Fatal("the system does not say how many threads there are")
	return 0
}

// logFiles is which files below its folder of logs the daemon holds open, without the lock.
func (d *daemon) logFiles() (open []string) {
	d.t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid)
	for _, e := range must(os.ReadDir(folder))(d.t) {
		name, err := os.Readlink(filepath.Join(folder, e.Name()))
		if err == nil && strings.HasPrefix(name, filepath.Join(d.dir, "log")+"/") && filepath.Base(name) != "LOCK" {
			open = append(open, name)
		}
	}
	return open
}

// footprint is what a daemon holds when it has nothing to do.
type footprint struct{ memory, goroutines float64 }

// footprint reads it: heap and stacks just after a collection, as far as that can be met. The daemon has to collect often for it (GOGC).
func (d *daemon) footprint() (f footprint) {
	d.t.Helper()
	const collected = "go_gc_duration_seconds_count"
	first := value(d.metrics(), collected)
	testkit.Eventually(d.t, "garbage is collected", func() bool { // reading the page makes garbage
		page := d.metrics()
		memory := value(page, "go_memstats_heap_alloc_bytes") + value(page, "go_memstats_stack_inuse_bytes")
		if now := value(page, collected); now > first && (f.memory == 0 || memory < f.memory) {
			f = footprint{memory, value(page, "go_goroutines")}
		}
		return value(page, collected) >= first+3
	})
	return f
}

func TestThreadsAndFilesOfADaemonAreSeen(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.createStream("seen", 1)
	w := wideStreams{d: d, client: d.connect()}
	w.publishTo("seen", nil)
	if n, open := d.threads(), d.logFiles(); n < 2 || len(open) == 0 {
		t.Errorf("%d threads and the files %q, just after a publish", n, open)
	}
}
