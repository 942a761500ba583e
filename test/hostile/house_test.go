package hostile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// house is a broker's process, seen from a test.
type house struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	said  *tail
	begun

	mu    sync.Mutex // one command at a time
	ended bool
}

// tail keeps what a process complains about, up to a bound.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text.Len() < 64<<10 {
		b.text.Write(p)
	}
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// open starts a broker. When the test ends, the broker is stopped and must end in order, with nothing left over, having failed
// nowhere in between.
func open(t testing.TB, s setup) *house {
	t.Helper()
	config := must(json.Marshal(s))(t)
	h := &house{t: t, said: &tail{}, cmd: exec.Command(must(os.Executable())(t))}
	h.cmd.Env = append(os.Environ(), roleVariable+"="+string(config))
	h.cmd.Stderr = h.said
	h.in = must(h.cmd.StdinPipe())(t)
	out := must(h.cmd.StdoutPipe())(t)
	h.lines = bufio.NewScanner(out)
	h.lines.Buffer(nil, 1<<20)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	h.read(&h.begun)
	return h
}

func (h *house) read(into any) {
	h.t.Helper()
	if !h.lines.Scan() {
		h.t.Fatalf("the broker's process is gone: %v\n%s", h.lines.Err(), h.said)
	}
	if err := json.Unmarshal(h.lines.Bytes(), into); err != nil {
		h.t.Fatalf("the broker said %q: %v", h.lines.Text(), err)
	}
}

func (h *house) command(text string) (s state) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := io.WriteString(h.in, text+"\n"); err != nil {
		h.t.Fatalf("the broker's process takes no commands: %v\n%s", err, h.said)
	}
	h.read(&s)
	return s
}

func (h *house) look() state                { return h.command("look") }
func (h *house) collect() state             { return h.command("collect") }
func (h *house) metric(name string) float64 { return h.look().Metrics[name] }

// counts waits until a metric reaches a value.
func (h *house) counts(name string, want float64) {
	h.t.Helper()
	var got float64
	if !eventually(h.t, name+" reaches its value", func() bool { got = h.metric(name); return got >= want }) {
		h.t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// close stops the broker and requires that it was whole to the end.
func (h *house) close() {
	if h.ended {
		return
	}
	h.ended = true
	for _, name := range []string{"felix_publish_inflight_bytes", "felix_frame_bytes", "felix_partial_frame_bytes"} {
		if !h.t.Failed() {
			eventually(h.t, name+" is back to 0 once all clients have gone", func() bool { return h.metric(name) == 0 })
		}
	}
	for name, n := range h.look().Events {
		if strings.Contains(name, "panic") || strings.Contains(name, "failed") {
			h.t.Errorf("the broker reported %s %d times", name, n)
		}
	}
	_ = h.in.Close()
	done := make(chan error, 1)
	go func() { done <- h.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			h.t.Errorf("the broker's process ended with %v\n%s", err, h.said)
		}
	case <-time.After(patience):
		_ = h.cmd.Process.Kill()
		<-done
		h.t.Errorf("the broker does not stop\n%s", h.said)
	}
}

// kill ends the broker at once, as kill -9 does.
func (h *house) kill() {
	h.ended = true
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}
