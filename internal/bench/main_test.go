package bench

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/internal/bench/machine"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/rawquic"
)

// patience is how long a test waits for what should happen at once.
const patience = 2 * time.Minute

// brief is a trial that is long enough for something to be counted, and says nothing about speed.
func brief() Timing { return Timing{WarmUp: 20 * time.Millisecond, Duration: 100 * time.Millisecond} }

// longEnough runs a trial with ever longer stretches until something was done and timed in one: a busy machine may have no turn for the load in a
// brief one. Each run begins anew, and what must hold at any length is checked of the last.
func longEnough(t *testing.T, timed bool, run func(Timing) (Result, error)) Result {
	t.Helper()
	for timing := brief(); ; timing.Duration *= 4 {
		r, err := run(timing)
		if err != nil {
			t.Fatal(err)
		}
		if r.Records > 0 && (!timed || r.Latency != nil) || timing.Duration > patience/10 {
			return r
		}
	}
}

// childVariable makes this test program a raw peer.
const childVariable = "FELIX_TEST_RAW_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" && os.Getenv(redisVariable) != "" {
		os.Exit(beRedis(os.Args[1]))
	}
	if os.Getenv(childVariable) == "" {
		goleak.VerifyTestMain(effort.Settled(m))
		return
	}
	if err := rawquic.Run(context.Background(), os.Stdin, os.Stdout, rawquic.Options{}); err != nil {
		panic(err)
	}
}

func newContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newRaw starts a raw peer in a process of its own.
func newRaw(t *testing.T) *Raw {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	p, err := rawquic.Start(cmd, machine.Any)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Raw{Process: p}
}

// newFelixd is a broker with streams "one" and "eight", of as many shards, and a cache "c".
func newFelixd(t *testing.T, o testbroker.Options) Felixd {
	t.Helper()
	o.Streams = map[string]uint32{"default/one": 1, "default/eight": 8}
	o.Caches = map[string]uint32{"default/c": 1}
	b := testbroker.New(t, o)
	return Felixd{
		Options:   client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM},
		Namespace: "default",
	}
}
