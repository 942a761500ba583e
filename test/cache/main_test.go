// Package cache proves the crash matrix, the field cases and the consistency of log-backed caches on a whole broker: the real node behind
// real QUIC, real clients, and a disk in memory whose power can be cut and whose calls can be made to fail.
package cache

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }
