package client

import (
	"context"
	"slices"
	"sync"

	"github.com/felixd/felixd/wire"
)

// learnedMax bounds the addresses kept besides the configured ones: as many as there are brokers worth knowing.
const learnedMax = ownersMax

// seeds are the addresses of the entry: the configured ones, which always stay, and those that brokers named.
type seeds struct {
	mu         sync.Mutex
	configured []string
	learned    []string
	first      int // index of the address to try first
}

// list returns all addresses and the index of the one to begin with.
func (s *seeds) list() (addrs []string, first int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.configured, s.learned)
	return all, s.first % len(all)
}

// passOver makes the address after addr the first, if addr is it.
func (s *seeds) passOver(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.configured, s.learned)
	if first := s.first % len(all); all[first] == addr {
		s.first = (first + 1) % len(all)
	}
}

// prefer makes addr the first.
func (s *seeds) prefer(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(slices.Concat(s.configured, s.learned), addr); i >= 0 {
		s.first = i
	}
}

// learn replaces what brokers named before.
func (s *seeds) learn(addrs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learned = s.learned[:0]
	for _, a := range addrs {
		known := a == "" || slices.Contains(s.configured, a) || slices.Contains(s.learned, a)
		if !known && len(s.learned) < learnedMax {
			s.learned = append(s.learned, a)
		}
	}
}

// discover asks a newly met broker which others there are, in the background: with one address configured, the client still
// finds its way when that broker goes. A failure costs nothing but the knowledge; the next connection asks again.
func (c *Client) discover(s *control) {
	l := s.link
	carriesPublishes := l.kind == sharedLink || l.kind == publishLink // one kind is enough to ask once per dial
	if c.opts.NoDiscovery || s.pool.target.addr != "" || !carriesPublishes ||
		!s.grant.Features.Has(wire.FeatureTopology) || l.asked.Swap(true) {
		return
	}
	c.life.spawn(func() {
		ctx, cancel := context.WithTimeout(c.closing, c.opts.AckTimeout)
		defer cancel()
		endpoints, err := c.Endpoints(ctx)
		if err != nil {
			return
		}
		var others []string
		for _, e := range endpoints {
			if e.Addr != l.conn.RemoteAddr().String() { // the one that answers may be configured under its name
				others = append(others, e.Addr)
			}
		}
		c.seeds.learn(others)
	})
}
