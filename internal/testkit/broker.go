package testkit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// Broker is a broker's process, seen from a test. Its methods may be called from several goroutines; they fail the test of
// Start when the process is gone.
type Broker struct {
	Place

	t      testing.TB
	breaks bool
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  *bufio.Scanner
	said   *Tail

	mu    sync.Mutex // one command at a time
	ended bool
}

// Start starts a broker. When the test ends, the broker is stopped and must end in order, with nothing left over, having failed
// nowhere in between.
func Start(t testing.TB, s Setup) *Broker {
	t.Helper()
	config := Must(json.Marshal(s))(t)
	b := &Broker{t: t, breaks: s.Breaks, said: &Tail{}, cmd: exec.Command(Must(os.Executable())(t))}
	b.cmd.Env = append(os.Environ(), roleVariable+"="+string(config))
	if s.MemoryLimit > 0 {
		b.cmd.Env = append(b.cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", s.MemoryLimit))
	}
	b.cmd.Stderr = b.said
	b.in = Must(b.cmd.StdinPipe())(t)
	out := Must(b.cmd.StdoutPipe())(t)
	b.lines = bufio.NewScanner(out)
	b.lines.Buffer(nil, lineMax)
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	b.read(&b.Place)
	return b
}

func (b *Broker) read(into any) {
	b.t.Helper()
	if !b.lines.Scan() {
		b.t.Fatalf("the broker's process is gone: %v\n%s", b.lines.Err(), b.said)
	}
	if err := json.Unmarshal(b.lines.Bytes(), into); err != nil {
		b.t.Fatalf("the broker said %q: %v", b.lines.Text(), err)
	}
}

// Command has one command carried out and returns what the process holds then.
func (b *Broker) Command(text string) (s State) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := io.WriteString(b.in, text+"\n"); err != nil {
		b.t.Fatalf("the broker's process takes no commands: %v\n%s", err, b.said)
	}
	b.read(&s)
	if s.Problem != "" {
		b.t.Errorf("%s: %s", text, s.Problem)
	}
	return s
}

func (b *Broker) order(word string, argument any) State {
	b.t.Helper()
	return b.Command(word + " " + string(Must(json.Marshal(argument))(b.t)))
}

// Look is what the process holds now.
func (b *Broker) Look() State { b.t.Helper(); return b.Command(wordLook) }

// Collect is what it holds after a forced collection.
func (b *Broker) Collect() State { b.t.Helper(); return b.Command(wordCollect) }

// Fault breaks an actor on purpose, or heals it.
func (b *Broker) Fault(f Fault) State { b.t.Helper(); return b.order(wordFault, f) }

// Assign makes the broker host these resources and no others; it returns when that is so.
func (b *Broker) Assign(all []Resource) State { b.t.Helper(); return b.order(wordAssign, all) }

// Drain lets the broker finish what is open, as before an orderly stop, and returns when nothing is left. It serves nobody then.
func (b *Broker) Drain() State { b.t.Helper(); return b.Command(wordDrain) }

// Metric is one metric now, see State.Metrics.
func (b *Broker) Metric(name string) float64 { b.t.Helper(); return b.Look().Metrics[name] }

// Counts waits until a metric reaches a value.
func (b *Broker) Counts(name string, want float64) {
	b.t.Helper()
	var got float64
	if !Eventually(b.t, name+" reaches its value", func() bool { got = b.Metric(name); return got >= want }) {
		b.t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// Client makes a client of the broker, with the options changed as given. It is closed when the test ends.
func (b *Broker) Client(t testing.TB, change ...func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{Addrs: []string{b.Addr}, TenantID: Tenant, Token: Token, CAPEM: []byte(b.CA)}
	for _, f := range change {
		f(&o)
	}
	c := Connect(t, o)
	t.Cleanup(func() {
		ctx, cancel := Within()
		defer cancel()
		_ = c.Close(ctx) // what was not answered is the business of who asked
	})
	return c
}

// Stop stops the broker in order and requires that it was whole to the end. After a Stop or a Kill it does nothing.
func (b *Broker) Stop() {
	if b.ended {
		return
	}
	b.ended = true
	for _, name := range []string{"felix_publish_inflight_bytes", "felix_frame_bytes", "felix_partial_frame_bytes"} {
		if !b.t.Failed() {
			Eventually(b.t, name+" is back to 0 once all clients have gone", func() bool { return b.Metric(name) == 0 })
		}
	}
	for name, n := range b.Look().Events {
		if !b.breaks && (strings.Contains(name, "panic") || strings.Contains(name, "failed")) {
			b.t.Errorf("the broker reported %s %d times", name, n)
		}
	}
	_ = b.in.Close()
	done := make(chan error, 1)
	go func() { done <- b.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			b.t.Errorf("the broker's process ended with %v\n%s", err, b.said)
		}
	case <-time.After(Patience):
		_ = b.cmd.Process.Kill()
		<-done
		b.t.Errorf("the broker does not stop\n%s", b.said)
	}
}

// Kill ends the broker at once, as kill -9 does.
func (b *Broker) Kill() {
	b.ended = true
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}
