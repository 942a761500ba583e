package sessionactor

import (
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// drain asks the listener to finish and returns what is closed when it has.
func (x *site) drain() <-chan struct{} {
	x.t.Helper()
	done := make(chan struct{})
	if err := x.listener.TrySend(&Drain{Done: func() { close(done) }}, 0); err != nil {
		x.t.Fatal(err)
	}
	return done
}

// drained waits until a drain has closed connections whose clients have read all there is. The clock of the site has stood until then.
func (x *site) drained(done <-chan struct{}, conns ...*memConn) {
	x.t.Helper()
	for _, c := range conns {
		eventually(x.t, "the connection is closed", func() bool { x.advance(drainReading / 10); return c.ctx.Err() != nil })
		closedWith(x.t, c, CloseShutdown)
	}
	want(x.t, done, "the end of the drain")
}

func TestADrainFinishesWhatIsOpenRefusesWhatIsNewAndClosesWithCodeZero(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock})
	c := x.connect()
	l, late := dial(t, c, today()), dial(t, c, today())
	s := late.subscribe(c, subscribeTo("orders", wire.StartLatest))
	entered := x.sabotage.hold("orders/0")
	l.raw(batchTo("orders", 1, wire.AckPerBatch, "open"))
	want(t, entered, "the shard to stand still")

	done := x.drain()
	eventually(t, "new requests are refused", func() bool {
		f := late.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k"})
		e, is := f.message.(*wire.ErrorAnswer)
		return is && e.Refusal().Code == wire.CodeDraining && e.Refusal().Retry == wire.RetryRetry
	})
	for name, m := range map[string]wire.Message{"subscribe": subscribeTo("orders", 0), "topology": &wire.Topology{}} {
		if r := refused(t, late.ask(m)); r.Code != wire.CodeDraining {
			t.Errorf("%s: %+v", name, r)
		}
	}
	late.raw(batchTo("orders", 3, wire.AckPerBatch, "new"))
	if r := refused(t, late.next()); r.Code != wire.CodeDraining {
		t.Errorf("publish: %+v", r)
	}
	if r := refused(t, bare(t, c).ask(today())); r.Code != wire.CodeDraining { // a token on a new stream
		t.Errorf("auth: %+v", r)
	}
	select {
	case <-done:
		t.Fatal("drained with a request open")
	default:
	}
	x.sabotage.release()
	if f := l.next(); f.ack.RequestID != 1 || f.ack.Refusal != nil {
		t.Errorf("the open request was answered %+v", f.ack)
	}
	s.events(1)
	s.over()
	// The connection stays for a moment, so that its last answers arrive and the last events are read.
	idle := clock.Now()
	eventually(t, "the connection is closed", func() bool { clock.Advance(drainReading / 10); return c.ctx.Err() != nil })
	if stayed := clock.Now().Sub(idle); stayed < drainReading {
		t.Fatalf("closed after %v, before its last events can have been read", stayed)
	}
	closedWith(t, c, CloseShutdown)
	want(t, done, "the end of the drain")
}

func TestADrainDoesNotWaitForAClientThatHasItsLastEventAndCloses(t *testing.T) {
	x := open(t, setting{clock: manual()}) // no time passes
	c := x.connect()
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	l.publish("orders", "the last one")
	done := x.drain()
	s.events(1)
	s.over()
	c.leave()
	want(t, done, "the end of the drain")
}

// field case STR-05: subscriptions end after the last record that any session had under way was acknowledged, and with it.
func TestADrainDeliversWhatOtherSessionsHadUnderWay(t *testing.T) {
	x := open(t, setting{clock: manual()})
	reader, writer := x.connect(), x.connect()
	s := dial(t, reader, today()).subscribe(reader, subscribeTo("orders", wire.StartLatest))
	l := dial(t, writer, today())
	entered := x.sabotage.hold("orders/0")
	for n := range uint64(5) {
		l.raw(batchTo("orders", n+1, wire.AckPerBatch, "under way"))
	}
	want(t, entered, "the shard to stand still")
	eventually(t, "all are under way", func() bool { n, _ := x.opts.Admission.InUse(); return n == 5 })
	done := x.drain()
	x.sabotage.release()
	for n := range uint64(5) {
		if f := l.next(); f.ack.RequestID != n+1 || f.ack.Refusal != nil {
			t.Fatalf("answer %d: %+v", n, f.ack)
		}
	}
	s.events(5)
	s.over()
	x.drained(done, reader, writer)
}

