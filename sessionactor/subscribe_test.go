package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// mission 191
func TestEachSubscriptionHasAUnidirectionalStreamThatBeginsWithItsHello(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	seen := map[uint64]bool{}
	for range 3 {
		l.send(subscribeTo("orders", wire.StartLatest))
		// The hello comes first: a client reads the first frame of each stream before it goes on.
		h := want(t, c.toClient, "the event stream")
		hello := (&line{t: t, s: h, h: h}).next().message.(*wire.EventStreamHello)
		answer, ok := l.next().message.(*wire.Subscribed)
		if !ok || answer.SubscriptionID != hello.SubscriptionID || answer.StartOffset.Set || answer.LiveOffset.Set {
			t.Errorf("subscribed %+v, hello %+v; a stream in memory has no offsets", answer, hello)
		}
		if seen[hello.SubscriptionID] {
			t.Errorf("the id %d was given twice", hello.SubscriptionID)
		}
		seen[hello.SubscriptionID] = true
	}
}

func TestLatestBeginsWithWhatIsPublishedAfterTheAnswerAndEarliestWithWhatIsThere(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	l.publish("orders", "a", "b")
	unset := subscribeTo("orders", 0)
	unset.Start = wire.Opt[wire.Start]{}
	latest, dflt := l.subscribe(c, subscribeTo("orders", wire.StartLatest)), l.subscribe(c, unset)
	earliest := l.subscribe(c, subscribeTo("orders", wire.StartEarliest))
	l.publish("orders", "c")
	for name, s := range map[string]struct {
		subscription
		want []string
	}{"latest": {latest, []string{"c"}}, "unset": {dflt, []string{"c"}}, "earliest": {earliest, []string{"a", "b", "c"}}} {
		if got, _, _ := s.events(len(s.want)); !slices.Equal(got, s.want) {
			t.Errorf("%s: got %q, want %q", name, got, s.want)
		}
	}
	// Each shard is a log of its own: what went to shard 0 is not on shard 3.
	l.publish("wide", "unkeyed")
	other := subscribeTo("wide", wire.StartEarliest)
	other.Shard = wire.Some(uint32(3))
	s3 := l.subscribe(c, other)
	if got, _, _ := l.subscribe(c, subscribeTo("wide", wire.StartEarliest)).events(1); got[0] != "unkeyed" {
		t.Errorf("shard 0: got %q", got)
	}
	if n := s3.h.unread(); n != 0 {
		t.Errorf("%d bytes on shard 3", n)
	}
}

// shapes are the forms in which a reader may get its events, by what it offered.
func shapes() map[string]struct {
	auth  *wire.Auth
	flags wire.Flags
} {
	return map[string]struct {
		auth  *wire.Auth
		flags wire.Flags
	}{
		"nothing offered":       {nothing(), 0},
		"acks only":             {flags(wire.FlagPublishAck), 0},
		"timestamps alone":      {flags(wire.FlagEventTimestamps), 0},
		"legacy":                {flags(wire.FlagEventBatch), wire.FlagEventBatch},
		"first version":         {flags(wire.LegacyFlags), wire.FlagEventBatchShared},
		"shared":                {flags(wire.FlagEventBatchShared), wire.FlagEventBatchShared},
		"today":                 {today(), wire.FlagEventBatchShared},
		"legacy and timestamps": {flags(wire.FlagEventBatch | wire.FlagEventTimestamps), wire.FlagEventBatch | wire.FlagEventTimestamps},
		"shared and timestamps": {flags(wire.FlagEventBatchShared | wire.FlagEventTimestamps), wire.FlagEventBatchShared | wire.FlagEventTimestamps},
		"everything":            {flags(^wire.Flags(0)), wire.FlagEventBatchShared | wire.FlagEventTimestamps},
	}
}

// mission 179, mission 186
func TestEachReaderGetsEventsInTheFormThatItOffered(t *testing.T) {
	start := time.UnixMicro(1_700_000_000_123_456)
	x := open(t, setting{clock: actors.NewManualClock(start)})
	for name, shape := range shapes() {
		t.Run(name, func(t *testing.T) {
			x.t = t
			c := x.connect()
			l := dial(t, c, shape.auth)
			s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
			l.publish("orders", "a", "bc")
			got, _, frames := s.events(2)
			if len(frames) != 1 || frames[0].flags != shape.flags || !slices.Equal(got, []string{"a", "bc"}) {
				t.Fatalf("%d frames, flags %s: %q; want flags %s", len(frames), frames[0].flags, got, shape.flags)
			}
			checkShape(t, frames[0], s.id, uint64(start.UnixMicro()))
		})
	}
	x.t = t
}

