package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

var subscribe = wire.Subscribe{TenantID: tenant, Namespace: namespace, Stream: "orders"}

// Clients with other bits each get only what they offered: the answer to auth, acks, errors and events.
//
// mission 180, mission 186, mission 353
func TestEachClientGetsOnlyWhatItOffered(t *testing.T) {
	b := start(t)
	const served = `{"type":"auth_ok","server_flags":22143,"server_features":1107733541`
	for _, c := range []struct {
		name   string
		auth   *wire.Auth
		authed string
		ack    string // of a publish that is taken, and of one that is refused
		refuse string
		events string
		failed string
	}{
		{"nothing offered", nothing(), `{"type":"ok"}`,
			`0x0000 "{\"type\":\"publish_ok\",\"request_id\":7}"`,
			`0x0000 "{\"type\":\"publish_error\",\"request_id\":8,\"message\":\"stream not found: t1/default/none; if it was just created, repeat the request\"}"`,
			`0x0000 "{\"type\":\"event_batch\",\"tenant_id\":\"t1\",\"namespace\":\"default\",\"stream\":\"orders\",\"payloads\":[\"YQ==\",\"YmM=\"]}"`,
			`{"type":"error","message":"cache not found: t1/default/none; if it was just created, repeat the request"}`,
		},
		{"today's bits", today(), served + `,"publish_window":256}`,
			`0x0010 "\x00\x00\x00\x00\x00\x00\x00\x00\a\x00\x00"`,
			`0x0210 "\x01\x00\x00\x00\x00\x00\x00\x00\b\x00Mstream not found: t1/default/none; if it was just created, repeat the request\x00\x03\x02"`,
			`0x0004 "\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x02bc"`,
			`{"type":"error","message":"cache not found: t1/default/none; if it was just created, repeat the request","code":"not_found","retry":"retry_after"}`,
		},
		{"all bits and unknown ones", offering(0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF), served + `,"publish_window":256}`,
			`0x0010 "\x00\x00\x00\x00\x00\x00\x00\x00\a\x00\x00"`,
			`0x0210 "\x01\x00\x00\x00\x00\x00\x00\x00\b\x00Mstream not found: t1/default/none; if it was just created, repeat the request\x00\x03\x02"`,
			`0x4004 "\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02bc"`,
			`{"type":"error","message":"cache not found: t1/default/none; if it was just created, repeat the request","code":"not_found","retry":"retry_after"}`,
		},
		{"unknown bits", offering(0x8000, 0x8000_0000, 0xFFFF_FFF0), served + `}`,
			`0x0000 "{\"type\":\"publish_ok\",\"request_id\":7}"`,
			`0x0000 "{\"type\":\"publish_error\",\"request_id\":8,\"message\":\"stream not found: t1/default/none; if it was just created, repeat the request\"}"`,
			`0x0000 "{\"type\":\"event_batch\",\"tenant_id\":\"t1\",\"namespace\":\"default\",\"stream\":\"orders\",\"payloads\":[\"YQ==\",\"YmM=\"]}"`,
			`{"type":"error","message":"cache not found: t1/default/none; if it was just created, repeat the request"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := b.dial()
			p.t = t
			l, authed := p.open(c.auth)
			if authed != c.authed {
				t.Errorf("auth was answered\n%s, want\n%s", authed, c.authed)
			}
			l.raw(wire.AppendJSONFrame(nil, &subscribe))
			events, id := p.events()
			if got := string(l.next().payload); got != fmt.Sprintf(`{"type":"subscribed","subscription_id":%d}`, id) {
				t.Errorf("subscribe was answered %s", got)
			}
			l.raw(batchTo("orders", 7, "a", "bc"))
			l.raw(batchTo("none", 8, "a"))
			for want, got := range map[string]frame{c.ack: l.next(), c.refuse: l.next(), c.events: untimed(events.next())} {
				if got.String() != want {
					t.Errorf("got\n%s, want\n%s", got, want)
				}
			}
			l.says(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "none", Key: "k"}, c.failed)
		})
	}
}

// untimed is an event frame without the times of its records, of which each stands before its length.
func untimed(f frame) frame {
	if !f.flags.Has(wire.FlagEventTimestamps) {
		return f
	}
	for rest := f.payload[4:]; len(rest) >= 12; rest = rest[12+binary.BigEndian.Uint32(rest[8:]):] {
		clear(rest[:8])
	}
	return f
}

// A get is answered on its stream, under its request id.
//
// mission 174, mission 190, mission 191, mission 323
func TestOneQUICConnectionPublishesSubscribesPutsAndGetsAtTheSameTime(t *testing.T) {
	b := start(t)
	p := b.dial()
	l, _ := p.open(today())
	l.raw(wire.AppendJSONFrame(nil, &subscribe))
	events, _ := p.events()
	l.next()
	const publishers, batches, caches = 3, 40, 4
	var all sync.WaitGroup
	for i := range publishers {
		l, _ := p.open(today())
		all.Go(func() {
			for n := range uint64(batches) {
				l.raw(batchTo("orders", n, fmt.Sprintf("%d/%d", i, n)))
			}
			for n := range uint64(batches) {
				f, err := l.read()
				ack, ackErr := wire.DecodePublishAck(f.flags, f.payload)
				if err != nil || ackErr != nil || ack.RequestID != n || ack.Refusal != nil {
					t.Errorf("answer %d: %s, %v", n, f, err)
				}
			}
		})
	}
	for i := range caches {
		l, _ := p.open(today())
		all.Go(func() {
			for n := range 30 {
				key, value := fmt.Sprint("key-", i), fmt.Appendf(nil, "value-%d", n)
				l.says(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: key, Value: value, RequestID: wire.Some(uint64(n))}, fmt.Sprintf(`{"type":"cache_ok","request_id":%d}`, n))
				f := l.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: key, RequestID: wire.Some(uint64(n))})
				m, err := wire.DecodeJSON(f.payload)
				if v, ok := m.(*wire.CacheValue); err != nil || !ok || !bytes.Equal(v.Value.V, value) || v.RequestID != wire.Some(uint64(n)) {
					t.Errorf("get: %s", f)
				}
			}
		})
	}
	var got []string
	for len(got) < publishers*batches {
		f := events.next()
		e := must(wire.DecodeEventBatch(f.flags, f.payload))(t)
		for payload, _, ok := e.Next(); ok; payload, _, ok = e.Next() {
			got = append(got, string(payload))
		}
	}
	all.Wait()
	for i := range publishers {
		next := 0
		for _, e := range got {
			if e == fmt.Sprintf("%d/%d", i, next) {
				next++
			}
		}
		if next != batches {
			t.Errorf("publisher %d: %d events in order, want %d", i, next, batches)
		}
	}
	if n := b.metric("felix_client_connections_total"); n != 1 {
		t.Errorf("%v connections were counted, want 1", n)
	}
}

// Over a thousand streams at once, and then as many as one likes: a finished stream gives its place back.
func TestMoreThanAThousandStreamsOnOneConnection(t *testing.T) {
	b := start(t)
	p := b.dial()
	auth := wire.AppendJSONFrame(nil, nothing())
	var lines []*line
	first, _ := p.open(nothing())
	lines = append(lines, first)
	for range wire.MaxStreams - 1 {
		l := p.bare()
		l.raw(auth)
		lines = append(lines, l)
	}
	for i, l := range lines {
		if i > 0 {
			l.next()
		}
		l.raw(batchTo("orders", uint64(i), "x"))
	}
	for i, l := range lines {
		if want, got := fmt.Sprintf(`{"type":"publish_ok","request_id":%d}`, i), string(l.next().payload); got != want {
			t.Fatalf("stream %d: %s", i, got)
		}
		l.finish()
	}
	for i := range effort.Size("stream_churn_rounds") {
		l, answer := p.open(nothing())
		if answer != `{"type":"ok"}` {
			t.Fatalf("stream %d: %s", i, answer)
		}
		_ = l.s.Close()
		if _, err := l.read(); err == nil {
			t.Fatalf("stream %d: more than an answer", i)
		}
	}
	if n := b.metric("felix_client_connections_total"); n != 1 {
		t.Errorf("%v connections were counted, want 1", n)
	}
}

// mission 8
func TestClientsAreServedWithAndWithoutALPN(t *testing.T) {
	b := start(t)
	for _, c := range []struct {
		offered    []string
		negotiated string
	}{{nil, ""}, {[]string{"felix/1"}, "felix/1"}, {[]string{"h3", "felix/1"}, "felix/1"}} {
		p := b.dial(c.offered...)
		if got := p.c.ConnectionState().TLS.NegotiatedProtocol; got != c.negotiated {
			t.Errorf("offered %q: negotiated %q, want %q", c.offered, got, c.negotiated)
		}
		if _, answer := p.open(nothing()); answer != `{"type":"ok"}` {
			t.Errorf("offered %q: auth was answered %s", c.offered, answer)
		}
	}
}

// A client that is signed in cannot get a write in by the protocol between brokers.
//
// mission 2, mission 4
func TestAFrameOfTheInternalProtocolEndsItsStreamAndWritesNothing(t *testing.T) {
	b := start(t)
	p := b.dial()
	other, _ := p.open(nothing())
	for _, signedIn := range []bool{true, false} {
		l := p.bare()
		if signedIn {
			l.ask(nothing())
		}
		// In one write: after the first frame the broker may stop the stream at any moment, and a second write would be refused.
		l.raw(append(append([]byte("FLXI"), batchTo("orders", 1, "smuggled")[4:]...), batchTo("orders", 2, "behind it")...))
		if f, err := l.read(); err == nil {
			t.Errorf("signed in %v: answered %s", signedIn, f)
		}
		select {
		case <-l.s.Context().Done(): // the broker reads no more
		case <-within(t).Done():
			t.Errorf("signed in %v: the broker did not stop the stream", signedIn)
		}
	}
	other.raw(batchTo("orders", 3, "honest")) // the connection goes on
	other.next()
	if n := b.metric("felix_published_records_total"); n != 1 {
		t.Errorf("%v records were published, want 1", n)
	}
}

func closeCode(t *testing.T, p *peer, want quic.ApplicationErrorCode, reason string) {
	t.Helper()
	select {
	case <-p.c.Context().Done():
	case <-within(t).Done():
		t.Fatal("the connection was not closed")
	}
	closedBy(t, context.Cause(p.c.Context()), want, reason)
}

func closedBy(t *testing.T, err error, want quic.ApplicationErrorCode, reason string) {
	t.Helper()
	var app *quic.ApplicationError
	if !errors.As(err, &app) || !app.Remote || app.ErrorCode != want || reason != "" && app.ErrorMessage != reason {
		t.Errorf("closed by %v, want code %d %q from the broker", err, want, reason)
	}
}

func TestClosingTellsTheClientWhy(t *testing.T) {
	t.Run("no authentication in time", func(t *testing.T) {
		b := start(t, func(o *Options) { o.AuthTimeout = 50 * time.Millisecond })
		c, err := b.try()
		if err != nil { // the time was up before the dialer looked
			closedBy(t, err, transport.CloseAuthTimeout, "authentication timeout")
			return
		}
		closeCode(t, &peer{t: t, c: c}, transport.CloseAuthTimeout, "authentication timeout")
	})
	t.Run("too many streams before it", func(t *testing.T) {
		b := start(t)
		p := b.dial()
		for range wire.PreauthStreamsMax + 1 {
			p.bare().raw([]byte{'F'})
		}
		closeCode(t, p, transport.CloseTooManyStreams, "")
	})
	t.Run("drain", func(t *testing.T) {
		b := start(t)
		p := b.dial()
		l, _ := p.open(today())
		l.raw(wire.AppendJSONFrame(nil, &subscribe))
		events, _ := p.events()
		l.next()
		l.raw(batchTo("orders", 1, "last"))
		l.next()
		if f := events.next(); !bytes.HasSuffix(f.payload, []byte("last")) {
			t.Errorf("the reader got %s", f)
		}
		if err := b.node.Drain(within(t)); err != nil {
			t.Fatal(err)
		}
		if f, err := events.read(); err == nil {
			t.Errorf("and then %s", f)
		}
		closeCode(t, p, transport.CloseShutdown, "shutting down")
	})
}

func TestStoppingAnEventStreamEndsItsSubscription(t *testing.T) {
	b := start(t)
	p := b.dial()
	l, _ := p.open(today())
	l.raw(wire.AppendJSONFrame(nil, &subscribe))
	events, _ := p.events()
	l.next()
	eventually(t, "the subscription is counted", func() bool { return b.metric("felix_subscribers") == 1 })
	events.r.(*quic.ReceiveStream).CancelRead(0)
	eventually(t, "the subscription is gone", func() bool { return b.metric("felix_subscribers") == 0 })
}

func TestARefusedTokenEndsItsStreamAndTheConnectionStays(t *testing.T) {
	b := start(t)
	p := b.dial()
	bad := today()
	bad.Token = "bad"
	l, answer := p.open(bad)
	if answer != `{"type":"error","message":"unauthorized: token rejected","code":"unauthenticated","retry":"fatal"}` {
		t.Errorf("answered %s", answer)
	}
	if f, err := l.read(); err == nil {
		t.Errorf("and then %s", f)
	}
	if _, answer := p.open(nothing()); answer != `{"type":"ok"}` {
		t.Errorf("the next stream was answered %s", answer)
	}
}

// idle is a connection that does nothing until it is closed.
type idle struct {
	sessionactor.Conn
	ctx    context.Context
	cancel context.CancelFunc
}

func newIdle() idle {
	ctx, cancel := context.WithCancel(context.Background())
	return idle{ctx: ctx, cancel: cancel}
}

func (c idle) Close(sessionactor.CloseCode) { c.cancel() }
func (c idle) Context() context.Context     { return c.ctx }
func (idle) AcceptStream(ctx context.Context) (sessionactor.Stream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (idle) AcceptReceiveStream(ctx context.Context) (sessionactor.ReceiveStream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// flood hands out connections without end, until it is stopped.
type flood struct {
	stopped chan struct{}
	given   chan struct{}
}

func (f flood) Accept(ctx context.Context) (sessionactor.Conn, error) {
	select {
	case f.given <- struct{}{}:
		return newIdle(), nil
	case <-f.stopped:
	case <-ctx.Done():
	}
	return nil, errors.New("stopped")
}

func (f flood) StopAccepting() error { close(f.stopped); return nil }

// manualScheduler runs turns when it is told to.
type manualScheduler struct {
	mu   sync.Mutex
	list []func()
}

func (m *manualScheduler) Schedule(run func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, run)
}

func (m *manualScheduler) run() {
	m.mu.Lock()
	list := slices.Clone(m.list)
	m.list = nil
	m.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// A listener whose mailbox is full of new connections is not taken for one that has ended: nothing would be drained then.
func TestADrainWaitsForRoomInAMailboxThatIsFull(t *testing.T) {
	turns, clock := &manualScheduler{}, actors.NewManualClock(time.Unix(1_700_000_000, 0))
	n := must(New(Options{Clock: clock, Events: actors.DiscardEvents(), Registerer: prometheus.NewRegistry(), Rand: func() uint64 { return 1 }, Scheduler: turns, Limits: DefaultLimits(), Auth: gatekeeper{}}))(t)
	f := flood{stopped: make(chan struct{}), given: make(chan struct{})}
	if err := n.Listen(f); err != nil {
		t.Fatal(err)
	}
	turns.run()
	for range 200 { // the mailbox takes 64
		<-f.given
	}
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Drain(expired); !errors.Is(err, context.Canceled) {
		t.Errorf("a drain that found no room says %v", err)
	}
	drained := make(chan error, 1)
	go func() { drained <- n.Drain(within(t)) }()
	for over := false; !over; {
		turns.run()
		select {
		case err := <-drained:
			if err != nil {
				t.Error(err)
			}
			over = true
		case <-f.given:
			clock.Advance(drainRetry)
		case <-f.stopped:
			clock.Advance(drainRetry) // the sessions linger, too
		}
	}
	n.System.StopAll()
	eventually(t, "everything has ended", func() bool { turns.run(); return len(n.System.Live()) == 0 })
	if err := n.Close(within(t)); err != nil {
		t.Error(err)
	}
}

func TestANodeWhoseListenerEndsSaysSo(t *testing.T) {
	b := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := b.node.Failed(ctx)
	b.node.listener.Stop()
	select {
	case x := <-failed:
		if x.Path != "sessions" {
			t.Errorf("%s ended", x.Path)
		}
	case <-within(t).Done():
		t.Error("nobody was told")
	}
	cancel()
	if err := b.node.Drain(within(t)); err != nil { // what has ended needs no drain
		t.Error(err)
	}
}

func TestTheSumOfTheDefaultLimitsIsTheDocumentedOne(t *testing.T) {
	l := DefaultLimits()
	if l.TailBytes != 256<<20 || l.CacheBytes != 256<<20 || l.PublishBytes != 64<<20 || l.PublishConnBytes != 16<<20 || l.PublishWindow != 256 {
		t.Errorf("%+v", l)
	}
}
