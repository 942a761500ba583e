package crash

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// threads is how many threads the daemon has.
func (d *daemon) threads() int {
	d.t.Helper()
	f := must(os.Open(fmt.Sprintf("/proc/%d/status", d.Pid())))(d.t)
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
	folder := fmt.Sprintf("/proc/%d/fd", d.Pid())
	for _, e := range must(os.ReadDir(folder))(d.t) {
		name, err := os.Readlink(filepath.Join(folder, e.Name()))
		if err == nil && strings.HasPrefix(name, filepath.Join(d.Dir, "log")+"/") && filepath.Base(name) != "LOCK" {
			open = append(open, name)
		}
	}
	return open
}

func TestThreadsAndFilesOfADaemonAreSeen(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.CreateStream("seen", 1)
	w := wideStreams{d: d, client: d.Connect()}
	w.publishTo("seen", nil)
	if n, open := d.threads(), d.logFiles(); n < 2 || len(open) == 0 {
		t.Errorf("%d threads and the files %q, just after a publish", n, open)
	}
}
