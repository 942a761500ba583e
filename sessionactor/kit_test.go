package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// Nothing is left running when all tests have ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// patience is how long a test waits for what must come.
const patience = time.Minute

// cacheBytes is the memory of a site's caches.
const cacheBytes = 2 << 20

const (
	tenant    = "t1"
	namespace = "default"
)

// rights are the grants of a token.
type rights struct {
	denied  sessioncore.Action
	subject string // "" is alice
}

func (rights) Tenant() string { return tenant }
func (r rights) Subject() string {
	if r.subject == "" {
		return "alice"
	}
	return r.subject
}
func (r rights) Allows(a sessioncore.Action, _ sessioncore.Object) bool {
	return a != r.denied
}

// gatekeeper is the Authenticator of the tests: the tokens below and no others.
type gatekeeper struct{}

func (gatekeeper) Authenticate(in, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	switch {
	case in != tenant:
	case token == "good":
		return rights{}, nil
	case token == "bob":
		return rights{subject: "bob"}, nil
	case token == "read only":
		return rights{denied: sessioncore.ActionPublish}, nil
	case token == "write only":
		return rights{denied: sessioncore.ActionSubscribe}, nil
	case token == "no consume":
		return rights{denied: sessioncore.ActionGroupConsume}, nil
	case token == "no manage":
		return rights{denied: sessioncore.ActionGroupManage}, nil
	}
	f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
	return nil, &f
}

// site is a broker of this package: sessions over connections in memory, with real shards behind them.
type site struct {
	t        testing.TB
	sys      *actors.System
	opts     Options
	host     actors.Ref[shardactor.HostMessage]
	listener actors.Ref[ListenerMessage]
	acceptor *memAcceptor
	registry *prometheus.Registry
	sabotage *sabotage
	disk     *siteDisk
	caches   *reading.CachePool
	readers  *storage.Readers
	version  uint64
	applied  chan uint64
	conns    []*memConn
	close    func()
}

type setting struct {
	clock       actors.Clock
	ringBatches int
	ringBytes   int64
	policy      storage.Policy
	windowBytes int64
	readerBytes int64
	timed       bool // every request is
	change      func(*Options)
	disk        *siteDisk // of the durable streams; nil is none
	desired     []route.Assignment
}

func stream(name string, shards uint32) route.Assignment {
	return route.Assignment{Name: route.Name{Kind: route.Stream, Tenant: tenant, Namespace: namespace, Name: name}, Incarnation: 1, Generation: 1, Shards: shards}
}

func cache(name string, shards uint32) route.Assignment {
	a := stream(name, shards)
	a.Name.Kind = route.Cache
	return a
}

