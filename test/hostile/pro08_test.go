package hostile

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// field case PRO-08: streams broken off at any point of a request, on several connections, one of which is killed now and then.
// Afterwards the broker holds what it held before, and new streams open at once.
func TestPRO08_AbortedStreamsLeaveNothingBehind(t *testing.T) {
	aside(t)
	const callers = 4
	h := open(t, setup{})
	g := h.invite(t, goodClients)
	n := size("aborted_streams") / callers
	run := func(n int) {
		var all sync.WaitGroup
		for i := range callers {
			from := h.from(t, byte(31+i))
			all.Go(func() { abort(from, n) })
		}
		all.Wait()
	}
	run(n/10 + 1)
	h.rests(t)
	idle := h.Metric("felix_client_streams")
	before := h.Collect()
	run(n)
	h.rests(t)
	eventually(t, "all streams are gone", func() bool { return h.Metric("felix_client_streams") <= idle+float64(goodClients) })
	var last testkit.State
	eventually(t, "the heap and the goroutines are back", func() bool {
		last = h.Collect()
		return last.Heap-before.Heap <= 8<<20 && last.Goroutines <= before.Goroutines+16
	})
	t.Logf("before: %s", before)
	t.Logf("after:  %s", last)
	g.leave()
	h.from(t, 40).dial().open().alive("a new stream")
}

// abort breaks off n streams, each in another way.
func abort(from *caller, n int) {
	p := from.dial()
	p.open()
	whole := batchTo("other", 1, strings.Repeat("x", 20_000))
	for i := range n {
		if i%500 == 499 {
			_ = p.c.CloseWithError(9, "killed")
			p = from.dial()
			p.open()
		}
		l := p.bare()
		switch i % 6 {
		case 0: // reset in a header
			_, _ = l.s.Write([]byte("FLX1"))
			l.s.CancelWrite(1)
		case 1: // reset in a body
			_, _ = l.s.Write(append(wire.AppendJSONFrame(nil, today()), whole[:10_000]...))
			l.s.CancelWrite(2)
		case 2: // stop the answers
			l.r.CancelRead(3)
			_, _ = l.s.Write(append(wire.AppendJSONFrame(nil, today()), whole...))
		case 3: // only the own half ends, and the answer is not read
			_, _ = l.s.Write(append(wire.AppendJSONFrame(nil, today()), whole...))
			_ = l.s.Close()
			l.drain()
		case 4: // never signed in, and gone
			_ = l.s.Close()
			l.drain()
		case 5: // a request that fails, then silence
			_, _ = l.s.Write(append(wire.AppendJSONFrame(nil, today()), jsonFrame(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"none"}`)...))
			l.s.CancelWrite(4)
			l.r.CancelRead(4)
		}
		if i%6 != 1 && i%6 != 0 {
			_ = l.s.Close()
		}
		l.r.CancelRead(5)
	}
	_ = p.c.CloseWithError(0, "")
}

// Slow streams of a client that is signed in: each has begun a large frame and goes on byte by byte. They hold what has arrived and
// not what was announced, and the same connection's other streams are served.
func TestSlowLorisStreamsHoldWhatTheySentAndDelayNobody(t *testing.T) {
	aside(t)
	const hosts = 4
	streams := raced(500, 100)
	h := open(t, setup{})
	g := h.invite(t, goodClients)
	before := h.Collect()
	var slow []*line
	var served []*line
	head := wire.AppendHeader(nil, wire.Header{Flags: 0x0001, Length: wire.MaxPayload})
	g.steady(200*time.Millisecond, func() {
		for i := range hosts {
			p := h.from(t, byte(51+i)).dial()
			served = append(served, p.open())
			for range streams / hosts {
				l := p.open()
				l.raw(head)
				slow = append(slow, l)
			}
		}
		for range 3 {
			for _, l := range slow {
				l.raw([]byte{0})
			}
		}
	})
	held := h.Collect()
	t.Logf("before: %s", before)
	t.Logf("held:   %s", held)
	if grown := held.Resident - before.Resident; grown > 32<<20*slack() {
		t.Errorf("%d streams that announced 16 MiB each cost %.1f MiB", streams, float64(grown)/(1<<20))
	}
	for _, l := range served {
		l.alive("beside slow streams")
	}
}

// Connection limits: in all and from one address; what is refused is counted, those who are in stay, and a place that comes free
// is given out again.
func TestConnectionLimitsRefuseByReasonAndSpareThoseWhoAreIn(t *testing.T) {
	aside(t)
	h := open(t, setup{MaxConnections: 12, MaxPerIP: 8})
	good := h.from(t, 1).dial().open()
	one, other := h.from(t, 61), h.from(t, 62)
	var in []*peer
	perIP, all := 1, 1 // refusals that are due
	for range 8 {
		p, ghosts := one.enter()
		in, perIP = append(in, p), perIP+ghosts
	}
	refused(t, one)
	h.Counts("refused{per_ip_limit}", float64(perIP))
	for range 3 {
		p, ghosts := other.enter()
		in, all = append(in, p), all+ghosts
	}
	refused(t, other)
	h.Counts("refused{limit}", float64(all))
	good.alive("beside refused connections")
	_ = in[0].c.CloseWithError(0, "")
	eventually(t, "the place is free again", func() bool { return h.Look().Open < 12 })
	late, _ := other.enter()
	late.open().alive("a connection that found a place")
}

// enter dials until a connection is let in, and says how often it was refused before. On a slow machine a client sends its first
// packet again while the broker asks it to prove its address; the copy then looks like one more client, which holds a place
// until its handshake has timed out.
func (c *caller) enter() (p *peer, refusals int) {
	c.t.Helper()
	eventually(c.t, "a connection within the limit is let in", func() bool {
		ctx, cancel := timeout(patience)
		defer cancel()
		conn, err := c.try(ctx)
		var gaveUp *quic.HandshakeTimeoutError
		if errors.As(err, &gaveUp) { // the machine was too slow for it
			return false
		}
		if err != nil {
			refusals++
			return false
		}
		c.t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
		p = &peer{t: c.t, c: conn}
		return true
	})
	return p, refusals
}

// refused requires that no further connection gets in from there.
func refused(t *testing.T, from *caller) {
	t.Helper()
	ctx, cancel := timeout(patience)
	defer cancel()
	c, err := from.try(ctx)
	if err == nil {
		_ = c.CloseWithError(0, "")
		t.Error("a connection beyond the limit was let in")
	}
	if ctx.Err() != nil {
		t.Errorf("a connection beyond the limit was not told: %v", err)
	}
}

// Before the first stream has signed in, 64 streams may be open and no more; whoever is over is told why.
//
// mission 185
func TestStreamsBeyondTheLimitBeforeLoginCloseTheConnection(t *testing.T) {
	aside(t)
	h := open(t, setup{})
	p := h.from(t, 71).dial()
	for range wire.PreauthStreamsMax {
		p.bare().raw([]byte("F"))
	}
	h.Counts("felix_client_streams_total", wire.PreauthStreamsMax)
	if p.c.Context().Err() != nil {
		t.Fatal("the connection was closed at the limit already")
	}
	p.bare().raw([]byte("F"))
	p.closedWith(transport.CloseTooManyStreams)
	h.Counts("felix_client_connections_closed_total{too_many_streams}", 1)
	h.from(t, 72).dial().open().alive("another client")
}
