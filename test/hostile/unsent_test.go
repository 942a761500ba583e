package hostile

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
)

// deaf is a socket that hears nothing from some moment on: whoever calls from it acknowledges nothing then.
type deaf struct {
	net.PacketConn
	now atomic.Bool
}

func (d *deaf) ReadFrom(p []byte) (n int, from net.Addr, err error) {
	for {
		if n, from, err = d.PacketConn.ReadFrom(p); err != nil || !d.now.Load() {
			return n, from, err
		}
	}
}

// A client may grant windows of a gigabyte, ask for a lot and acknowledge nothing. What it asked for is not the transport's to keep, without a
// bound: it is in the node's books of answers that nobody reads, and no more is taken from its streams.
func TestAnswersThatAreNotAcknowledgedAreInTheBooks(t *testing.T) {
	aside(t)
	const value, lanes, gets, window = 128 << 10, 8, 30, 1 << 30 // all requests together fit what may leave before anything is acknowledged
	h := open(t, setup{})
	from := h.from(t, 81)
	good := from.dial().open()
	put := &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "large", Value: make([]byte, value), RequestID: wire.Some(uint64(1))}
	if f := good.ask(put); f.message == nil || f.message.MessageType() != "cache_ok" {
		t.Fatalf("a put was answered %s", f)
	}
	ctx, cancel := timeout(patience)
	defer cancel()
	socket := &deaf{PacketConn: must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 82)}))(t)}
	q := &quic.Transport{Conn: socket}
	defer func() { _, _ = q.Close(), socket.Close() }()
	c := must(q.Dial(ctx, from.addr, from.conf, &quic.Config{
		MaxIdleTimeout: patience, HandshakeIdleTimeout: patience, InitialPacketSize: 1200,
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window, InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
	}))(t)
	p := &peer{t: t, c: c}
	var all []*line
	for range lanes {
		all = append(all, p.open())
	}
	before := h.Metric("felix_requests_total{cache_get}")
	socket.now.Store(true)
	for _, l := range all {
		var asked []byte
		for i := range gets {
			asked = append(asked, wire.AppendJSONFrame(nil, &wire.CacheGet{
				TenantID: tenant, Namespace: namespace, Cache: "users", Key: "large", RequestID: wire.Some(uint64(i + 1)),
			})...)
		}
		l.raw(asked)
	}
	eventually(t, "the answers are in the books", func() bool { return h.Metric("felix_answer_bytes") >= lanes<<20 })
	taken := h.Metric("felix_requests_total{cache_get}") - before
	t.Logf("%v of %d requests were taken, %s", taken, lanes*gets, h.Look())
	if taken > lanes*gets/2 {
		t.Errorf("%v of %d requests were taken though nothing of their answers is acknowledged", taken, lanes*gets)
	}
	good.alive("beside it")
	_ = c.CloseWithError(0, "enough")
	eventually(t, "nothing is booked for who has gone", func() bool { return h.Metric("felix_answer_bytes") == 0 })
}
