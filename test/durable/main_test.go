// Package durable proves the crash matrix and the field cases of durable streams on a whole broker: the real node behind real QUIC, real
// clients, and a disk in memory whose power can be cut and whose calls can be made to fail. See test/crash/README.md for what is proved where.
package durable

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }
