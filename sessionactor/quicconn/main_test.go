package quicconn

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }
