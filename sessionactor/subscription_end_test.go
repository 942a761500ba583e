package sessionactor

import (
	"reflect"
	"strings"
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// The table of Subscription promises it: its pump must not go on without the actor that supervises it.
func TestASubscriptionThatFailsEndsItsEventStream(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	if err := x.sys.Faults().Crash("sessions/1/sub/1"); err != nil {
		t.Fatal(err)
	}
	if f, err := s.read(); err == nil {
		t.Fatalf("the event stream goes on with %q", f.payload)
	}
	eventually(t, "no subscription is counted", func() bool { return x.metric("felix_subscribers") == 0 })
	l.publish("orders", "after")
	again := l.subscribe(c, subscribeTo("orders", wire.StartEarliest))
	if got, _, _ := again.events(1); got[0] != "after" {
		t.Errorf("got %q", got)
	}
	if c.ctx.Err() != nil {
		t.Error("the connection was closed for it")
	}
}

// Every cause, for every client: a frame that was not offered is never sent, and one that cannot say where to resume neither.
//
// mission 85
func TestTheLastFrameIsOneThatTheClientOfferedAndCanResumeFrom(t *testing.T) {
	moved, lagged := wire.FeatureShardMoved, wire.FeatureSubscriptionLagged
	shardMoved := &wire.ShardMoved{SubscriptionID: 7, ResumeFrom: wire.Some(id.Offset(42)), Generation: 3}
	toB := *shardMoved
	toB.NodeID, toB.Addr = wire.Some("b"), wire.Some("10.0.0.2:5000")
	for _, q := range []struct {
		cause   endCause
		offered wire.Features
		node    string
		want    wire.Message
	}{
		{endMoved, moved | lagged, "b", &toB},
		{endMoved, moved, "", shardMoved},
		{endMoved, lagged, "b", nil},
		{endFailed, moved, "", shardMoved},
		{endFailed, 0, "", nil},
		{endDraining, moved | lagged, "", shardMoved},
		{endDraining, lagged, "", nil},
		{endLagged, moved | lagged, "b", &wire.SubscriptionLagged{SubscriptionID: 7, ResumeFrom: 42}},
		{endLagged, moved, "", nil},
		{endDeleted, moved | lagged, "b", nil},
		{endRevoked, moved | lagged, "b", nil},
	} {
		e := ending{cause: q.cause, durable: true, resume: 42, generation: 3, node: q.node}
		if q.node != "" {
			e.addr = "10.0.0.2:5000"
		}
		if got := endFrame(wire.Grant{Features: q.offered}, 7, e); !reflect.DeepEqual(got, q.want) {
			t.Errorf("cause %d, offered %x: %+v, want %+v", q.cause, q.offered, got, q.want)
		}
		e.durable = false
		if got := endFrame(wire.Grant{Features: q.offered}, 7, e); got != nil {
			t.Errorf("cause %d on a stream without offsets: %+v", q.cause, got)
		}
	}
	for reason, want := range map[storage.CloseReason]endCause{storage.ClosedDeleted: endDeleted, storage.ClosedFailed: endFailed, storage.ClosedShutdown: endDraining} {
		if got := closedBy(reason); got != want {
			t.Errorf("%s is cause %d, want %d", reason, got, want)
		}
	}
}

// durableSite serves "orders" as if it were durable: its subscriptions can resume, and are told where.
func durableSite(t *testing.T, change func(*setting)) *site {
	s := setting{desired: streams("orders")}
	if change != nil {
		change(&s)
	}
	x, _ := durable(t, s)
	return x
}

// STR-05: whatever ends a subscription, what was published before it is delivered first; then comes the frame that says where to go on.
func TestTheLastRecordsBeforeAnEndAreDeliveredAndThenWhereToResume(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(*site)
		want *wire.ShardMoved
	}{
		"the shard fails":       {func(x *site) { x.crash("shards/1") }, &wire.ShardMoved{SubscriptionID: 1, ResumeFrom: wire.Some(id.Offset(9)), Generation: 1}},
		"the broker drains":     {func(x *site) { x.drainSessions() }, &wire.ShardMoved{SubscriptionID: 1, ResumeFrom: wire.Some(id.Offset(9)), Generation: 1}},
		"the stream is deleted": {func(x *site) { x.desire() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := durableSite(t, func(s *setting) { s.clock = manual() }) // a drained connection stays until time passes
			s := x.stalled(subscribeTo("orders", wire.StartLatest))
			records := numbered(0, 9)
			l := dial(t, x.connect(), today())
			for _, r := range records {
				l.publish("orders", r)
			}
			end.do(x)
			if got, _, _ := s.events(9); got[8] != records[8] {
				t.Fatalf("got %.6q", got)
			}
			if end.want != nil {
				if got := s.next().message; !reflect.DeepEqual(got, end.want) {
					t.Errorf("the last frame is %+v, want %+v", got, end.want)
				}
			}
			s.over()
		})
	}
}

func (x *site) crash(path string) {
	x.t.Helper()
	if err := x.sys.Faults().Crash(path); err != nil {
		x.t.Fatal(err)
	}
}

func (x *site) drainSessions() {
	x.t.Helper()
	if err := x.listener.TrySend(&Drain{Done: func() {}}, 0); err != nil {
		x.t.Fatal(err)
	}
}

// mission 221: who can resume is told where, after what was queued, and also when nothing is published any more.
//
// matrix K2
func TestAReaderOfADurableStreamThatFallsBehindIsToldWhereToResume(t *testing.T) {
	x := durableSite(t, nil)
	told, mute := x.stalled(asking("orders", wire.StartLatest, 4)), x.stalledWith(flags(wire.FlagEventBatchShared), asking("orders", wire.StartLatest, 4))
	l := dial(t, x.connect(), today())
	records := numbered(0, 7)
	for _, r := range records {
		l.publish("orders", r)
	}
	if got, _, _ := told.events(4); got[3] != records[3] {
		t.Errorf("got %.6q", got)
	}
	if got, want := told.next().message, (&wire.SubscriptionLagged{SubscriptionID: 1, ResumeFrom: 4}); !reflect.DeepEqual(got, want) {
		t.Errorf("then %+v, want %+v", got, want)
	}
	told.over()
	// One that did not offer to be told goes on behind the hole.
	mute.events(4)
	eventually(t, "it has caught up", func() bool { return x.metric("felix_sub_lagging") == 0 })
	l.publish("orders", "on")
	if got, _, _ := mute.events(1); got[0] != "on" {
		t.Errorf("got %.6q", got)
	}
	if n := x.metric("felix_subscribe_dropped_total"); n != 6 {
		t.Errorf("%v records were dropped, want 3 for each", n)
	}
}

// What exceeds a JSON frame is lost to a reader of JSON, counted for it, and nothing else is.
func TestARecordTooLongForAReadersFormIsCountedAsDropped(t *testing.T) {
	x := open(t, setting{ringBatches: 64, ringBytes: 64 << 20, windowBytes: 64 << 20, clock: actors.RealClock()})
	c := x.connect(func(c *memConn) { c.window = 32 << 20 })
	s := dial(t, c, nothing()).subscribe(c, subscribeTo("orders", wire.StartLatest))
	l := dial(t, c, today())
	l.publish("orders", strings.Repeat("x", 13<<20))
	l.publish("orders", "short")
	if got, _, _ := s.events(1); got[0] != "short" {
		t.Errorf("got %.10q", got)
	}
	if n := x.metric("felix_subscribe_dropped_total"); n != 1 {
		t.Errorf("%v records were counted as dropped", n)
	}
}
