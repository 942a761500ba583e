package sessionactor

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

func manual() *actors.ManualClock { return actors.NewManualClock(time.Unix(1_700_000_000, 0)) }

func TestOnlySoManyStreamsAreReadAtOnceBeforeTheyAuthenticated(t *testing.T) {
	const places, streams = 3, 12
	x := open(t, setting{change: func(o *Options) { o.PreauthStreams = places }})
	c := x.connect()
	began := make(chan int, streams)
	var lines []*line
	for i := range streams {
		s := c.stream(func() { began <- i })
		lines = append(lines, &line{t: t, s: s, h: s.in, w: s.out})
	}
	for done := range streams {
		i := want(t, began, "the next stream to be read")
		// The places are taken: this many more may have been begun, and no others.
		if waiting := len(began); waiting > places-1 {
			t.Fatalf("after %d streams authenticated, %d more are read, want at most %d", done, waiting+1, places)
		}
		if f := lines[i].ask(today()); f.message.MessageType() != "auth_ok" {
			t.Fatalf("stream %d: %q", i, f.payload)
		}
	}
	// A stream that ended without authenticating gives its place back, too.
	for i := range 2 * places {
		l := bare(t, c)
		bad := today()
		bad.Token = "bad"
		if f := refused(t, l.ask(bad)); f.Code != wire.CodeUnauthenticated || !strings.Contains(f.Message, "token") {
			t.Fatalf("stream %d: %+v", i, f)
		}
		l.over()
	}
	if n := x.metric("felix_auth_failures_total"); n != 2*places {
		t.Errorf("%v failures were counted", n)
	}
}

func TestMoreThan64StreamsBeforeTheFirstAuthCloseTheConnection(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	for range wire.PreauthStreamsMax {
		c.stream(nil)
	}
	eventually(t, "64 streams were taken", func() bool { return x.metric("felix_client_streams_total") == wire.PreauthStreamsMax })
	if c.ctx.Err() != nil {
		t.Fatal("64 streams closed the connection")
	}
	c.publishOnly()
	closedWith(t, c, CloseTooManyStreams)
	// Once one has authenticated, the number is not bounded that way.
	c = x.connect()
	l := dial(t, c, today())
	for range 3 * wire.PreauthStreamsMax {
		dial(t, c, today())
	}
	l.publish("orders", "x")
}

func TestAConnectionOnWhichNothingAuthenticatesIsClosedInTime(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock, change: func(o *Options) { o.AuthTimeout = 7 * time.Second }})
	began := clock.Now()
	silent := x.connect()
	eventually(t, "the session waits", func() bool { at, _ := clock.Next(); return at.Equal(began.Add(x.opts.AuthTimeout)) })
	clock.Advance(x.opts.AuthTimeout - 1)
	if silent.ctx.Err() != nil {
		t.Fatal("closed too early")
	}
	clock.Advance(1)
	closedWith(t, silent, CloseAuthTimeout)
	eventually(t, "the session is gone", func() bool { return x.metric("felix_client_connections") == 0 })
	if n := x.metric("felix_quic_auth_timeout_total"); n != 1 {
		t.Errorf("%v timeouts were counted", n)
	}
}

func TestAStreamThatAuthenticatesTooLateClosesItsConnection(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock})
	c := x.connect()
	l := dial(t, c, today())
	clock.Advance(time.Hour)
	l.publish("orders", "an authenticated connection stays")
	began := make(chan struct{})
	late := c.stream(func() { close(began) })
	want(t, began, "the stream to be read")
	if _, err := late.Write([]byte("FLX1")); err != nil {
		t.Fatal(err)
	}
	clock.Advance(x.opts.AuthTimeout)
	closedWith(t, c, CloseAuthTimeout)
	eventually(t, "the session is gone", func() bool { return x.metric("felix_client_connections") == 0 })
	if n := x.metric("felix_quic_auth_timeout_total"); n != 1 {
		t.Errorf("%v timeouts were counted", n)
	}
}

