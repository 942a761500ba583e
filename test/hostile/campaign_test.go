package hostile

import (
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// Damaged frames on streams that are signed in and that are not, damaged handshakes and datagrams that are no QUIC, beside twenty
// good clients: nobody exits, every refusal is counted, and afterwards the broker holds what it held before.
//
// mission 173, mission 184
func TestAMillionMalformedFramesAndHandshakesLeaveGoodClientsUntouched(t *testing.T) {
	aside(t)
	const rss = 16 << 20 // growth that is allowed after a forced collection
	h := open(t, setup{Handshake: 2 * time.Second})
	g := h.invite(t, goodClients)
	frames := size("malformed_frames")
	first := h.strike(t, frames/20, 1000) // what is kept for the next time, pools and tables, counts as before
	first.set(true)
	<-first.over
	h.rests(t)
	before := h.Collect()
	t.Logf("before: %s", before)
	const each = 300 * time.Millisecond
	pairs := g.beside(h.strike(t, frames, 1), each)
	for seed := uint64(2); seed < 4 && disturbed(pairs) && !effort.Full(); seed++ { // few windows: the machine may have been busy with something else
		pairs = g.beside(h.strike(t, frames, seed), each)
	}
	g.untouched(pairs)
	h.rests(t)
	counted := h.Look().Metrics
	for _, name := range []string{
		"felix_requests_refused_total{invalid_request}", "felix_requests_refused_total{unauthenticated}", "felix_frames_dropped_total",
		"felix_client_streams_refused_total{bad_magic}", "felix_client_streams_refused_total{bad_version}", "felix_client_streams_refused_total{too_long}",
		"failed{alpn}", "failed{timeout}", "failed{tls}",
	} {
		if counted[name] == 0 {
			t.Errorf("%s is 0: nothing was refused that way, or it was not counted", name)
		}
	}
	var last testkit.State
	eventually(t, "memory and goroutines are back where they were", func() bool {
		last = h.Collect()
		return last.Resident-before.Resident <= rss*slack() && last.Goroutines <= before.Goroutines+16
	})
	t.Logf("after:  %s", last)
}

// slack widens bounds on memory where the broker is instrumented.
func slack() int64 {
	if raceEnabled {
		return 8
	}
	return 1
}

// rests waits until only the good clients' connections are there and the broker does nothing else.
func (h *house) rests(t testing.TB) {
	t.Helper()
	var s testkit.State
	if !eventually(t, "only good clients are left", func() bool {
		s = h.Look()
		return s.Open == goodClients && s.Metrics["felix_client_connections"] == float64(goodClients)
	}) {
		t.Errorf("left: %s", s)
	}
}
