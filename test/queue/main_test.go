// Package queue proves the work queues of a whole broker. The campaign kills felixd, as it is delivered, under workers that crash, stall,
// nack and ack; the cases by id run on the real node behind real QUIC, with real clients, and a disk in memory whose power can be cut and
// whose calls can be made to fail.
package queue

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// programs are what the tests with a daemon run.
var programs testkit.Programs

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(effort.Settled(m), goleak.Cleanup(func(code int) {
		programs.Remove()
		os.Exit(code)
	}))
}
