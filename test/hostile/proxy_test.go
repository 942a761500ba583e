package hostile

import (
	"net"
	"slices"
	"sync"
	"testing"
)

// proxy forwards the datagrams of one client, as a network in between would. What it does to them may change at any time.
type proxy struct {
	t      testing.TB
	in     *net.UDPConn
	broker *net.UDPAddr
	all    sync.WaitGroup

	mu       sync.Mutex
	client   net.Addr
	out      *net.UDPConn // the address that the broker sees
	largest  int          // larger datagrams are dropped
	dropped  int
	record   bool
	recorded [][]byte // what the client sent
}

// proxied opens a proxy in front of the broker. It passes datagrams of any size until it is told otherwise.
func (h *house) proxied(t testing.TB) *proxy {
	t.Helper()
	p := &proxy{t: t, largest: 1 << 16, broker: must(net.ResolveUDPAddr("udp4", h.Addr))(t)}
	p.in = must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	p.rebind()
	p.all.Go(p.forth)
	t.Cleanup(func() {
		_ = p.in.Close()
		p.mu.Lock()
		_ = p.out.Close()
		p.mu.Unlock()
		p.all.Wait()
	})
	return p
}

// rebind gives the client another address in the eyes of the broker, as a router does that forgot its mapping.
func (p *proxy) rebind() {
	p.t.Helper()
	out := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(p.t)
	p.mu.Lock()
	old := p.out
	p.out = out
	p.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	p.all.Go(func() { p.back(out) })
}

// limit drops what is larger from now on.
func (p *proxy) limit(largest int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.largest = largest
}

func (p *proxy) forth() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := p.in.ReadFrom(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.client = from
		out := p.out
		if p.record {
			p.recorded = append(p.recorded, slices.Clone(b[:n]))
		}
		pass := p.passes(n)
		p.mu.Unlock()
		if pass {
			_, _ = out.WriteTo(b[:n], p.broker)
		}
	}
}

func (p *proxy) back(out *net.UDPConn) {
	b := make([]byte, 1<<16)
	for {
		n, _, err := out.ReadFrom(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		to, pass := p.client, p.passes(n)
		p.mu.Unlock()
		if pass {
			_, _ = p.in.WriteTo(b[:n], to)
		}
	}
}

// passes judges a datagram's size. mu is held.
func (p *proxy) passes(n int) bool {
	if n > p.largest {
		p.dropped++
		return false
	}
	return true
}

func (p *proxy) drops() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}
