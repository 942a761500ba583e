package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Programs are felixd and felixctl as they are delivered, without instrumentation, for all tests of a package: built once one needs them. The
// zero value is ready to use. TestMain calls Remove in the end.
type Programs struct {
	mu  sync.Mutex
	dir string // "": not built
}

// Path is where felixd or felixctl is.
func (p *Programs) Path(t testing.TB, name string) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		dir := Must(os.MkdirTemp("", "felixd"))(t)
		out, err := exec.Command("go", "build", "-o", dir, "github.com/felixd/felixd/cmd/felixd", "github.com/felixd/felixd/cmd/felixctl").CombinedOutput()
		if err != nil {
			_ = os.RemoveAll(dir)
			t.Fatal(fmt.Errorf("build felixd: %w\n%s", err, out))
		}
		p.dir = dir
	}
	return filepath.Join(p.dir, name)
}

// Remove removes what was built, if anything.
func (p *Programs) Remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = os.RemoveAll(p.dir)
	p.dir = ""
}