// open starts a site with two streams, "orders" of one shard and "wide" of four, and two caches of one and four.
func open(t testing.TB, s setting) *site {
	t.Helper()
	if s.clock == nil {
		s.clock = actors.RealClock()
	}
	if s.ringBatches == 0 {
		s.ringBatches, s.ringBytes = 16384, 64<<20
	}
	if s.windowBytes == 0 {
		s.windowBytes = wire.SubscriberQueueBytes
	}
	if s.readerBytes == 0 {
		s.readerBytes = wire.NodeReaderBytes
	}
	if s.desired == nil {
		s.desired = []route.Assignment{stream("orders", 1), stream("wide", 4), cache("users", 1), cache("wide", 4)}
	}
	x := &site{t: t, registry: prometheus.NewRegistry(), acceptor: newMemAcceptor(), sabotage: &sabotage{}, applied: make(chan uint64, 16)}
	x.sys = actors.NewSystem(actors.Options{Name: t.Name(), Clock: s.clock, Registerer: x.registry})
	x.close = sync.OnceFunc(x.end)
	t.Cleanup(func() { x.close() })
	tails := storage.NewBudget(256 << 20)
	x.caches = reading.NewCachePool(cacheBytes)
	x.readers = storage.NewReaders(storage.ReaderOptions{Policy: s.policy, WindowBytes: s.windowBytes, Budget: storage.NewBudget(s.readerBytes)})
	table := route.NewTable[*shardactor.Handle]()
	var timings *stages.Timings
	if s.timed {
		timings = stages.New(x.registry, s.clock.Now, 1)
	}
	host := shardactor.HostOptions{
		Table: table, Tails: tails, Caches: x.caches, Readers: x.readers, RingBatches: s.ringBatches, RingBytes: s.ringBytes,
		Events: actors.DiscardEvents(), Metrics: shardactor.NewMetrics(x.registry, tails, x.caches, x.readers),
		Rand: rand.New(rand.NewPCG(1, 2)).Uint64, Applied: func(v uint64) { x.applied <- v }, Wrap: x.sabotage.wrap, Timings: timings,
	}
	if x.disk = s.disk; x.disk != nil {
		x.disk.open(t, &host, x.registry)
	}
	x.host = must(shardactor.SpawnHost(x.sys, host))(t)
	x.opts = DefaultOptions()
	x.opts.Table, x.opts.Auth, x.opts.Offer, x.opts.Clock = table, gatekeeper{}, EphemeralOffer(), s.clock
	x.opts.Brokers = []wire.Broker{{NodeID: "n1", Addr: "10.0.0.1:5000"}}
	x.opts.Events, x.opts.Metrics, x.opts.Timings = actors.DiscardEvents(), NewMetrics(x.registry), timings
	if _, stands := s.clock.(*actors.ManualClock); !stands { // a test that is about them has a clock of its own
		x.opts.AuthTimeout, x.opts.AckWait, x.opts.ReadWait = patience, patience, patience
	}
	if s.change != nil {
		s.change(&x.opts)
	}
	x.desire(s.desired...)
	x.listener = must(SpawnListener(x.sys, x.opts, x.acceptor))(t)
	return x
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// desire makes the site host exactly these, in the order of their names, and waits until it does. Those on a disk may serve later.
func (x *site) desire(list ...route.Assignment) {
	x.t.Helper()
	x.version++
	x.host.Signal(actors.Cell{Kind: shardactor.DesiredCell, Value: route.Desired{Version: x.version, Assignments: list}})
	for want(x.t, x.applied, "the assignment") != x.version {
	}
	if x.disk == nil {
		x.served(list)
	}
}

// served waits until all shards are served.
func (x *site) served(list []route.Assignment) {
	x.t.Helper()
	for _, a := range list {
		for n := range a.Shards {
			eventually(x.t, "the shards are served", func() bool {
				target, ok := x.opts.Table.Get(a.Name).Shard(n)
				return ok && target.State == route.Local && target.Shard.Serving()
			})
		}
	}
}

// end stops everything and checks that no permit was lost on the way. Call close, which does it once.
func (x *site) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	x.sabotage.release()
	for _, c := range x.conns {
		c.leave()
	}
	if err := x.sys.Shutdown(ctx); err != nil {
		x.t.Error(err)
	}
	x.balanced()
	if x.disk != nil {
		x.disk.close(ctx, x.t)
	}
}

// balanced waits until every permit came back: what was read has had its outcome, once.
func (x *site) balanced() {
	x.t.Helper()
	eventually(x.t, "all permits come back", func() bool {
		_, inFlight := x.opts.Frames.InUse()
		return inFlight == 0 && x.opts.Partial.Used() == 0
	})
}

// metric sums a metric over its labels.
func (x *site) metric(name string) float64 {
	x.t.Helper()
	return sum(must(x.registry.Gather())(x.t), name)
}

func sum(families []*dto.MetricFamily, name string) (total float64) {
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total
}

// sabotage sits around every shard actor.
type sabotage struct {
	mu    sync.Mutex
	gates []chan struct{}
	held  map[string]chan struct{} // by name: a turn with messages waits here
	enter chan struct{}            // told when a turn waits
	wreck string                   // the next turn with messages of this shard panics
	// answer, when not nil, answers publishes in place of the shards, which do not hear of them.
	answer func(m *shardactor.Publish) shardactor.Answer
}

func (s *sabotage) wrap(name route.Name, shard uint32, a actors.Actor) actors.Actor {
	return saboteur{s: s, inner: a, name: fmt.Sprintf("%s/%d", name.Name, shard)}
}

// hold makes the shard stand still before its next turn with messages. The channel is told when it does.
func (s *sabotage) hold(name string) (entered <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gates = append(s.gates, gate)
	s.held, s.enter = map[string]chan struct{}{name: gate}, make(chan struct{}, 1)
	return s.enter
}

// release lets every shard go on.
func (s *sabotage) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gates {
		close(g)
	}
	s.gates, s.held = nil, nil
}

// panicNext makes a shard panic in its next turn with messages, before it looks at them. A turn that is held now counts.
func (s *sabotage) panicNext(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wreck = name
}

type saboteur struct {
	s     *sabotage
	inner actors.Actor
	name  string
}

func (a saboteur) Receive(t *actors.Turn) {
	if t.Lifecycle() == actors.None && len(t.Messages()) > 0 {
		a.s.mu.Lock()
		gate, enter := a.s.held[a.name], a.s.enter
		a.s.mu.Unlock()
		if gate != nil {
			select {
			case enter <- struct{}{}:
			default:
			}
			<-gate
		}
		a.s.mu.Lock()
		wrecked, answer := a.s.wreck == a.name, a.s.answer
		if wrecked {
			a.s.wreck = ""
		}
		a.s.mu.Unlock()
		if wrecked {
			panic("sabotage")
		}
		if answer != nil && a.answered(t.Messages(), answer) {
			return
		}
	}
	a.inner.Receive(t)
}