// mission 185
func TestAFrameOverTheLimitBeforeAuthEndsTheStreamUnread(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	for name, b := range map[string][]byte{
		"too long": wire.AppendHeader(nil, wire.Header{Length: wire.MaxPreauthPayload + 1}),
		"4 GiB":    wire.AppendHeader(nil, wire.Header{Length: 1<<32 - 1}),
		// mission 4: a frame of the protocol between brokers
		"another protocol": []byte("FLXI\x00\x01\x00\x00\x00\x00\x00\x00"),
		"version 2":        []byte("FLX1\x00\x02\x00\x00\x00\x00\x00\x00"), // mission 183
	} {
		l := bare(t, c)
		l.raw(b)
		if f, err := l.read(); err == nil {
			t.Errorf("%s: answered %q", name, f.payload)
		}
		eventually(t, "the client is told to stop", func() bool { _, err := l.w.Write([]byte{0}); return err == errStopped })
	}
	if c.ctx.Err() != nil {
		t.Error("the connection was closed")
	}
}

// A stream that would exceed the bound on unfinished frames is told to repeat; those that are within go on.
//
// mission 170
func TestUnfinishedFramesAreBoundedForTheNode(t *testing.T) {
	const frameSize = 300 << 10
	x := open(t, setting{change: func(o *Options) { o.Partial = storage.NewBudget(frameSize + 100<<10) }})
	c := x.connect()
	first, second := dial(t, c, today()), dial(t, c, today())
	whole := batchTo("orders", 5, wire.AckPerBatch, strings.Repeat("x", frameSize))
	cut := len(whole) - 10
	first.raw(whole[:cut])
	eventually(t, "the first frame is booked", func() bool { return x.opts.Partial.Used() >= frameSize })
	second.raw(whole[:cut])
	if f := refused(t, second.next()); f.Code != wire.CodeOverloaded || f.Retry != wire.RetryAfter || f.Reason != "partial_frames" {
		t.Errorf("%+v", f)
	}
	second.over()
	first.raw(whole[cut:])
	if f := first.next(); f.ack.RequestID != 5 || f.ack.Refusal != nil {
		t.Errorf("%+v", f.ack)
	}
	eventually(t, "the budget is free", func() bool { return x.opts.Partial.Used() == 0 })
	// A stream that ends inside its frame gives back what was booked.
	third := dial(t, c, today())
	third.raw(whole[:cut])
	eventually(t, "the third frame is booked", func() bool { return x.opts.Partial.Used() >= frameSize })
	third.w.CancelWrite()
	eventually(t, "the budget is free", func() bool { return x.opts.Partial.Used() == 0 })
}

// mission 205, mission 206
func TestAPublishThatFindsTheShardsQueueFullIsAnsweredOverloaded(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l, bystander := dial(t, c, today()), dial(t, c, today())
	s := bystander.subscribe(c, subscribeTo("orders", wire.StartLatest))
	entered := x.sabotage.hold("orders/0")
	l.raw(batchTo("orders", 0, wire.AckPerBatch, "first"))
	want(t, entered, "the shard to stand still")
	// 8 MiB wait at most: of 160 publishes of 64 KiB, some are refused. Two streams, so that no window is in the way.
	const n, size = 160, 64 << 10
	payload := strings.Repeat("x", size)
	for i := range uint64(n) {
		l.raw(batchTo("orders", i+1, wire.AckPerBatch, payload))
	}
	for range 5 {
		bystander.raw(batchTo("orders", 0, wire.AckNone, payload)) // these are dropped: nobody is told
	}
	if f := bystander.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k"}); f.message.MessageType() != "cache_value" {
		t.Errorf("while the queue is full: %q", f.payload)
	}
	eventually(t, "all publishes are read", func() bool { return l.w.unread() == 0 })
	x.sabotage.release()
	taken := 0
	for i := range uint64(n + 1) {
		f := l.next()
		if f.ack.RequestID != i {
			t.Fatalf("answer %d names request %d", i, f.ack.RequestID)
		}
		if f.ack.Refusal == nil {
			taken++
			continue
		}
		if r := refused(t, f); r.Code != wire.CodeOverloaded || r.Retry != wire.RetryAfter || r.Reason != wire.ReasonPublishQueueFull || r.RetryAfterMS != queueFullPause {
			t.Fatalf("answer %d: %+v", i, r)
		}
	}
	if taken < 100 || taken > 8<<20/size+1 {
		t.Errorf("%d publishes were taken", taken)
	}
	s.events(taken) // what was refused was not written
	if n := x.metric("felix_tenant_publish_queue_full_total"); int(n) != 161-taken+5 {
		t.Errorf("%v full queues were counted, want %d refused and 5 dropped", n, 161-taken)
	}
}

