package hostile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// This file is the attackers' process. In full effort it runs with the lowest priority, so that what good clients lose to it is what the
// broker loses to it, and not the processor time that attackers of the real world would take from a machine of their own.

// attackerVariable makes the test binary be the attackers.
const attackerVariable = "HOSTILE_ATTACKER"

// strike is one attack as a whole.
type strike struct {
	Broker testkit.Place
	Things int // to send
	Seed   uint64
}

// The two commands an attacker's process takes, one line each. At the start its gate is shut.
const (
	openGate = "open"
	shutGate = "shut"
)

// run sends everything, as far as the gate lets it.
func (s strike) run(t testing.TB, door *gate) {
	h := &house{&testkit.Broker{Place: s.Broker}}
	var all sync.WaitGroup
	handshakes, tick := s.Things/100, 2*time.Millisecond
	if !effort.Full() {
		tick = time.Millisecond // what is measured beside it is no more than gross harm
	}
	all.Go(func() { h.attack(t, door, s.Seed, s.Things/2, 5, tick).openStreams(h.from(t, 11)) })
	all.Go(func() { h.attack(t, door, s.Seed+1, s.Things/5, 2, tick).newStreams(h.from(t, 12)) })
	all.Go(func() { h.attack(t, door, s.Seed+2, handshakes, 1, 10*tick).handshakes(h.from(t, 13)) })
	all.Go(func() {
		h.attack(t, door, s.Seed+3, s.Things-s.Things/2-s.Things/5-handshakes, 3, tick).datagrams(14)
	})
	all.Wait()
}

// serveAttacker is the main function of the attackers' process. It ends when its input does, or with the attack.
func serveAttacker(config string, in io.Reader) int {
	var s strike
	if err := json.Unmarshal([]byte(config), &s); err != nil {
		fmt.Fprintln(os.Stderr, "attacker:", err)
		return 1
	}
	door := newGate()
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			door.set(lines.Text() == openGate)
		}
		os.Exit(1) // whoever wanted the attack has gone
	}()
	t := &processTB{}
	s.run(t, door)
	t.cleanup()
	if t.failed {
		return 1
	}
	return 0
}

// processTB reports failures of helpers that take a testing.TB, in a process that runs no test.
type processTB struct {
	testing.TB // nil: whatever is not below is not to be used

	mu     sync.Mutex
	after  []func()
	failed bool
}

func (t *processTB) Helper() {}

func (t *processTB) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.after = append(t.after, f)
}

func (t *processTB) cleanup() {
	for i := len(t.after) - 1; i >= 0; i-- {
		t.after[i]()
	}
}

func (t *processTB) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = true
	fmt.Fprintf(os.Stderr, "attacker: "+format+"\n", args...)
}

func (t *processTB) Fatal(args ...any) {
	t.Errorf("%s", fmt.Sprint(args...))
	os.Exit(1)
}

func (t *processTB) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	os.Exit(1)
}

// attackers is the attackers' process, seen from a test.
type attackers struct {
	t    testing.TB
	in   io.WriteCloser
	over chan struct{} // closed when all was sent
}

// strike begins an attack, with its gate shut. The test ends only when the attack has.
func (h *house) strike(t testing.TB, things int, seed uint64) *attackers {
	t.Helper()
	config := must(json.Marshal(strike{Broker: h.Place, Things: things, Seed: seed}))(t)
	said := &testkit.Tail{}
	cmd := exec.Command(must(os.Executable())(t))
	if effort.Full() {
		cmd = exec.Command("nice", "-n", "19", cmd.Path)
	}
	cmd.Env = append(os.Environ(), attackerVariable+"="+string(config))
	cmd.Stderr = said
	a := &attackers{t: t, in: must(cmd.StdinPipe())(t), over: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(a.over)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the attackers' process ended with %v\n%s", err, said)
		}
	}()
	t.Cleanup(func() {
		select {
		case <-a.over:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-a.over
		}
		_ = a.in.Close()
	})
	return a
}

// set opens or shuts the gate. An attack that is over does not mind.
func (a *attackers) set(open bool) {
	command := shutGate
	if open {
		command = openGate
	}
	if _, err := io.WriteString(a.in, command+"\n"); err != nil {
		select {
		case <-a.over:
		case <-time.After(patience):
			a.t.Errorf("the attackers take no commands: %v", err)
		}
	}
}
