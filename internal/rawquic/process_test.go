package rawquic

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/bench/machine"
	"github.com/felixd/felixd/internal/effort"
)

// childVariable makes this test program a server process.
const childVariable = "FELIX_TEST_RAW_PEER"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "serve":
		if err := Run(context.Background(), os.Stdin, os.Stdout, Options{}); err != nil {
			panic(err)
		}
	case "mute":
	default:
		goleak.VerifyTestMain(effort.Settled(m))
	}
}

func child(as string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+as)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestServerProcessServesTellsItsUsageAndEnds(t *testing.T) {
	p, err := Start(child("serve"), machine.Any)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := Dial(ctx, p.Peer)
	if err != nil {
		t.Fatal(err)
	}
	stream := open(ctx, t, conn, Order{Role: Echo})
	data := noise(1 << 20)
	sent := make(chan error, 1)
	go func() { sent <- send(stream, data) }()
	if got, err := io.ReadAll(stream); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("echo: %d bytes, %v", len(got), err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	u, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if u.Received != uint64(len(data)) || u.CPU == nil || *u.CPU <= 0 {
		t.Fatalf("usage %+v of a process that read %d bytes", u, len(data))
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	<-conn.Context().Done()
}

func TestProcessThatDoesNotServeIsAnError(t *testing.T) {
	if _, err := Start(child("mute"), machine.Any); err == nil || !strings.Contains(err.Error(), "did not say where it listens") {
		t.Fatalf("got %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, in, io.Discard, Options{}); err != nil {
		t.Fatal(err)
	}
}