func checkShape(t *testing.T, f frame, id, micros uint64) {
	t.Helper()
	if m, ok := f.message.(*wire.EventBatchMessage); ok {
		if m.TenantID != tenant || m.Namespace != namespace || m.Stream != "orders" || m.BaseOffset.Set {
			t.Errorf("%+v", m)
		}
		return
	}
	e, err := wire.DecodeEventBatch(f.flags, f.payload)
	if err != nil {
		t.Fatal(err)
	}
	if f.flags.Has(wire.FlagEventBatch) && e.SubscriptionID != id {
		t.Errorf("subscription %d, want %d", e.SubscriptionID, id)
	}
	for p, at, ok := e.Next(); ok; p, at, ok = e.Next() {
		if f.flags.Has(wire.FlagEventTimestamps) && at != micros {
			t.Errorf("%q at %d, want %d", p, at, micros)
		}
	}
}

// mission 225, mission 226
func TestLargeBatchesAreCutIntoFramesOfAtMost64EventsAnd64KiB(t *testing.T) {
	x := open(t, setting{})
	publisher := dial(t, x.connect(), today())
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprint("event ", i)
	}
	wide := make([]string, 40)
	for i := range wide {
		wide[i] = strings.Repeat(string(rune('a'+i%26)), 4<<10)
	}
	giant := []string{"small", strings.Repeat("g", 90<<10), "small again"}
	for name, shape := range shapes() {
		c := x.connect()
		s := dial(t, c, shape.auth).subscribe(c, subscribeTo("orders", wire.StartLatest))
		for _, batch := range [][]string{many, wide, giant, {strings.Repeat("x", 70<<10)}} {
			publisher.publish("orders", batch...)
			got, perFrame, frames := s.events(len(batch))
			if !slices.Equal(got, batch) {
				t.Fatalf("%s: %d events are not what was published", name, len(got))
			}
			for i, f := range frames {
				size := 0
				for _, e := range eventsOf(t, f) {
					size += len(e) + wire.PayloadOverhead
				}
				if perFrame[i] > wire.EventBatchMaxEvents || size > wire.EventBatchMaxBytes && perFrame[i] > 1 {
					t.Errorf("%s: a frame of %d events and %d bytes", name, perFrame[i], size)
				}
			}
		}
	}
}

// mission 211, mission 223
func TestOneHundredReadersOfTheCommonFormCostNoEncoding(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	var subs []subscription
	for range 100 {
		subs = append(subs, l.subscribe(c, subscribeTo("orders", wire.StartLatest)))
	}
	big := strings.Repeat("b", 100)
	for range 5 {
		l.publish("orders", big, big)
	}
	l.publish("orders", slices.Repeat([]string{big}, 200)...) // cut into frames, still once for all
	for _, s := range subs {
		s.events(5*2 + 200)
	}
	if n := x.metric("felix_event_encodes_total"); n != 0 {
		t.Errorf("%v encodings", n)
	}
	if n := x.metric("felix_delivered_records_total"); n != 100*210 {
		t.Errorf("%v records were counted as delivered", n)
	}
}

func TestAReaderThatStopsItsEventStreamFreesItsPlace(t *testing.T) {
	x := open(t, setting{change: func(o *Options) { o.Delivery.PerIdentity = 2 }})
	c := x.connect()
	l := dial(t, c, today())
	first, second := l.subscribe(c, subscribeTo("orders", wire.StartLatest)), l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	if f := refused(t, l.ask(subscribeTo("orders", wire.StartLatest))); f.Code != wire.CodeLimitExceeded || f.Retry != wire.RetryFatal {
		t.Errorf("the third subscription of two was answered %+v", f)
	}
	first.h.CancelRead()
	eventually(t, "the place is free", func() bool { return x.metric("felix_subscribers") == 1 })
	eventually(t, "another subscription is taken", func() bool {
		return l.ask(subscribeTo("orders", wire.StartLatest)).message.MessageType() == "subscribed"
	})
	h := want(t, c.toClient, "its event stream")
	third := subscription{line: &line{t: t, s: h, h: h}}
	third.next()
	l.publish("orders", "x")
	second.events(1)
	third.events(1)
}