// A request that waits for room when the drain begins keeps its place in line; one that would have to enter a line is refused.
func TestADrainRefusesWhoWouldHaveToWait(t *testing.T) {
	a := NewAdmission(sessioncore.AdmissionLimits{SlotsPerTenant: 1, Slots: 1, BytesPerTenant: 10, Bytes: 10})
	share, conn := a.attach("t"), sessioncore.NewConnUse(100)
	first := sessioncore.Demand{Tenant: &share.use, Conn: conn, Shard: 1, Bytes: 1, Ring: func() {}}
	second, third := first, first
	if v := a.admit(&first); v != sessioncore.LetIn {
		t.Fatal(v)
	}
	if v := a.admit(&second); v != sessioncore.NoRoom {
		t.Fatal(v)
	}
	a.do(func(core *sessioncore.Admission) { core.Wait(&second) })
	quiet := 0
	a.drain(func() { quiet++ })
	if v := a.admit(&third); v != sessioncore.Draining {
		t.Fatalf("while draining: %v", v)
	}
	w := &wait{l: &lane{session: &session{opts: &Options{Admission: a}}, demand: third}}
	entered := w.enter(func(*sessioncore.Admission, *sessioncore.Demand) bool { return true })
	if why := w.end(errNoRoom); entered || why != errDraining {
		t.Fatalf("one that lost its place entered a line again: %v, %v", entered, why)
	}
	over := []sessioncore.Outcome{{Shard: 1, Requests: 1, Bytes: 1}}
	a.done(share, conn, over)
	if !second.Granted() || quiet != 0 {
		t.Fatalf("who stood in line was let in: %v; quiet %d times before it was done", second.Granted(), quiet)
	}
	a.done(share, conn, over)
	if quiet != 1 {
		t.Fatalf("quiet %d times, want once", quiet)
	}
}

func TestADrainDeliversWhatIsReadableBeforeItEndsASubscription(t *testing.T) {
	x := open(t, setting{clock: manual()})
	c := x.connect(func(c *memConn) { c.window = 128 })
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	for range 20 {
		l.publish("orders", "some payload that fills the window of its reader")
	}
	done := x.drain()
	s.events(20)
	s.over()
	x.drained(done, c)
}

func TestADrainWithoutSessionsIsDoneAtOnceAndTakesNoMoreConnections(t *testing.T) {
	x := open(t, setting{})
	want(t, x.drain(), "the end of the drain")
	want(t, x.acceptor.stopped, "the end of accepting")
	want(t, x.drain(), "the end of a second drain")
}

func TestIdleConnectionsAreClosedByADrainToo(t *testing.T) {
	x := open(t, setting{})
	silent, idle := x.connect(), x.connect()
	dial(t, idle, today())
	eventually(t, "both are there", func() bool { return x.metric("felix_client_connections") == 2 })
	done := x.drain()
	closedWith(t, silent, CloseShutdown)
	closedWith(t, idle, CloseShutdown)
	want(t, done, "the end of the drain")
}

// A broker that stops without draining leaves nobody waiting.
func TestStoppingTheSystemClosesEveryConnection(t *testing.T) {
	x := open(t, setting{})
	var conns []*memConn
	for range 5 {
		c := x.connect()
		l := dial(t, c, today())
		l.subscribe(c, subscribeTo("orders", wire.StartLatest))
		conns = append(conns, c)
	}
	if err := x.sys.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range conns {
		closedWith(t, c, CloseShutdown)
	}
	eventually(t, "nothing is left", func() bool {
		return x.metric("felix_client_connections") == 0 && x.metric("felix_subscribers") == 0
	})
	if err := x.listener.TrySend(&Drain{Done: func() {}}, 0); err != actors.ErrStopped {
		t.Errorf("drain of what has stopped: %v", err)
	}
}