// answered answers a turn's messages when all of them are publishes.
func (a saboteur) answered(messages []any, answer func(m *shardactor.Publish) shardactor.Answer) bool {
	for _, m := range messages {
		p, ok := m.(*shardactor.Publish)
		if !ok {
			return false
		}
		p.Reply.Answer(p.Token, answer(p))
		p.Reply.Flush()
	}
	return true
}

// connect makes a connection. change adjusts it before the broker sees it.
func (x *site) connect(change ...func(*memConn)) *memConn {
	x.t.Helper()
	c := newMemConn(x.opts.Clock)
	for _, f := range change {
		f(c)
	}
	x.conns = append(x.conns, c)
	select {
	case x.acceptor.conns <- Conn(c):
	case <-time.After(patience):
		x.t.Fatal("the connection was not accepted")
	}
	return c
}

// want receives what must come.
func want[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case v := <-ch:
		return v
	case <-timeout.C:
		t.Fatalf("%s did not come within %s", what, patience)
		panic("unreachable")
	}
}

// eventually looks until cond holds: for effects that announce themselves nowhere.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	timeout, look := time.NewTimer(patience), time.NewTicker(time.Millisecond)
	defer timeout.Stop()
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-timeout.C:
			t.Errorf("it never happened: %s", what)
			return
		}
	}
}

// closedWith waits for the end of a connection and checks its code.
func closedWith(t testing.TB, c *memConn, code CloseCode) {
	t.Helper()
	want(t, c.ctx.Done(), "the end of the connection")
	var how closed
	if !errors.As(context.Cause(c.ctx), &how) || how.client || how.code != code {
		t.Errorf("closed by %+v, want code %d from the broker", context.Cause(c.ctx), code)
	}
}

// The offers that clients come with.
func nothing() *wire.Auth { return &wire.Auth{TenantID: tenant, Token: "good"} }

func flags(f wire.Flags) *wire.Auth {
	a := nothing()
	a.ClientFlags = wire.Some(f)
	return a
}

func today() *wire.Auth {
	a := nothing()
	a.ClientFlags, a.ClientFeatures, a.ClientFeaturesHi = wire.Some(wire.Flags(8191)), wire.Some(wire.Features(4218945535)), wire.Some(uint32(15))
	return a
}

// frame is one frame from the broker.
type frame struct {
	flags   wire.Flags
	payload []byte
	message wire.Message
	ack     wire.PublishAck
}

// line is a client's end of one stream, or of an event stream.
type line struct {
	t testing.TB
	s interface{ Read(p []byte) (int, error) }
	h *half // what the broker writes
	w *half // what the client writes; nil on an event stream
	b []byte
	c []byte // what one Read fills
}

// dial opens a stream and authenticates it.
func dial(t testing.TB, c *memConn, auth *wire.Auth) *line {
	t.Helper()
	l := bare(t, c)
	l.send(auth)
	f := l.next()
	if typ := f.message.MessageType(); typ != "ok" && typ != "auth_ok" {
		t.Fatalf("auth was answered %s", f.payload)
	}
	return l
}

func bare(t testing.TB, c *memConn) *line {
	s := c.stream(nil)
	return &line{t: t, s: s, h: s.in, w: s.out}
}

func (l *line) send(m wire.Message) { l.raw(wire.AppendJSONFrame(nil, m)) }

func (l *line) raw(b []byte) {
	l.t.Helper()
	if _, err := l.w.Write(b); err != nil {
		l.t.Errorf("write to the broker: %v", err)
	}
}

// bytes reads n bytes, or what there is before the end.
func (l *line) bytes(n int) ([]byte, error) {
	stop := time.AfterFunc(patience, l.h.expire)
	defer stop.Stop()
	if l.c == nil {
		l.c = make([]byte, 64<<10)
	}
	for len(l.b) < n {
		got, err := l.s.Read(l.c)
		l.b = append(l.b, l.c[:got]...)
		if err != nil {
			return l.b, err
		}
	}
	out := l.b[:n:n]
	l.b = l.b[n:]
	return out, nil
}

// read returns the next frame, or io.EOF at a clean end.
func (l *line) read() (frame, error) {
	head, err := l.bytes(wire.HeaderSize)
	if err != nil {
		return frame{}, err
	}
	h, err := wire.ParseHeader(head, 1<<30)
	if err != nil {
		return frame{}, err
	}
	f := frame{flags: h.Flags}
	if f.payload, err = l.bytes(int(h.Length)); err != nil {
		return frame{}, fmt.Errorf("inside a frame: %w", err)
	}
	switch {
	case h.Flags == 0:
		f.message, err = wire.DecodeJSON(f.payload)
	case h.Flags.Has(wire.FlagPublishAck):
		f.ack, err = wire.DecodePublishAck(h.Flags, f.payload)
	}
	return f, err
}

