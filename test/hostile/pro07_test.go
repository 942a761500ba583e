package hostile

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// field case PRO-07, decision 34: peers that never sign in, each with as many streams as are allowed and half a header on each,
// and peers that stop inside the TLS handshake, beside good clients.
//
// mission 185
func TestPRO07_UnauthenticatedPeersCanHoldOnlyLittle(t *testing.T) {
	const (
		growth    = 64 << 20
		perAddr   = 100
		strangers = 2048 // streams beyond the first of each connection, for the whole node
	)
	n := max(size("silent_connections"), 2*strangers/wire.PreauthStreamsMax) // more than the node takes in
	patient := 6 * time.Second                                               // until all have come and were measured
	if effort.Full() {
		patient *= 3
	}
	h := open(t, setup{AuthTimeout: patient})
	g := h.invite(t, goodClients)
	before := h.Collect()
	var peers []*peer
	g.steady(200*time.Millisecond, func() {
		for i := range n {
			if i%perAddr == 0 {
				h.deaf(t, byte(40+i/perAddr), perAddr)
			}
		}
		for i := range n {
			if i%perAddr == 0 {
				peers = append(peers, h.silent(t, byte(60+i/perAddr), min(perAddr, n-i))...)
			}
		}
		h.Counts("felix_preauth_streams", strangers-wire.PreauthStreamsMax) // the connection that finds no room gives its own back
	})
	held := h.Collect()
	t.Logf("before: %s", before)
	t.Logf("held:   %s", held)
	if grown := held.Resident - before.Resident; grown > growth*slack() {
		t.Errorf("%d silent peers cost %.1f MiB", n, float64(grown)/(1<<20))
	}
	for _, p := range peers {
		p.closedWith(transport.CloseAuthTimeout, transport.CloseOverload)
	}
	h.rests(t)
	counted := h.Look().Metrics
	slow, many := counted["felix_client_connections_closed_total{authentication_timeout}"], counted["felix_client_connections_closed_total{overload}"]
	if slow < strangers/wire.PreauthStreamsMax || int(slow+many) != n || counted["felix_preauth_streams"] != 0 {
		t.Errorf("%v connections were closed for their silence and %v for their streams, want %d in all; %v streams are still booked", slow, many, n, counted["felix_preauth_streams"])
	}
	if h.Metric("failed{timeout}") == 0 {
		t.Error("no handshake ran into its time-out, or it was not counted")
	}
}

// silent opens connections from one address, and on each all the streams that are allowed, with half a header.
func (h *house) silent(t testing.TB, host byte, n int) (peers []*peer) {
	t.Helper()
	from := h.from(t, host)
	for range n {
		p := from.dial()
		peers = append(peers, p)
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
