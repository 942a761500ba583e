package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// countHellos counts the handshakes that got as far as TLS.
func countHellos(hellos *atomic.Int64) change {
	return func(o *ListenOptions) {
		inner := o.TLS.GetConfigForClient
		o.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			hellos.Add(1)
			return inner(hello)
		}
	}
}

func TestFullListenerRefusesBeforeTheHandshakeAndRecovers(t *testing.T) {
	refused, hellos := new(recorder), new(atomic.Int64)
	h := openHouse(t, Policy{}, countHellos(hellos), func(o *ListenOptions) {
		o.MaxConnections, o.OnRefused = 2, refused.add
	})
	o := h.options(t, ClientTLSOptions{})
	first, _ := h.connect(t, o)
	h.connect(t, o)
	_, err := dialFor(t, o)
	if failed := wantDialKind(t, err, DialRefused); !failed.Retryable() {
		t.Error("a refusal is not retryable")
	}
	if refused.count(RefusedLimit) == 0 || hellos.Load() != 2 {
		t.Errorf("refused %d times, %d handshakes reached TLS, want 2", refused.count(RefusedLimit), hellos.Load())
	}
	Close(first, CloseShutdown)
	eventually(t, "the place is free again", func() bool { open, _ := h.Connections(); return open == 1 })
	h.connect(t, o)
}

func TestOneAddressCannotTakeEveryPlace(t *testing.T) {
	refused := new(recorder)
	h := openHouse(t, Policy{}, func(o *ListenOptions) { o.MaxPerIP, o.OnRefused = 1, refused.add })
	from := func(ip string) DialOptions {
		o := h.options(t, ClientTLSOptions{})
		o.LocalAddr = &net.UDPAddr{IP: net.ParseIP(ip)}
		return o
	}
	h.connect(t, from("127.0.0.1"))
	_, err := dialFor(t, from("127.0.0.1"))
	wantDialKind(t, err, DialRefused)
	if refused.count(RefusedPerIP) == 0 {
		t.Error("the refusal was not counted by its reason")
	}
	h.connect(t, from("127.0.0.2"))
}

func TestAcceptQueueIsBounded(t *testing.T) {
	const queue = 32
	failures := new(recorder)
	h := openHouse(t, Policy{}, countFailures(failures))
	o := h.options(t, ClientTLSOptions{})
	for range queue {
		must[*quic.Conn](t)(dialFor(t, o))
	}
	// The last handshakes may still be on their way into the queue, so that one more may fit for a moment.
	eventually(t, "a connection beyond the queue is refused", func() bool {
		conn, err := dialFor(t, o)
		if err != nil {
			wantDialKind(t, err, DialRefused)
		}
		return err != nil || failures.count(FailedQueueFull) > 0 || conn.Context().Err() != nil
	})
	failures.wait(t, FailedQueueFull, 1)
	for range queue {
		must[*quic.Conn](t)(h.Accept(within(t)))
	}
	h.connect(t, o)
}