func (l *line) next() frame {
	l.t.Helper()
	f, err := l.read()
	if err != nil {
		l.t.Fatalf("read from the broker: %v", err)
	}
	return f
}

// over checks that the broker has finished the stream.
func (l *line) over() {
	l.t.Helper()
	if f, err := l.read(); err != io.EOF {
		l.t.Fatalf("got %q, %v; want the end of the stream", f.payload, err)
	}
}

func (l *line) ask(m wire.Message) frame {
	l.t.Helper()
	l.send(m)
	return l.next()
}

// refused is the refusal that a frame carries.
func refused(t testing.TB, f frame) wire.Refusal {
	t.Helper()
	switch m := f.message.(type) {
	case *wire.ErrorAnswer:
		return m.Refusal()
	case *wire.PublishError:
		return m.Refusal()
	case nil:
		if f.ack.Refusal != nil {
			return *f.ack.Refusal
		}
	}
	t.Fatalf("flags 0x%04x, %q is no refusal", uint16(f.flags), f.payload)
	return wire.Refusal{}
}

// batchTo is the frame of an acked publish; ack 0 makes it one without answer.
func batchTo(name string, id uint64, ack wire.AckMode, payloads ...string) []byte {
	p := &wire.Publish{Flags: wire.FlagPublishBatch, Tenant: []byte(tenant), Namespace: []byte(namespace), Stream: []byte(name), Count: uint32(len(payloads))}
	if ack != wire.AckNone {
		p.Flags |= wire.FlagPublishAcked
		p.RequestID, p.Ack = id, ack
	}
	for _, s := range payloads {
		p.Region = wire.AppendPayload(p.Region, []byte(s))
	}
	return wire.AppendPublish(nil, p)
}

func (l *line) publish(name string, payloads ...string) {
	l.t.Helper()
	l.raw(batchTo(name, 1, wire.AckPerBatch, payloads...))
	if f := l.next(); f.message != nil && f.message.MessageType() != "publish_ok" || f.message == nil && f.ack.Refusal != nil {
		l.t.Fatalf("publish was answered %q", f.payload)
	}
}

func subscribeTo(name string, start wire.StartKind) *wire.Subscribe {
	return &wire.Subscribe{TenantID: tenant, Namespace: namespace, Stream: name, Start: wire.Some(wire.Start{Kind: start})}
}

// subscription is an event stream behind its hello.
type subscription struct {
	*line
	id uint64
}

// subscribe asks for a subscription on l and waits for its event stream, which must say hello first.
func (l *line) subscribe(c *memConn, m *wire.Subscribe) subscription {
	l.t.Helper()
	l.send(m)
	answer := l.next()
	ok, is := answer.message.(*wire.Subscribed)
	if !is {
		l.t.Fatalf("subscribe was answered %q", answer.payload)
	}
	h := want(l.t, c.toClient, "the event stream")
	s := subscription{line: &line{t: l.t, s: h, h: h}, id: ok.SubscriptionID}
	hello, is := s.next().message.(*wire.EventStreamHello)
	if !is || hello.SubscriptionID != ok.SubscriptionID {
		l.t.Fatalf("the event stream of subscription %d begins with %+v", ok.SubscriptionID, hello)
	}
	return s
}

// events reads frames until n events came, and says how many there were in each.
func (s subscription) events(n int) (payloads []string, perFrame []int, frames []frame) {
	s.t.Helper()
	for len(payloads) < n {
		f := s.next()
		before := len(payloads)
		payloads = append(payloads, eventsOf(s.t, f)...)
		perFrame, frames = append(perFrame, len(payloads)-before), append(frames, f)
	}
	if len(payloads) > n {
		s.t.Fatalf("%d events came, want %d", len(payloads), n)
	}
	return payloads, perFrame, frames
}

func eventsOf(t testing.TB, f frame) (list []string) {
	t.Helper()
	if m, ok := f.message.(*wire.EventBatchMessage); ok {
		for p, rest, ok := m.Records.Next(); ok; p, rest, ok = rest.Next() {
			list = append(list, string(p))
		}
		return list
	}
	e, err := wire.DecodeEventBatch(f.flags, f.payload)
	if err != nil {
		t.Fatalf("flags 0x%04x, %q is no event batch: %v", uint16(f.flags), f.payload, err)
	}
	for p, _, ok := e.Next(); ok; p, _, ok = e.Next() {
		list = append(list, string(p))
	}
	return list
}
