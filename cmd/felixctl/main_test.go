package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/internal/effort"
)

// mainArgs is the environment variable of the arguments with which a process that a test starts is felixctl itself.
const mainArgs = "FELIXCTL_TEST_MAIN"

func TestMain(m *testing.M) {
	if args := os.Getenv(mainArgs); args != "" {
		os.Args = append(os.Args[:1], filepath.SplitList(args)...)
		main()
	}
	goleak.VerifyTestMain(effort.Settled(m), goleak.Cleanup(func(code int) {
		if felixdFolder != "" {
			_ = os.RemoveAll(felixdFolder)
		}
		os.Exit(code)
	}))
}

// felixdFolder is where buildFelixd puts the program, once somebody has called it.
var felixdFolder string

// buildFelixd builds felixd from this source, once for all tests.
var buildFelixd = sync.OnceValues(func() (program string, err error) {
	if felixdFolder, err = os.MkdirTemp("", "felixctl-test"); err != nil {
		return "", err
	}
	program = filepath.Join(felixdFolder, "felixd")
	if out, err := exec.Command("go", "build", "-o", program, "../felixd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build felixd: %w\n%s", err, out)
	}
	return program, nil
})

// patientDisk gives a felixd that the test starts time for its syncs: on a slow disk an outcome that is not known soon is none that the test is about.
func patientDisk(t *testing.T) {
	t.Helper()
	t.Setenv("FELIX_ACK_WAIT_TIMEOUT_MS", fmt.Sprint(patience.Milliseconds()))
}

// patience is how long a test waits for something that should happen at once.
const patience = 60 * time.Second

// output is standard output or error: written by the command while the test looks on.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	bells []chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, bell := range o.bells {
		close(bell)
	}
	o.bells = nil
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns when the output contains a text.
func (o *output) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		bell := make(chan struct{})
		o.bells = append(o.bells, bell)
		there := strings.Contains(o.text.String(), want)
		o.mu.Unlock()
		if there {
			return
		}
		select {
		case <-bell:
		case <-deadline:
			t.Fatalf("%q was not written; there is %q", want, o.String())
		}
	}
}

// cli is one felixctl in a folder of its own.
type cli struct {
	t              *testing.T
	sys            system
	stdout, stderr *output
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	c := &cli{t: t, stdout: new(output), stderr: new(output)}
	c.sys = system{stdin: strings.NewReader(""), stdout: c.stdout, stderr: c.stderr,
		getenv: func(string) string { return "" }, workDir: t.TempDir()}
	return c
}

// at writes the file a development broker leaves.
func (c *cli) at(b *testbroker.Broker, api string) *cli {
	c.t.Helper()
	dir := filepath.Join(c.sys.workDir, "felix-data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), b.CA().CertPEM, 0o600); err != nil {
		c.t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{
		"client_addr": b.Addr(), "control_plane": api, "http": "http://127.0.0.1:1", "tenant_id": "t1", "namespace": "default",
		"client_token": testbroker.Token, "admin_token": adminToken, "ca_file": "felix-data/ca.pem",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dev.json"), data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// on makes the outputs terminals, or not.
func (c *cli) onTerminal() *cli {
	c.sys.stdinTerminal, c.sys.stdoutTerminal, c.sys.stderrTerminal = true, true, true
	return c
}

func (c *cli) input(text string) *cli {
	c.sys.stdin = strings.NewReader(text)
	return c
}

// run runs a command to its end and checks the exit code. It returns what this command wrote to standard output.
func (c *cli) run(want int, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before := len(c.stdout.String())
	if code := run(ctx, args, c.sys); code != want {
		c.t.Fatalf("felixctl %s: exit code %d, want %d; standard error: %s", strings.Join(args, " "), code, want, c.stderr)
	}
	return c.stdout.String()[before:]
}

// start runs a command in the background. wait returns its exit code; stop interrupts it first.
func (c *cli) start(args ...string) (stop, wait func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() { code <- run(ctx, args, c.sys) }()
	wait = sync.OnceValue(func() int {
		defer cancel()
		select {
		case got := <-code:
			return got
		case <-time.After(patience):
			c.t.Error("the command did not end")
			return -1
		}
	})
	stop = func() int {
		cancel()
		return wait()
	}
	c.t.Cleanup(func() { stop() })
	return stop, wait
}

func newBroker(t *testing.T) *testbroker.Broker {
	return testbroker.New(t, testbroker.Options{
		Streams: map[string]uint32{"default/orders": 1, "default/wide": 4}, Caches: map[string]uint32{"default/c": 1, "default/wide": 2}, Durable: true,
	})
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func wantContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Fatalf("%q does not contain %q", text, part)
		}
	}
}
