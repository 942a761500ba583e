package streams

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/testkit"
)

// mute is a socket that can fall silent: what is sent goes nowhere from then on, and what arrives is not noticed.
type mute struct {
	net.PacketConn
	silent atomic.Bool
}

// WriteTo implements net.PacketConn.
func (m *mute) WriteTo(p []byte, to net.Addr) (int, error) {
	if m.silent.Load() {
		return len(p), nil
	}
	return m.PacketConn.WriteTo(p, to)
}

// ReadFrom implements net.PacketConn.
func (m *mute) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := m.PacketConn.ReadFrom(p)
		if err != nil || !m.silent.Load() {
			return n, from, err
		}
	}
}

// doomedVariable makes the test binary be a client that is going to be killed; its value says where the broker is.
const doomedVariable = "STREAMS_DOOMED"

// doomedEach is how many connections such a process has.
const doomedEach = 25

// serveDoomed is the main function of that process: it makes its connections, each with a subscription that works, says so, and waits
// for its end.
func serveDoomed(text string, in io.Reader, out io.Writer) int {
	var at testkit.Place
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		fmt.Fprintln(os.Stderr, "doomed:", err)
		return 1
	}
	ctx, cancel := testkit.Within()
	defer cancel()
	all := 0
	for range doomedEach {
		_, vain, err := receive(ctx, at)
		if err != nil {
			fmt.Fprintln(os.Stderr, "doomed:", err)
			return 1
		}
		all += vain
	}
	fmt.Fprintln(out, "ready", all)
	_, _ = io.Copy(io.Discard, in) // whoever wanted the kill has gone when this ends
	return 1
}

// receive is receiveOne, again when the machine stood still for so long that the connection was given up meanwhile: that often in vain.
func receive(ctx context.Context, at testkit.Place) (g *guest, vain int, err error) {
	for ; ; vain++ {
		g, err = receiveOne(ctx, at)
		if idle := new(quic.IdleTimeoutError); !errors.As(err, &idle) || ctx.Err() != nil {
			return g, vain, err
		}
	}
}

// receiveOne connects, subscribes and receives a record.
func receiveOne(ctx context.Context, at testkit.Place) (*guest, error) {
	socket, err := loopback()
	if err != nil {
		return nil, err
	}
	g := &guest{socket: &mute{PacketConn: socket}}
	if g.raw, err = dialRaw(ctx, at, g.socket, rawIdle); err != nil {
		return nil, err
	}
	if err := g.settle(ctx); err != nil {
		g.release()
		return nil, err
	}
	return g, nil
}

// killOne starts a doomed process and kills it when all its subscriptions work. It returns how many came in vain.
func killOne(t testing.TB, at testkit.Place) (vain int) {
	t.Helper()
	said := &testkit.Tail{}
	cmd := exec.Command(must(os.Executable())(t))
	cmd.Env = append(os.Environ(), doomedVariable+"="+string(must(json.Marshal(at))(t)))
	cmd.Stderr = said
	in := must(cmd.StdinPipe())(t)
	out := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if n, _ := fmt.Sscanf(line, "ready %d", &vain); n != 1 {
		t.Errorf("the clients to be killed did not get so far: %q, %v\n%s", line, err, said)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = in.Close()
	return vain
}
