package transport

import (
	"fmt"
	"time"

	"github.com/quic-go/quic-go"
)

// Limits and times of a QUIC connection.
const (
	// MaxStreams is how many bidirectional streams a peer may have open at once on one connection. A client opens about 41
	// at its start and one per concurrent request after that; the protocol asks for at least 1024.
	MaxStreams = 1024
	// MaxUniStreams is the same for unidirectional streams towards a broker: publish streams without answers.
	MaxUniStreams = 1024
	// ClientMaxUniStreams is how many unidirectional streams a broker may open towards a client: one per subscription or
	// watch, and a broker allows 4096 of those on a connection.
	ClientMaxUniStreams = 4096
	// IdleTimeout ends a connection of which nothing was heard for so long. The smaller value of the two ends counts.
	IdleTimeout = 30 * time.Second
	// KeepAlive is how often a broker pings an idle connection: far under IdleTimeout, so that some pings may be lost.
	KeepAlive = 5 * time.Second
	// ClientIdleTimeout is the shorter patience of our own client. It runs from the first packet that stayed without an answer
	// (RFC 9000 10.1), on a quiet connection the next ping: a dead broker is noticed in at most ClientKeepAlive more than this,
	// which is 7 s, and another dialed.
	ClientIdleTimeout = 5 * time.Second
	// ClientKeepAlive is the client's ping interval: two may be lost within ClientIdleTimeout.
	ClientKeepAlive = 2 * time.Second
	// HandshakeTimeout is how long a handshake may stand still. A handshake as a whole may take twice as long.
	HandshakeTimeout = 5 * time.Second
	// InitialPacketSize is the UDP payload, in bytes, that a connection begins with: the least that QUIC asks of a path (RFC 9000
	// 14), so that no path is too narrow to connect over. Larger sizes are found by probing once the handshake is done.
	InitialPacketSize = 1200
)

// ServerOptions adjusts what a listener grants. The zero value is the default of a broker.
type ServerOptions struct {
	Windows       Windows // receive windows; the zero value means DefaultServerWindows
	MaxStreams    int64   // bidirectional streams per connection; 0 means MaxStreams
	MaxUniStreams int64   // unidirectional streams per connection; 0 means MaxUniStreams

	IdleTimeout      time.Duration // 0 means IdleTimeout
	KeepAlive        time.Duration // 0 means KeepAlive
	HandshakeTimeout time.Duration // 0 means HandshakeTimeout

	// AllowWindow, if set, is asked before the window of a connection grows by delta bytes; false keeps it as it is. It runs
	// inside the connection: it must be quick and must not touch the connection. See WindowBudget.
	AllowWindow func(conn *quic.Conn, delta uint64) bool
}

// ServerQUIC returns the QUIC settings of a listener: no 0-RTT, whose requests could be replayed, and no datagrams.
func ServerQUIC(o ServerOptions) *quic.Config {
	c := newConfig(orWindows(o.Windows, DefaultServerWindows()))
	c.MaxIncomingStreams = orInt(o.MaxStreams, MaxStreams)
	c.MaxIncomingUniStreams = orInt(o.MaxUniStreams, MaxUniStreams)
	c.MaxIdleTimeout = orDuration(o.IdleTimeout, IdleTimeout)
	c.KeepAlivePeriod = orDuration(o.KeepAlive, KeepAlive)
	c.HandshakeIdleTimeout = orDuration(o.HandshakeTimeout, HandshakeTimeout)
	c.AllowConnectionWindowIncrease = o.AllowWindow
	return c
}

// ClientOptions adjusts what a dialer grants and expects. The zero value is the default of our client.
type ClientOptions struct {
	Windows       Windows // receive windows; the zero value means DefaultClientWindows
	MaxUniStreams int64   // event streams the broker may open; 0 means ClientMaxUniStreams

	IdleTimeout      time.Duration // 0 means ClientIdleTimeout
	KeepAlive        time.Duration // 0 means ClientKeepAlive
	HandshakeTimeout time.Duration // 0 means HandshakeTimeout

	// AllowWindow is as in ServerOptions.
	AllowWindow func(conn *quic.Conn, delta uint64) bool
}

// ClientQUIC returns the QUIC settings of a dialer. A broker never opens bidirectional streams, so none are allowed.
func ClientQUIC(o ClientOptions) *quic.Config {
	c := newConfig(orWindows(o.Windows, DefaultClientWindows()))
	c.MaxIncomingStreams = -1
	c.MaxIncomingUniStreams = orInt(o.MaxUniStreams, ClientMaxUniStreams)
	c.MaxIdleTimeout = orDuration(o.IdleTimeout, ClientIdleTimeout)
	c.KeepAlivePeriod = orDuration(o.KeepAlive, ClientKeepAlive)
	c.HandshakeIdleTimeout = orDuration(o.HandshakeTimeout, HandshakeTimeout)
	c.AllowConnectionWindowIncrease = o.AllowWindow
	return c
}

func newConfig(w Windows) *quic.Config {
	if err := w.check(); err != nil {
		panic(fmt.Sprintf("quic settings: %v", err)) // operators' values pass WithMax, which refuses them with an error
	}
	return &quic.Config{
		Versions:                       []quic.Version{quic.Version1},
		InitialPacketSize:              InitialPacketSize,
		InitialStreamReceiveWindow:     w.StreamInitial,
		MaxStreamReceiveWindow:         w.StreamMax,
		InitialConnectionReceiveWindow: w.ConnInitial,
		MaxConnectionReceiveWindow:     w.ConnMax,
		Allow0RTT:                      false,
		EnableDatagrams:                false,
	}
}

func orWindows(w, standard Windows) Windows {
	if w == (Windows{}) {
		return standard
	}
	return w
}

func orInt(n, standard int64) int64 {
	if n == 0 {
		return standard
	}
	return n
}

func orDuration(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}