// deafLink forwards the first datagram of a client and nothing else: a handshake that stalls.
func deafLink(t *testing.T, to net.Addr) string {
	t.Helper()
	in := must[*net.UDPConn](t)(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	out := must[*net.UDPConn](t)(net.DialUDP("udp4", nil, to.(*net.UDPAddr)))
	t.Cleanup(func() { in.Close(); out.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		n, _, err := in.ReadFrom(buf)
		if err == nil {
			_, _ = out.Write(buf[:n])
		}
	}()
	return in.LocalAddr().String()
}

func TestStalledHandshakeDelaysNobodyAndGivesItsPlaceBack(t *testing.T) {
	timeout := 300 * time.Millisecond
	for !passesStalled(t, timeout) { // a slow machine gets more
		if timeout *= 4; timeout > patience/2 {
			t.Fatalf("an honest client does not get in while another's handshake is stalled for %v", timeout/4)
		}
	}
}

// passesStalled reports whether an honest client got in before a stalled handshake was given up, which happens after the timeout.
func passesStalled(t *testing.T, timeout time.Duration) bool {
	t.Helper()
	failures := new(recorder)
	h := openHouse(t, Policy{}, countFailures(failures), func(o *ListenOptions) {
		o.MaxConnections = 8 // one unfinished handshake is already suspicious: honest clients prove their address and get in
		o.QUIC = ServerQUIC(ServerOptions{HandshakeTimeout: timeout})
	})
	o := h.options(t, ClientTLSOptions{})
	stalled := o
	stalled.Addr, stalled.QUIC = deafLink(t, h.Addr()), ClientQUIC(ClientOptions{HandshakeTimeout: 2 * patience})
	ctx, giveUp := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, _, err := Dial(ctx, stalled)
		done <- err
	}()
	givenUp := func() bool { return failures.count(FailedTimeout) > 0 }
	eventually(t, "the stalled handshake holds a place", func() bool { _, n := h.Connections(); return n == 1 || givenUp() })
	conn, err := dialFor(t, o)
	if err == nil {
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		context.AfterFunc(conn.Context(), cancel)
		_, err = h.Accept(ctx)
	}
	passed := err == nil && !givenUp()
	failures.wait(t, FailedTimeout, 1)
	giveUp()
	wantDialKind(t, <-done, DialCanceled)
	if open, handshaking := h.Connections(); passed && (open != 1 || handshaking != 0) {
		t.Errorf("%d connections, %d handshakes", open, handshaking)
	}
	return passed
}

func TestClosingTellsEveryClientAndLeavesNothing(t *testing.T) {
	h := openHouse(t, Policy{})
	o := h.options(t, ClientTLSOptions{})
	accepted, _ := h.connect(t, o)
	waiting := must[*quic.Conn](t)(dialFor(t, o))
	eventually(t, "both hold a place", func() bool { open, _ := h.Connections(); return open == 2 })
	for range 2 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantClose(t, ended(t, accepted), CloseShutdown)
	ended(t, waiting)
	if open, _ := h.Connections(); open != 0 {
		t.Errorf("%d connections left", open)
	}
	if _, err := h.Accept(within(t)); !errors.Is(err, ErrListenerClosed) {
		t.Errorf("accept after close: %v", err)
	}
}

func TestStopAcceptingKeepsOpenConnections(t *testing.T) {
	h := openHouse(t, Policy{})
	o := h.options(t, ClientTLSOptions{})
	client, server := h.connect(t, o)
	if err := h.StopAccepting(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Accept(within(t)); !errors.Is(err, ErrListenerClosed) {
		t.Errorf("accept: %v", err)
	}
	go echoOne(server)
	if got := ask(t, client, "still here?"); got != "still here?" {
		t.Errorf("answered %q", got)
	}
	o.QUIC = ClientQUIC(ClientOptions{HandshakeTimeout: 200 * time.Millisecond})
	_, err := dialFor(t, o)
	var failed *DialError
	if !errors.As(err, &failed) {
		t.Errorf("a stopped listener let a client in: %v", err)
	}
}

func TestAcceptEndsWithItsContext(t *testing.T) {
	h := openHouse(t, Policy{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestUnusableListenOptionsAreTypedErrors(t *testing.T) {
	ca := newTestCA(t)
	good := ServerTLS(issueSource(t, ca, LeafRequest{Names: []string{"localhost"}}), Policy{})
	taken := openHouse(t, Policy{})
	for name, o := range map[string]ListenOptions{
		"no TLS":         {Addr: "127.0.0.1:0"},
		"bad address":    {Addr: "127.0.0.1", TLS: good},
		"address in use": {Addr: taken.Addr().String(), TLS: good},
		"negative limit": {Addr: "127.0.0.1:0", TLS: good, MaxPerIP: -1},
	} {
		var failed *ListenError
		_, err := Listen(o)
		if !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), "listen on ") {
			t.Errorf("%s: got %v, want a *ListenError", name, err)
		}
	}
}

func TestSmallerSocketBuffersThanAskedAreAnEvent(t *testing.T) {
	events := new(recorder)
	openHouse(t, Policy{}, func(o *ListenOptions) {
		o.SocketBuffers = 1 << 30 // beyond what any kernel grants by default
		o.OnEvent = func(e Event) {
			if e.Advice != "" && strings.Contains(e.String(), string(e.Kind)) {
				events.add(string(e.Kind))
			}
		}
	})
	if events.count(string(EventSmallBuffer)) != 1 {
		t.Error("no event tells of the small buffers")
	}
}

func TestListenerServesIPv6AndCountsMappedAddressesAsIPv4(t *testing.T) {
	mapped := addressOf(&net.UDPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 1})
	plain := addressOf(&net.UDPAddr{IP: net.IPv4(10, 0, 0, 1).To4(), Port: 2})
	if mapped != plain {
		t.Errorf("%v and %v are counted apart", mapped, plain)
	}
	if probe, err := net.ListenPacket("udp6", "[::1]:0"); err != nil {
		t.Logf("no IPv6 here (%v): only the counting was checked", err)
		return
	} else if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	h := openHouse(t, Policy{}, func(o *ListenOptions) { o.Addr = "[::1]:0" })
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	go echoOne(server)
	if got := ask(t, client, "six"); got != "six" {
		t.Errorf("answered %q", got)
	}
}