// Neither the end of the control stream nor a reader that gives it up is an unsubscribe.
func TestASubscriptionOutlivesTheStreamItWasAskedForOn(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l, publisher := dial(t, c, today()), dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
	l.over()
	l.h.CancelRead()
	publisher.publish("orders", "still here")
	if got, _, _ := s.events(1); got[0] != "still here" {
		t.Errorf("got %q", got)
	}
}

// mission 192, mission 217
func TestAReaderThatStandsStillDelaysNobodyElse(t *testing.T) {
	x := open(t, setting{})
	slow := x.connect(func(c *memConn) { c.window = 1 << 10 })
	stalled := dial(t, slow, today()).subscribe(slow, subscribeTo("orders", wire.StartLatest))
	sameConn := dial(t, slow, today()) // another stream of the same connection goes on
	c := x.connect()
	l := dial(t, c, today())
	var subs []subscription
	for range 5 {
		subs = append(subs, l.subscribe(c, subscribeTo("orders", wire.StartLatest)))
	}
	payload := strings.Repeat("p", 1<<10)
	const batches = 200
	for range batches {
		l.publish("orders", payload)
	}
	for _, s := range subs {
		s.events(batches)
	}
	if got := sameConn.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k"}); got.message.MessageType() != "cache_value" {
		t.Errorf("got %q", got.payload)
	}
	if n := stalled.h.unread(); n > 1<<10 {
		t.Errorf("%d bytes wait for the reader that stands still", n)
	}
	stalled.events(batches) // the ring was large enough: it missed nothing
}

func TestDeletingAStreamEndsItsSubscriptionsAfterWhatTheyAreOwed(t *testing.T) {
	x := open(t, setting{})
	c := x.connect(func(c *memConn) { c.window = 256 })
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	for range 20 {
		l.publish("orders", strings.Repeat("p", 100))
	}
	x.desire(stream("wide", 4), cache("users", 1), cache("wide", 4))
	s.events(20)
	s.over()
	if f := refused(t, l.ask(subscribeTo("orders", wire.StartLatest))); f.Code != wire.CodeNotFound || f.Retry != wire.RetryAfter {
		t.Errorf("a stream that is gone: %+v", f)
	}
	l.raw(batchTo("orders", 9, wire.AckPerBatch, "x"))
	if f := refused(t, l.next()); f.Code != wire.CodeNotFound {
		t.Errorf("a publish to it: %+v", f)
	}
	eventually(t, "the subscription is gone", func() bool { return x.metric("felix_subscribers") == 0 })
	// The same name again is another stream.
	again := stream("orders", 1)
	again.Incarnation = 2
	x.desire(again, stream("wide", 4), cache("users", 1), cache("wide", 4))
	l.publish("orders", "new")
	if got, _, _ := l.subscribe(c, subscribeTo("orders", wire.StartEarliest)).events(1); got[0] != "new" {
		t.Errorf("got %q", got)
	}
}

func TestASubscribeThatCannotBeServedSaysWhy(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	shard, offset, foreign := subscribeTo("wide", 0), subscribeTo("orders", wire.StartOffset), subscribeTo("orders", 0)
	shard.Shard, foreign.TenantID = wire.Some(uint32(4)), "t2"
	for _, q := range []struct {
		ask  wire.Message
		code wire.Code
		says string
	}{
		{subscribeTo("none", 0), wire.CodeNotFound, "stream not found: t1/default/none"},
		{subscribeTo("users", 0), wire.CodeNotFound, "stream not found"}, // a cache of that name is no stream
		{shard, wire.CodeInvalidRequest, "shards 0 to 3"},
		{offset, wire.CodeInvalidRequest, "no offsets"},
		{foreign, wire.CodeForbidden, `"t2"`},
	} {
		if f := refused(t, l.ask(q.ask)); f.Code != q.code || !strings.Contains(f.Message, q.says) {
			t.Errorf("%+v: %+v", q.ask, f)
		}
	}
	auth := today()
	auth.Token = "write only"
	if f := refused(t, dial(t, c, auth).ask(subscribeTo("orders", 0))); f.Code != wire.CodeForbidden || !strings.Contains(f.Message, "stream.subscribe on stream:t1/default/orders") {
		t.Errorf("without the right: %+v", f)
	}
	if n := x.metric("felix_subscribers"); n != 0 {
		t.Errorf("%v subscriptions were left", n)
	}
}

