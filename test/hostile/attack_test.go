package hostile

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
)

// attack is one attacker's work: it sends count damaged things, at most so many at each tick, so that what is measured beside
// it is harm and not the lack of cores.
type attack struct {
	t     testing.TB
	h     *house
	rng   *rand.Rand
	count int // things left to send
	each  int // at most so many per tick
	here  int // things left in this tick
	tick  *time.Ticker
	door  *gate
}

func (h *house) attack(t testing.TB, door *gate, seed uint64, count, each int, tick time.Duration) *attack {
	return &attack{t: t, h: h, door: door, rng: rand.New(rand.NewPCG(seed, 99)), count: count, each: each, tick: time.NewTicker(tick)}
}

// next takes one thing, when its time has come; false at the end.
func (a *attack) next() bool {
	if a.count == 0 {
		a.tick.Stop()
		return false
	}
	if a.here == 0 {
		<-a.tick.C
		a.door.pass()
		a.here = a.each
	}
	a.count--
	a.here--
	return true
}

// wholeFrames are well-formed requests of all kinds, to be damaged. They touch nothing that good clients use.
func wholeFrames() [][]byte {
	value := wire.Some(uint64(1))
	idempotent := &wire.Publish{
		Flags: wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagPublishIdempotent | wire.FlagPublishKeyed, RequestID: 4, Ack: wire.AckPerBatch,
		ProducerID: 1, Key: []byte("key"), Keyed: true, Tenant: []byte(tenant), Namespace: []byte(namespace), Stream: []byte("other"), Count: 1,
		Region: wire.AppendPayload(nil, []byte("x")),
	}
	return [][]byte{
		batchTo("other", 3, "a", "bc"), batchTo("other", 0, "quiet"), wire.AppendPublish(nil, idempotent),
		wire.AppendJSONFrame(nil, &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", RequestID: value}),
		wire.AppendJSONFrame(nil, &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: []byte("v"), TTLMillis: value}),
		wire.AppendJSONFrame(nil, &wire.Subscribe{TenantID: tenant, Namespace: namespace, Stream: "none", QueueCapacity: wire.Some(uint32(7))}),
		wire.AppendJSONFrame(nil, &wire.ShardOwners{TenantID: tenant, Namespace: namespace, Name: "wide", RequestID: 2}),
		jsonFrame(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"other","payload":"YQ==","ack":"per_message","request_id":5}`),
		jsonFrame(`{"type":"counter_add","tenant_id":"t1","namespace":"default","stream":"other","entity_key":"YQ==","key":"n","delta":-1,"request_id":6}`),
		wire.AppendJSONFrame(nil, today()),
	}
}

// damaged changes a few bytes of b, from a place on.
func damaged(rng *rand.Rand, b []byte, from int) []byte {
	b = slices.Clone(b)
	for range 1 + rng.IntN(4) {
		b[from+rng.IntN(len(b)-from)] = byte(rng.Uint32())
	}
	return b
}

// openStreams damages frames on streams that are signed in. One header in fifty is damaged too, which costs the stream.
func (a *attack) openStreams(from *caller) {
	p, frames := from.dial(), wholeFrames()
	defer func() { _ = p.c.CloseWithError(0, "") }()
	more := a.next()
	for more {
		l := p.open()
		answers := make(chan struct{})
		go func() { defer close(answers); l.drain() }()
		for whole := true; more && whole; more = a.next() {
			at := wire.HeaderSize
			if whole = a.rng.IntN(50) > 0; !whole {
				at = 0
			}
			if _, err := l.s.Write(damaged(a.rng, frames[a.rng.IntN(len(frames))], at)); err != nil {
				break
			}
		}
		_ = l.s.Close()
		<-answers
		l.finish()
	}
}

// drain reads to the end of the stream.
func (l *line) drain() {
	for {
		if _, err := l.read(); err != nil {
			return
		}
	}
}

// newStreams begins streams with damaged frames, on connections that never sign in.
func (a *attack) newStreams(from *caller) {
	frames := wholeFrames()
	for more := a.next(); more; {
		p := from.dial()
		for n := 0; more && n < wire.PreauthStreamsMax-1; n++ {
			l := p.bare()
			_, _ = l.s.Write(damaged(a.rng, frames[a.rng.IntN(len(frames))], 0))
			_ = l.s.Close()
			l.drain()
			l.finish()
			more = a.next()
		}
		_ = p.c.CloseWithError(0, "")
	}
}

// handshakes are real ones that end badly: another protocol, another version of TLS, an authority that is not trusted, given up.
func (a *attack) handshakes(from *caller) {
	for a.next() {
		conf := from.conf.Clone()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		switch a.rng.IntN(3) {
		case 0:
			conf.NextProtos = []string{"h3"}
		case 1:
			conf.RootCAs = nil // this client breaks off with an alert
		case 2:
			cancel() // a handshake that is begun and given up
			ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
		}
		if c, err := from.q.Dial(ctx, from.addr, conf, &quic.Config{HandshakeIdleTimeout: patience}); err == nil {
			_ = c.CloseWithError(0, "")
		}
		cancel()
	}
}

// datagrams are what is not QUIC, and what nearly is.
func (a *attack) datagrams(host byte) {
	first := firstFlight(a.t)
	s := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, host)}))(a.t)
	defer func() { _ = s.Close() }()
	to := must(net.ResolveUDPAddr("udp4", a.h.Addr))(a.t)
	for a.next() {
		if _, err := s.WriteTo(a.datagram(first), to); err != nil {
			a.t.Errorf("send a datagram: %v", err)
			return
		}
	}
}

func (a *attack) datagram(first []byte) []byte {
	switch a.rng.IntN(5) {
	case 0: // anything
		b := make([]byte, 1+a.rng.IntN(1400))
		for i := range b {
			b[i] = byte(a.rng.Uint32())
		}
		return b
	case 1: // a first packet, damaged anywhere
		return damaged(a.rng, first, 0)
	case 2: // one of its own connection, whose contents do not decrypt
		b := damaged(a.rng, first, 100)
		for i := 6; i < 14; i++ {
			b[i] = byte(a.rng.Uint32())
		}
		return b
	case 3: // cut short
		return first[:1+a.rng.IntN(len(first)-1)]
	default: // an unknown version, which is to be negotiated
		b := slices.Clone(first)
		for i := 1; i < 5; i++ {
			b[i] = byte(a.rng.Uint32())
		}
		return b
	}
}

// firstFlight is the first datagram of an honest client.
func firstFlight(t testing.TB) []byte {
	t.Helper()
	s := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = quic.DialAddr(ctx, s.LocalAddr().String(), &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "localhost"}, &quic.Config{InitialPacketSize: 1200})
	}()
	b := make([]byte, 2000)
	_ = s.SetReadDeadline(time.Now().Add(patience))
	n, _, err := s.ReadFrom(b)
	cancel()
	<-over
	if err != nil || n < 1200 {
		t.Fatalf("a first datagram of %d bytes, %v", n, err)
	}
	return b[:n]
}
