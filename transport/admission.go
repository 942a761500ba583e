package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Limits on connections, and the reasons for refusing one.
const (
	// DefaultMaxConnections is how many connections a listener holds, handshakes included. An idle one costs about 100 KB:
	// 800 MB in all.
	DefaultMaxConnections = 8192
	// DefaultMaxPerIP is how many of them may come from one address: enough for a large host or a small office behind one
	// address, and sixteen such addresses fill the listener. The loopback address is an address like any other.
	DefaultMaxPerIP = 512
	// retryShare is the part (one in so many) of either limit that unfinished handshakes may fill before a new client must
	// first prove that it owns its address, with a Retry packet (RFC 9000 8.1.2). Without the proof, forged addresses could
	// fill the listener, or the share of one victim's address. It costs honest clients a round trip, so it waits for
	// handshakes to pile up.
	retryShare = 8

	// RefusedLimit is the reason when the listener is full.
	RefusedLimit = "limit"
	// RefusedPerIP is the reason when one address has its share.
	RefusedPerIP = "per_ip_limit"
)

// RefusedError is why a connection was not admitted. It stays on this side: the client sees CONNECTION_REFUSED.
type RefusedError struct {
	Reason string     // RefusedLimit or RefusedPerIP
	Addr   netip.Addr // of the client
	Max    int        // the limit it met
}

// Error names the limit and its setting.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("admit connection from %v: %s: %d connections are open, which is the limit", e.Addr, e.Reason, e.Max)
}

// load is how many connections there are, and how many of them are unfinished handshakes.
type load struct{ open, handshaking int }

// admission counts connections from the first packet to the end, in all and per address. Its table has no more entries than
// there are connections.
type admission struct {
	max, perIP int

	mu     sync.Mutex
	total  load
	byAddr map[netip.Addr]load
}

func newAdmission(max, perIP int) *admission {
	return &admission{max: max, perIP: perIP, byAddr: make(map[netip.Addr]load)}
}

// enter takes a place for a client, or says why there is none.
func (a *admission) enter(remote net.Addr) (*place, error) {
	addr := addressOf(remote)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.total.open >= a.max {
		return nil, &RefusedError{Reason: RefusedLimit, Addr: addr, Max: a.max}
	}
	if a.byAddr[addr].open >= a.perIP {
		return nil, &RefusedError{Reason: RefusedPerIP, Addr: addr, Max: a.perIP}
	}
	a.change(addr, 1, 1)
	return &place{admission: a, addr: addr}, nil
}

// suspicious says whether unfinished handshakes take so many places that this client must prove its address.
func (a *admission) suspicious(remote net.Addr) bool {
	addr := addressOf(remote)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total.handshaking >= max(1, a.max/retryShare) || a.byAddr[addr].handshaking >= max(1, a.perIP/retryShare)
}

func (a *admission) now() load {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total
}

// change moves both counts. The lock is held.
func (a *admission) change(addr netip.Addr, open, handshaking int) {
	own := a.byAddr[addr]
	own = load{own.open + open, own.handshaking + handshaking}
	a.total = load{a.total.open + open, a.total.handshaking + handshaking}
	if own.handshaking < 0 || own.open < own.handshaking {
		panic("connection admission: a place was given back twice")
	}
	if own.open == 0 {
		delete(a.byAddr, addr)
		return
	}
	a.byAddr[addr] = own
}

// place is one admitted connection. Its state is guarded by the lock of its admission.
type place struct {
	admission *admission
	addr      netip.Addr
	accepted  bool
	left      bool
}

// accept marks the handshake as finished. A connection may have ended between its handshake and this; then it changes
// nothing.
func (p *place) accept() {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	if p.accepted || p.left {
		return
	}
	p.accepted = true
	p.admission.change(p.addr, 0, -1)
}

// leave gives the place back and reports whether the connection had been accepted.
func (p *place) leave() (accepted bool) {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	handshaking := -1
	if p.accepted {
		handshaking = 0
	}
	p.admission.change(p.addr, -1, handshaking)
	p.left = true
	return p.accepted
}

type placeKey struct{}

// remember attaches the place to the context that the connection derives its own from.
func remember(ctx context.Context, p *place) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// placeOf finds the place of a connection through its context.
func placeOf(ctx context.Context) *place {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		panic("connection admission: a connection without a place")
	}
	return p
}

// addressOf is the client's address without port and zone. An IPv4 client of an IPv6 socket is counted as IPv4.
func addressOf(remote net.Addr) netip.Addr {
	udp, ok := remote.(*net.UDPAddr)
	if !ok {
		panic(fmt.Sprintf("connection admission: a QUIC client has a %T address", remote))
	}
	addr, _ := netip.AddrFromSlice(udp.IP)
	return addr.Unmap()
}