func TestAClientThatAllowsNoFurtherStreamIsToldSo(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x := open(t, setting{clock: clock})
	c := x.connect(func(c *memConn) { c.allowed = make(chan struct{}, memStreams) })
	l := dial(t, c, today())
	armed := clock.Pending()
	l.send(subscribeTo("orders", 0))
	eventually(t, "the broker waits for the client", func() bool { return clock.Pending() > armed })
	clock.Advance(openTimeout)
	if f := refused(t, l.next()); f.Code != wire.CodeLimitExceeded {
		t.Errorf("%+v", f)
	}
	c.allow(1)
	l.subscribe(c, subscribeTo("orders", 0))
}

// hoarding is a connection whose client acknowledges the end of no event stream.
type hoarding struct{ *memConn }

func (hoarding) OpenSendStream(context.Context) (SendStream, error) { return nil, ErrStreamsKept }

func TestAClientThatAcknowledgesTheEndOfNoEventStreamIsToldSo(t *testing.T) {
	x := open(t, setting{})
	c := newMemConn(x.opts.Clock)
	x.conns = append(x.conns, c)
	x.acceptor.conns <- Conn(hoarding{c})
	l := dial(t, c, today())
	if f := refused(t, l.ask(subscribeTo("orders", 0))); f.Code != wire.CodeLimitExceeded || !strings.Contains(f.Message, "has not acknowledged the end") {
		t.Errorf("%+v", f)
	}
	l.publish("orders", "on")
	x.balanced()
}

func TestAReaderThatLeavesInTheMiddleOfAWriteCostsOnlyItself(t *testing.T) {
	x := open(t, setting{})
	c := x.connect(func(c *memConn) { c.window = 256 })
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", 0))
	for range 10 {
		l.publish("orders", strings.Repeat("p", 200))
	}
	s.h.CancelRead()
	eventually(t, "its subscription is gone", func() bool { return x.metric("felix_subscribers") == 0 })
	l.publish("orders", "on")
}

// lateRing is a cursor whose reader is rung just when a select may choose something else, and again whenever it is armed.
type lateRing struct {
	storage.Cursor
	arm func() bool
}

func (l lateRing) Arm(int, int64) bool { return l.arm() }
func (lateRing) Disarm()               {}
func (lateRing) LetGo()                {}

// A log rings its readers with its lock held. A ring that nobody took must therefore never make a later one wait: it would
// hold up the shard, and with it everybody.
func TestARingThatWasNotTakenNeverBlocksALaterOne(t *testing.T) {
	for range 50 {
		finish, finished := context.WithCancel(t.Context())
		d := newFeed(&Options{}, finish, 1, newHalf(t.Context(), actors.RealClock(), 1<<10), requested(1, false, wire.Grant{}))
		arms := 0
		d.cursor = lateRing{arm: func() bool {
			if arms++; arms == 1 {
				finished() // both are ready: the gate takes either
			}
			d.gate.Ring()
			return true
		}}
		over := make(chan error, 1)
		go func() {
			more, err := true, error(nil)
			for more && err == nil {
				more, err = d.wait(t.Context())
			}
			over <- err
		}()
		if err := want(t, over, "the end of the subscription"); err != nil {
			t.Fatal(err)
		}
	}
}

// mission 209
func TestManySubscriptionsAndPublishersOnOneConnectionEndWithIt(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	var all sync.WaitGroup
	var lines []*line
	var subs []subscription
	for range 8 {
		l := dial(t, c, today())
		lines, subs = append(lines, l), append(subs, l.subscribe(c, subscribeTo("orders", 0)))
	}
	for i, l := range lines {
		s := subs[i]
		all.Go(func() {
			for {
				if _, err := s.read(); err != nil {
					var how closed
					if !errors.As(err, &how) && !errors.Is(err, errReset) {
						t.Errorf("subscription %d: %v", i, err)
					}
					return
				}
			}
		})
		all.Go(func() {
			for n := uint64(0); ; n++ {
				if _, err := l.w.Write(batchTo("orders", n, wire.AckPerBatch, "x")); err != nil {
					return
				}
				if n == 20 && i == 0 {
					c.leave()
				}
			}
		})
	}
	all.Wait()
	x.balanced()
	eventually(t, "nothing of the connection is left", func() bool {
		return x.metric("felix_client_connections") == 0 && x.metric("felix_subscribers") == 0
	})
}
