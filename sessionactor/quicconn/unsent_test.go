package quicconn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/transport"
)

const patience = 2 * time.Minute

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// mouth is a client's socket: while it is shut, nothing leaves.
type mouth struct {
	net.PacketConn
	shut atomic.Bool
}

func (m *mouth) WriteTo(p []byte, to net.Addr) (int, error) {
	if m.shut.Load() {
		return len(p), nil
	}
	return m.PacketConn.WriteTo(p, to)
}

// pair is a connection over the loopback network whose client grants windows of a gigabyte.
type pair struct {
	t      *testing.T
	broker *conn
	client *quic.Conn
	mouth  *mouth
}

func connect(t *testing.T) *pair { t.Helper(); return connectTo(t, 1<<30) }

// connectTo is connect with windows of another size.
func connectTo(t *testing.T, window uint64) *pair {
	t.Helper()
	now := time.Now()
	ca := must(transport.NewCA("test", now, nil))(t)
	cert, key, err := ca.Issue(transport.LeafRequest{Names: []string{"localhost"}, Now: now, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	l := must(transport.Listen(transport.ListenOptions{
		Addr: "127.0.0.1:0", TLS: transport.ServerTLS(must(transport.NewCertSource(cert, key))(t), transport.Policy{}),
		QUIC: transport.ServerQUIC(transport.ServerOptions{IdleTimeout: patience, HandshakeTimeout: patience}),
	}))(t)
	t.Cleanup(func() { _ = l.Close() })
	p := &pair{t: t, mouth: &mouth{PacketConn: must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)}}
	q := &quic.Transport{Conn: p.mouth}
	t.Cleanup(func() { _ = q.Close(); _ = p.mouth.Close() })
	p.client = must(q.Dial(within(t), l.Addr(), must(transport.ClientTLS(transport.ClientTLSOptions{CAPEM: ca.CertPEM, ServerName: "localhost"}))(t),
		transport.ClientQUIC(transport.ClientOptions{
			Windows:     transport.Windows{StreamInitial: window, StreamMax: window, ConnInitial: window, ConnMax: window},
			IdleTimeout: patience, HandshakeTimeout: patience,
		})))(t)
	t.Cleanup(func() { _ = p.client.CloseWithError(0, "") })
	p.broker = must(NewAcceptor(l, sessionactor.DefaultDelivery()).Accept(within(t)))(t).(*conn)
	return p
}

// lane opens a stream and returns both ends.
func (p *pair) lane() (sessionactor.Stream, *quic.Stream) {
	p.t.Helper()
	far := must(p.client.OpenStreamSync(within(p.t)))(p.t)
	must(far.Write([]byte{0}))(p.t)
	near := must(p.broker.AcceptStream(within(p.t)))(p.t)
	return near, far
}

func (p *pair) eventually(what string, cond func() bool) {
	p.t.Helper()
	for ctx := within(p.t); !cond(); {
		if ctx.Err() != nil {
			p.t.Fatalf("never: %s", what)
		}
		runtime.GC() // what is not known when it ends is counted until it is collected
	}
}

// tryAll tries pieces until one is refused, or until they are far too many.
func tryAll(t *testing.T, s sessionactor.SendStream, piece int) (taken int) {
	t.Helper()
	for p := make([]byte, piece); taken <= 4*streamUnsent; taken += piece {
		if err := s.TryWriteAll(p); err != nil {
			if !errors.Is(err, sessionactor.ErrWouldBlock) || !errors.Is(err, sessionactor.ErrUnsent) {
				t.Fatal(err)
			}
			return taken
		}
	}
	return taken
}

// Whatever windows a client grants: of what it does not acknowledge the transport is handed a bounded part, for each stream and for all of a
// connection, answers and events.
func TestAClientThatAcknowledgesNothingHasABoundedPartKept(t *testing.T) {
	const piece, streams = 16 << 10, 2 * connUnsent / streamUnsent
	p := connect(t)
	var lanes, events []sessionactor.SendStream
	for range streams {
		near, _ := p.lane()
		lanes, events = append(lanes, near), append(events, must(p.broker.OpenSendStream(within(t)))(t))
	}
	p.mouth.shut.Store(true)
	for kind, list := range map[string][]sessionactor.SendStream{"answers": lanes, "events": events} {
		if err := list[0].TryWriteAll(make([]byte, streamUnsent+1)); !errors.Is(err, sessionactor.ErrUnsent) {
			t.Errorf("%s: one of more than a stream may have: %v", kind, err)
		}
		total := 0
		for i, s := range list {
			n := tryAll(t, s, piece)
			if total += n; n > streamUnsent || i == 0 && n != streamUnsent {
				t.Errorf("%s: %d bytes of one stream were taken", kind, n)
			}
		}
		if total > connUnsent+streams*packetBytes || total < connUnsent-streams*piece {
			t.Errorf("%s: %d bytes of all streams were taken", kind, total)
		}
		if err := list[streams-1].TryWriteAll(make([]byte, packetBytes)); err != nil {
			t.Errorf("%s: a stream that has nothing may not have a packet's worth: %v", kind, err)
		}
	}
	for _, s := range append(lanes, events...) {
		s.CancelWrite()
	}
	if a, e := p.broker.answers.Load(), p.broker.events.Load(); a != 0 || e != 0 {
		t.Errorf("%d bytes of answers and %d of events are counted for streams that were broken off", a, e)
	}
}

// A Write returns once all that was tried before it has left: then as much may be tried again, and the client has all of it in its order.
func TestAWriteThatReturnsMakesRoomForWhatIsTried(t *testing.T) {
	const piece, rounds = 16 << 10, 4
	p := connect(t)
	s := must(p.broker.OpenSendStream(within(t)))(t)
	var want []byte
	text := func() []byte { return bytes.Repeat([]byte{byte(len(want) / piece)}, piece) }
	got := make(chan []byte)
	go func() {
		far, err := p.client.AcceptUniStream(within(t))
		if err != nil {
			close(got)
			return
		}
		b, _ := io.ReadAll(far)
		got <- b
	}()
	for range rounds {
		for tried := 0; ; tried += piece {
			x := text()
			want = append(want, x...)
			if err := s.TryWriteAll(x); err == nil {
				continue
			} else if !errors.Is(err, sessionactor.ErrUnsent) || tried > streamUnsent || tried < streamUnsent-2*piece {
				t.Fatalf("after %d bytes: %v", tried, err)
			}
			must(s.Write(x))(t)
			break
		}
		if n := p.broker.events.Load(); n != 0 {
			t.Fatalf("%d bytes are counted behind a Write", n)
		}
	}
	must(s.Write(nil))(t)
	must(0, s.TryWriteAll(text()))(t)
	want = append(want, text()...)
	must(s.Write(nil))(t) // waits for nothing
	if n := p.broker.events.Load(); n != piece {
		t.Errorf("%d bytes are counted, want %d", n, piece)
	}
	must(0, s.Close())(t)
	if b := <-got; !bytes.Equal(b, want) {
		t.Errorf("the client has %d bytes, want %d", len(b), len(want))
	}
	p.eventually("nothing is counted for a stream whose client has all of it", func() bool { return p.broker.events.Load() == 0 })
}

// What a stream left that was finished is counted until it is gone, so that opening another one is no way around the bound.
func TestAFinishedStreamCountsUntilItsClientHasIt(t *testing.T) {
	const each = streamUnsent
	p := connect(t)
	near, far := p.lane()
	p.mouth.shut.Store(true)
	must(0, near.TryWriteAll(make([]byte, each)))(t)
	must(0, near.Close())(t)
	near.CancelRead()
	near = nil
	for range 3 {
		runtime.GC()
	}
	if n := p.broker.answers.Load(); n != each-packetBytes {
		t.Errorf("%d bytes are counted, want %d", n, each-packetBytes)
	}
	p.mouth.shut.Store(false)
	if b := must(io.ReadAll(far))(t); len(b) != each {
		t.Errorf("the client has %d bytes, want %d", len(b), each)
	}
	_ = far.Close() // the broker takes nothing more
	p.eventually("nothing is counted any more", func() bool { return p.broker.answers.Load() == 0 })
}

// A client that stops a stream, and a connection that ends, leave nothing behind: no count, and no connection.
func TestWhatWasKeptIsLetGoOfWithItsStreamAndItsConnection(t *testing.T) {
	p := connect(t)
	stopped, far := p.lane()
	open, _ := p.lane()
	finished, _ := p.lane()
	tryAll(t, stopped, 16<<10)
	far.CancelRead(0)
	p.eventually("the broker has heard of it", func() bool { return stopped.Context().Err() != nil })
	if _, err := stopped.Write([]byte("x")); err == nil || p.broker.answers.Load() != 0 {
		t.Errorf("%v, %d bytes are counted", err, p.broker.answers.Load())
	}
	p.mouth.shut.Store(true)
	for _, s := range []sessionactor.Stream{open, finished} {
		must(0, s.TryWriteAll(make([]byte, streamUnsent)))(t)
	}
	must(0, finished.Close())(t)
	kept, answers := weak.Make(p.broker.c), p.broker.answers
	p.broker.Close(sessionactor.CloseShutdown)
	<-p.broker.Context().Done()
	if err := open.TryWriteAll([]byte("x")); err == nil {
		t.Error("a connection that has ended takes answers")
	}
	_ = open.Close()
	stopped, open, finished, p.broker = nil, nil, nil, nil
	p.eventually("the connection is let go of", func() bool { return kept.Value() == nil && answers.Load() == 0 })
}

// A stream that has ended is kept until its client says that it knows: subscribing and leaving again and again is no way to have more kept than
// a client that stays can have.
func TestEventStreamsWhoseEndIsNotAcknowledgedAreBounded(t *testing.T) {
	const most = 8
	p := connect(t)
	p.broker.streams.most = most
	p.mouth.shut.Store(true)
	for i := range most {
		s := must(p.broker.OpenSendStream(within(t)))(t)
		must(s.Write([]byte("hello")))(t)
		if i%2 == 0 {
			s.CancelWrite()
		} else {
			must(0, s.Close())(t)
		}
	}
	for range 3 {
		runtime.GC()
	}
	short, cancelShort := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancelShort()
	if _, err := p.broker.OpenSendStream(short); !errors.Is(err, sessionactor.ErrStreamsKept) {
		t.Fatalf("one more than may be kept: %v", err)
	}
	p.mouth.shut.Store(false)
	reading := p.client.Context()
	go func() {
		for far, err := p.client.AcceptUniStream(reading); err == nil; far, err = p.client.AcceptUniStream(reading) {
			_, _ = io.ReadAll(far)
		}
	}()
	p.eventually("those that ended count no more", func() bool { return p.broker.streams.used.Load() == 0 })
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.broker.OpenSendStream(canceled); err != nil && !errors.Is(err, context.Canceled) || p.broker.streams.used.Load() > 1 {
		t.Errorf("%v, and %d streams count", err, p.broker.streams.used.Load())
	}
	must(p.broker.OpenSendStream(within(t)))(t)
}

// Whether the memory of a node is collected is no business of a client: one that acknowledges the ends of its event streams is given others.
func TestAClientThatAcknowledgesTheEndsOfItsEventStreamsIsGivenOthersWithoutACollection(t *testing.T) {
	const most = 64
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // as with a large heap
	p := connect(t)
	p.broker.all.most, p.broker.collecting.pause = most, 10*time.Millisecond
	reading := p.client.Context()
	go func() {
		for far, err := p.client.AcceptUniStream(reading); err == nil; far, err = p.client.AcceptUniStream(reading) {
			_, _ = io.ReadAll(far)
		}
	}()
	for i := range 4 * most {
		s, err := p.broker.OpenSendStream(within(t))
		if err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
		must(s.Write([]byte("hello")))(t)
		must(0, s.Close())(t)
	}
}