// mission 197, mission 214: against shards that stand still, a publisher is held back by flow control, and the broker holds no
// more than the connection's bound. One shard has half of it at most, so it takes three.
func TestAPublisherIsHeldBackWhenItsConnectionHasItsBytesInFlight(t *testing.T) {
	const bound, size = 256 << 10, 16 << 10
	names := []string{"a", "b", "c"}
	x := open(t, setting{desired: streams("a", "b", "c", "d"), change: func(o *Options) { o.ConnBytes = bound }})
	c := x.connect(func(c *memConn) { c.window = 64 << 10 })
	l := dial(t, c, today())
	other := dial(t, x.connect(), today())
	x.pause(names...)
	const n = 100
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range uint64(n) {
			l.raw(batchTo(names[i%3], i, wire.AckPerBatch, strings.Repeat("x", size)))
		}
	})
	eventually(t, "the bound is reached", func() bool {
		_, inFlight := x.opts.Frames.InUse()
		return inFlight > bound-2*size && l.w.unread() > c.window-size
	})
	if _, inFlight := x.opts.Frames.InUse(); inFlight > bound {
		t.Errorf("%d bytes are in flight, want at most %d", inFlight, bound)
	}
	other.publish("d", "another connection has its own") // the same node's budget, another shard
	if shed := x.metric("felix_tenant_publish_queue_full_total"); shed != 0 {
		t.Errorf("%v were refused, although no shard has half", shed)
	}
	x.heal(names...)
	if done := l.acks(0, n); done < n/2 { // one of the three may be slower now, and have half
		t.Errorf("%d of %d were done", done, n)
	}
	writing.Wait()
}

// mission 193: a client that does not read its answers is not read any more once enough of them wait, and misses none.
func TestAClientThatDoesNotReadItsAnswersIsHeldBackAndMissesNone(t *testing.T) {
	x := open(t, setting{})
	c := x.connect(func(c *memConn) { c.window = 4 << 10 })
	l := dial(t, c, today())
	value := bytes.Repeat([]byte("v"), 48<<10)
	if f := l.ask(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: value}); f.message.MessageType() != "ok" {
		t.Fatalf("put: %q", f.payload)
	}
	const n = 200
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range uint64(n) {
			l.send(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", RequestID: wire.Some(i)})
		}
	})
	eventually(t, "the client is held back", func() bool { return l.w.unread() > c.window-200 })
	if hits := x.metric("felix_cache_requests_total"); hits > 1+2*sizeInAnswers(len(value)) {
		t.Errorf("%v requests were performed for a client that reads nothing", hits)
	}
	for i := range uint64(n) {
		f := l.next()
		v, ok := f.message.(*wire.CacheValue)
		if !ok || v.RequestID.V != i || len(v.Value.V) != len(value) {
			t.Fatalf("answer %d: %.100q", i, f.payload)
		}
	}
	writing.Wait()
}

// sizeInAnswers is how many answers with a value of n bytes a stream may owe: OutLimit and one more.
func sizeInAnswers(n int) float64 { return float64(1<<20/(n*4/3) + 2) }

func TestMoreConnectionsThanTheListenerHasRoomForAreToldToTryAgain(t *testing.T) {
	hand := &handDriven{}
	sys := actors.NewSystem(actors.Options{Scheduler: hand, Clock: manual()})
	a := newMemAcceptor()
	opts := DefaultOptions()
	registry := prometheus.NewRegistry()
	opts.Clock, opts.Metrics = sys.Clock(), NewMetrics(registry)
	ref := must(SpawnListener(sys, opts, a))(t)
	hand.all() // it has started and accepts; from here on it does not get a turn
	var conns []*memConn
	for range listenerBounds.DataItems + 1 {
		c := newMemConn(opts.Clock)
		conns = append(conns, c)
		a.conns <- Conn(c)
	}
	closedWith(t, conns[len(conns)-1], CloseOverload)
	if n := sum(must(registry.Gather())(t), "felix_client_connections_closed_total"); n != 1 {
		t.Errorf("%v closed connections were counted", n)
	}
	ref.Stop()
	hand.all()
	for _, c := range conns[:len(conns)-1] {
		closedWith(t, c, CloseShutdown)
	}
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// handDriven is a Scheduler that runs nothing by itself.
type handDriven struct {
	mu   sync.Mutex
	list []func()
}

func (h *handDriven) Schedule(run func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, run)
}

