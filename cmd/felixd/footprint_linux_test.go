package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
)

// process is a felixd in a process of its own, which is this program.
type process struct {
	cmd *exec.Cmd
	dev devContext
}

func startProcess(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{cmd: exec.Command(os.Args[0], "dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0")}
	p.cmd.Env = append(os.Environ(), daemonVariable+"=1")
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("felixd ended with %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready in ") {
	}
	t.Logf("ready %d ms after the start of the process", time.Since(began).Milliseconds())
	text, err := os.ReadFile(filepath.Join(dir, devFile))
	if err == nil {
		err = json.Unmarshal(text, &p.dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rss is the resident memory in KiB.
func (p *process) rss(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// cpu is the processor time used so far, in clock ticks of 10 ms.
func (p *process) cpu(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return user + system
}

func TestAnIdleDaemonNeedsLittleAndAThousandSubscriptionsLittleMore(t *testing.T) {
	t.Parallel()
	times := 1 // what is allowed: the race detector has memory and work of its own
	if effort.Raced {
		times = 10
	}
	p := startProcess(t)
	if kib := p.rss(t); kib > times*60<<10 {
		t.Errorf("%d KiB resident when idle, at most %d MiB allowed", kib, times*60)
	} else {
		t.Logf("idle: %d KiB resident", kib)
	}
	// Idle CPU is a quantity over time: this waits for time to pass, not for an event. What is left of the start is in some windows, and what is
	// done all the time in all.
	const window, tries = 2 * time.Second, 5
	ticks := 0
	for range tries {
		before := p.cpu(t)
		<-time.After(window)
		if ticks = p.cpu(t) - before; ticks <= 2*times {
			break
		}
	}
	t.Logf("idle: %d0 ms of CPU in %s", ticks, window)
	if ticks > 2*times { // 1 % of 2 s
		t.Errorf("%d0 ms of CPU in %s of idleness, at most %d %% allowed", ticks, window, times)
	}
	c, err := client.Connect(t.Context(), client.Options{Addrs: []string{p.dev.ClientAddr}, TenantID: p.dev.TenantID, Token: p.dev.ClientToken, CAFile: p.dev.CAFile})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := c.Subscribe(t.Context(), "default", "orders", client.SubscribeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if kib := p.rss(t); kib > times*80<<10 {
		t.Errorf("%d KiB resident with 1000 idle subscriptions, at most %d MiB allowed", kib, times*80)
	} else {
		t.Logf("1000 idle subscriptions: %d KiB resident", kib)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
