package hostile

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// field case PRO-07, decision 34: peers that never sign in, each with as many streams as are allowed and half a header on each,
// and peers that stop inside the TLS handshake, beside good clients.
//
// mission 185
func TestPRO07_UnauthenticatedPeersCanHoldOnlyLittle(t *testing.T) {
	aside(t)
	const perAddr = 100
	n := max(size("silent_connections"), 5*strangers/(4*wire.PreauthStreamsMax)) // more than the node takes in
	t.Run("while they stay", func(t *testing.T) {
		const growth = 64 << 20
		h := open(t, setup{AuthTimeout: 10 * patience})
		g := h.invite(t, goodClients)
		before := h.Collect()
		var peers []*peer
		g.steady(200*time.Millisecond, func() {
			for i := 0; i < n; i += perAddr {
				h.deaf(t, byte(40+i/perAddr), min(perAddr, n-i))
			}
			for i := 0; i < n; i += perAddr {
				peers = append(peers, h.silent(t, byte(60+i/perAddr), min(perAddr, n-i))...)
			}
			h.Counts("felix_preauth_streams", strangers-wire.PreauthStreamsMax) // the connection that finds no room gives its own back
		})
		held := h.Collect()
		t.Logf("before: %s", before)
		t.Logf("held:   %s", held)
		if grown := held.Resident - before.Resident; grown > growth*slack() {
			t.Errorf("%d silent peers cost %.1f MiB", n, float64(grown)/(1<<20))
		}
		h.Counts("felix_client_connections_closed_total{overload}", 1)
		for _, p := range peers {
			if p.c.Context().Err() != nil {
				p.closedWith(transport.CloseOverload)
			}
			_ = p.c.CloseWithError(0, "")
		}
		eventually(t, "nothing is booked for who has gone", func() bool { return h.Metric("felix_preauth_streams") == 0 })
	})
	t.Run("until their time is up", func(t *testing.T) {
		const few = 10
		h := open(t, setup{AuthTimeout: time.Second, Handshake: 2 * time.Second})
		h.invite(t, goodClients)
		h.deaf(t, 40, few)
		judged := few
		for _, p := range h.silent(t, 60, few) {
			if p.neverThere() {
				judged--
				continue
			}
			p.closedWith(transport.CloseAuthTimeout)
		}
		if judged < few/2 {
			t.Errorf("%d of %d connections were closed because their time was up", judged, few)
		}
		h.rests(t)
		h.Counts("felix_client_connections_closed_total{authentication_timeout}", float64(judged))
		eventually(t, "nothing is booked for who has gone", func() bool { return h.Metric("felix_preauth_streams") == 0 })
		h.Counts("failed{timeout}", 1)
	})
}

// strangers is how many streams beyond the first of each connection a node has for those that have not signed in.
const strangers = 2048

// silent opens connections from one address, and on each all the streams that are allowed, with half a header. Those that were sent away before
// they had begun are left out.
func (h *house) silent(t testing.TB, host byte, n int) (peers []*peer) {
	t.Helper()
	from := h.from(t, host)
	for range n {
		p, err := from.connect()
		var away *quic.ApplicationError
		if errors.As(err, &away) && (away.ErrorCode == transport.CloseAuthTimeout || away.ErrorCode == transport.CloseOverload) {
			continue
		}
		peers = append(peers, must(p, err)(t))
		for range wire.PreauthStreamsMax {
			if s, err := p.c.OpenStream(); err == nil { // refused once the broker has had enough of them
				_, _ = s.Write([]byte("FLX1\x00\x01"))
			}
		}
	}
	return peers
}

// deafSocket sends and hears nothing.
type deafSocket struct{ net.PacketConn }

// ReadFrom implements net.PacketConn: it returns when the socket is closed.
func (s deafSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		if _, from, err := s.PacketConn.ReadFrom(p); err != nil {
			return 0, from, err
		}
	}
}

// deaf begins n handshakes from one address that never go on. They end with the test.
func (h *house) deaf(t testing.TB, host byte, n int) {
	t.Helper()
	from := h.from(t, host)
	q := &quic.Transport{Conn: deafSocket{must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, host)}))(t)}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			_, _ = q.Dial(ctx, from.addr, from.conf, &quic.Config{HandshakeIdleTimeout: patience, InitialPacketSize: 1200})
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
		_ = q.Close()
		_ = q.Conn.Close()
	})
}
