package crash

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// felixd is one file that needs nothing beside it: no library, no shell, no certificates, time zones or names of users. At a landing only what it
// is made of is looked at: nothing but the standard library has C in it, and that does without. In full it is built so, and run and used where
// there is nothing else.
//
// mission 396
func TestADaemonRunsInAnEmptyContainer(t *testing.T) {
	const program = "github.com/felixd/felixd/cmd/felixd"
	list := exec.Command("go", "list", "-deps", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}", program)
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	for _, name := range strings.Fields(string(must(list.Output())(t))) {
		if !slices.Contains([]string{"net", "os/user", "runtime/cgo"}, name) {
			t.Errorf("%s has C in it", name)
		}
	}
	if !effort.Full() {
		return
	}
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "felixd"), program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build felixd: %v\n%s", err, out)
	}
	static(t, filepath.Join(root, "felixd"))

	said := &testkit.Tail{}
	cmd := exec.Command("/felixd", "dev", "--data-dir", "/data", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0")
	cmd.Dir, cmd.Env, cmd.Stderr = "/", []string{"FELIX_LOG_LEVEL=info"}, said
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: root, Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EACCES) {
		t.Fatalf("the empty container needs a user namespace, which nobody may make here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	lines, ready := bufio.NewScanner(out), false
	for !ready && lines.Scan() {
		ready = strings.HasPrefix(lines.Text(), "ready in ")
	}
	go func() {
		for lines.Scan() { // it must not be held up by what it says
		}
		ended <- cmd.Wait()
	}()
	if !ready {
		t.Fatalf("felixd did not become ready: %v\n%s", <-ended, said)
	}
	used(t, root)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v\n%s", err, said)
	}
}

// static fails the test if a program asks for a loader or a library.
func static(t *testing.T, name string) {
	t.Helper()
	f := must(elf.Open(name))(t)
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s asks for a loader", filepath.Base(name))
		}
	}
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("%s asks for %q", filepath.Base(name), libraries)
	}
}

// used publishes to a daemon whose files are below root, and reads what a cache was given.
func used(t *testing.T, root string) {
	t.Helper()
	var at struct {
		Client string `json:"client_addr"`
		Token  string `json:"client_token"`
		CAFile string `json:"ca_file"`
		Tenant string `json:"tenant_id"`
	}
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join(root, "data", "dev.json")))(t), &at); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := testkit.Within()
	defer cancel()
	o := client.Options{Addrs: []string{at.Client}, TenantID: at.Tenant, Token: at.Token, CAFile: filepath.Join(root, at.CAFile)}
	c := must(client.Connect(ctx, o))(t)
	defer testkit.HangUp(c)
	if _, err := c.Publish(ctx, "default", "orders", []byte("x")); err != nil {
		t.Error(err)
	}
	if err := c.CachePut(ctx, "default", "users", "k", []byte("v"), 0); err != nil {
		t.Error(err)
	}
	if v, found, err := c.CacheGet(ctx, "default", "users", "k"); err != nil || !found || string(v) != "v" {
		t.Errorf("the cache has %q, %v, %v", v, found, err)
	}
}