func (h *handDriven) all() {
	for {
		h.mu.Lock()
		if len(h.list) == 0 {
			h.mu.Unlock()
			return
		}
		f := h.list[0]
		h.list = h.list[1:]
		h.mu.Unlock()
		f()
	}
}

// mission 228, mission 229, mission 230, mission 231, mission 232
func TestCacheRequests(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock})
	l := dial(t, x.connect(), today())
	put := func(cache, key, value string, ttl wire.Opt[uint64]) {
		t.Helper()
		m := &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: cache, Key: key, Value: []byte(value), TTLMillis: ttl, RequestID: wire.Some(uint64(1))}
		if f := l.ask(m); f.message.MessageType() != "cache_ok" {
			t.Fatalf("put: %q", f.payload)
		}
	}
	value := func(m wire.Message) string {
		t.Helper()
		f := l.ask(m)
		v, ok := f.message.(*wire.CacheValue)
		if !ok {
			t.Fatalf("%+v was answered %q", m, f.payload)
		}
		if !v.Value.Set {
			if !bytes.Contains(f.payload, []byte(`"value":null`)) {
				t.Errorf("a miss without null: %q", f.payload)
			}
			return "null"
		}
		return string(v.Value.V)
	}
	get := func(cache, key string) string {
		return value(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: cache, Key: key})
	}
	remove := func(cache, key string) string {
		return value(&wire.CacheDelete{TenantID: tenant, Namespace: namespace, Cache: cache, Key: key})
	}
	put("users", "k", "forever", wire.Opt[uint64]{})
	put("wide", "k", "short", wire.Some(uint64(1000)))
	for step, c := range []struct{ got, want string }{
		{get("users", "k"), "forever"}, {get("wide", "k"), "short"}, {get("users", "other"), "null"},
		{func() string { clock.Advance(time.Second); return get("wide", "k") }(), "short"}, // a life is never shorter than was asked for
		{func() string { clock.Advance(time.Millisecond); return get("wide", "k") }(), "null"},
		{remove("wide", "k"), "null"}, // it had ended
		{get("users", "k"), "forever"}, {remove("users", "k"), "forever"}, {remove("users", "k"), "null"}, {get("users", "k"), "null"},
	} {
		if c.got != c.want {
			t.Errorf("step %d: got %q, want %q", step, c.got, c.want)
		}
	}
	for op, m := range map[string]wire.Message{
		"get": &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "none", Key: "k"}, "put": &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "none", Key: "k"},
		"delete": &wire.CacheDelete{TenantID: tenant, Namespace: namespace, Cache: "orders", Key: "k"}, // a stream of that name is no cache
	} {
		if f := refused(t, l.ask(m)); f.Code != wire.CodeNotFound || !strings.HasPrefix(f.Message, "cache not found") {
			t.Errorf("%s: %+v", op, f)
		}
	}
	// A value that does not fit the node's memory is refused, not stored.
	giant := &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "giant", Value: make([]byte, cacheBytes)}
	if f := refused(t, l.ask(giant)); f.Code != wire.CodeLimitExceeded || get("users", "giant") != "null" {
		t.Errorf("a value as large as the memory: %+v", f)
	}
	for i := range 8 { // mission 235: the memory is bounded, the oldest go
		put("users", fmt.Sprint(i), string(giant.Value[:cacheBytes/5]), wire.Opt[uint64]{})
	}
	if used := x.caches.Used(); used > cacheBytes || x.caches.Evicted() == 0 {
		t.Errorf("%d bytes are used of %d, %d entries were evicted", used, cacheBytes, x.caches.Evicted())
	}
}
