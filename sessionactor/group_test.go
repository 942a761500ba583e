package sessionactor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// What each request of a group is answered, to the letter.
func TestEveryRequestOfAGroupIsAnsweredAsTheProtocolSays(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	l := dial(t, x.connect(), flags(0))
	legacy := dial(t, x.connect(), nothing()) // reads no codes, no timestamps
	l.publish("orders", "a", "b", "c", "d")
	for _, step := range []struct {
		ask  wire.Message
		want string
	}{
		{&wire.GroupDescribe{GroupTarget: groupOf(5)}, `{"type":"group_info","tail":4,"in_flight":0,"owed":0,"dead_letters":0,"request_id":5}`},
		{pollFor(2, 0), `{"type":"group_records","records":[{"offset":0,"payload":"YQ==","attempts":1},{"offset":1,"payload":"Yg==","attempts":1}],"request_id":1}`},
		{ack(0), `{"type":"cache_ok","request_id":2}`},
		{ack(0), `{"type":"cache_ok","request_id":2}`},
		{nack(1, 1), `{"type":"cache_ok","request_id":3}`},
		{pollFor(2, 0), `{"type":"group_records","records":[{"offset":1,"payload":"Yg==","attempts":2}],"request_id":1}`},
		{extend(1, 2, 60_000), `{"type":"group_extended","visible_ms":60000,"request_id":4}`},
		{&wire.GroupDeadLetter{GroupTarget: groupOf(6), Offset: 1}, `{"type":"cache_ok","request_id":6}`},
		{&wire.GroupDeadLetters{GroupTarget: groupOf(7)}, `{"type":"group_dead_letter_list","offsets":[1],"request_id":7}`},
		{&wire.GroupRedrive{GroupTarget: groupOf(8), Offset: 1}, `{"type":"cache_ok","request_id":8}`},
		{&wire.GroupDescribe{GroupTarget: groupOf(5)}, `{"type":"group_info","committed":2,"tail":4,"in_flight":0,"owed":1,"dead_letters":0,"request_id":5}`},
		{pollFor(1, 0), `{"type":"group_records","records":[{"offset":1,"payload":"Yg==","attempts":1}],"request_id":1}`},
		{&wire.GroupDeadLetter{GroupTarget: groupOf(6), Offset: 1}, `{"type":"cache_ok","request_id":6}`},
		{&wire.GroupDiscard{GroupTarget: groupOf(9), Offset: 1}, `{"type":"cache_ok","request_id":9}`},
		{&wire.GroupDeadLetters{GroupTarget: groupOf(7)}, `{"type":"group_dead_letter_list","offsets":[],"request_id":7}`},
		{&wire.GroupSeek{GroupTarget: groupOf(10), Start: wire.Start{Kind: wire.StartOffset, Offset: 3}, IfNew: true}, `{"type":"group_position","offset":2,"moved":false,"request_id":10}`},
		{&wire.GroupSeek{GroupTarget: groupOf(10), Start: wire.Start{Kind: wire.StartOffset, Offset: 3}}, `{"type":"group_position","offset":3,"moved":true,"request_id":10}`},
		{pollFor(2, 0), `{"type":"group_records","records":[{"offset":3,"payload":"ZA==","attempts":1}],"request_id":1}`},
		{pollFor(2, 0), `{"type":"group_records","records":[],"request_id":1}`},
		{&wire.GroupDelete{GroupTarget: groupOf(11)}, `{"type":"group_deleted","existed":true,"request_id":11}`},
		{&wire.GroupDelete{GroupTarget: groupOf(11)}, `{"type":"group_deleted","existed":false,"request_id":11}`},
	} {
		if f := l.ask(step.ask); string(f.payload) != step.want {
			t.Fatalf("%+v was answered\n%s, want\n%s", step.ask, f.payload, step.want)
		}
	}
	if got := legacy.poll(pollFor(1, 0)); len(got) != 1 || got[0].TimestampMicros.Set {
		t.Errorf("an old client got %+v", got)
	}
	timed := today()
	timed.ClientFeatures.V |= wire.FeatureRecordTimestamps
	if got := dial(t, x.connect(), timed).poll(pollFor(1, 0)); len(got) != 1 || !got[0].TimestampMicros.Set || got[0].Publisher.Set {
		t.Errorf("a client that reads timestamps got %+v", got)
	}
	if n := x.metric("felix_group_polls_waiting"); n != 0 {
		t.Errorf("%v polls wait", n)
	}
	if n := x.metric("felix_group_requests_total"); n != 23 {
		t.Errorf("%v requests were counted", n)
	}
}

func TestABadRequestOfAGroupIsRefusedWithWhatIsWrong(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	l := dial(t, x.connect(), today())
	l.publish("orders", "a")
	unnamed, nameless, nul, endless := pollFor(1, 0), pollFor(1, 0), pollFor(1, 0), pollFor(1, 0)
	unnamed.Group = ""
	nameless.Consumer, nul.Consumer, endless.Consumer = wire.Some(""), wire.Some("a\x00b"), wire.Some(strings.Repeat("x", wire.MaxConsumerBytes+1))
	other, missing := pollFor(1, 0), pollFor(1, 0)
	other.Shard, missing.Stream = 7, "nowhere"
	ephemeral := &wire.GroupDelete{GroupTarget: groupOf(1)}
	ephemeral.Stream = "wide"
	for name, c := range map[string]struct {
		ask    wire.Message
		code   wire.Code
		reason string
	}{
		"no group name":     {unnamed, wire.CodeInvalidRequest, ""},
		"no records":        {pollFor(0, 0), wire.CodeInvalidRequest, ""},
		"consumer empty":    {nameless, wire.CodeInvalidRequest, ""},
		"consumer with NUL": {nul, wire.CodeInvalidRequest, ""},
		"consumer too long": {endless, wire.CodeInvalidRequest, ""},
		"no such shard":     {other, wire.CodeInvalidRequest, ""},
		"no such stream":    {missing, wire.CodeNotFound, ""},
		"ephemeral":         {ephemeral, wire.CodeInvalidRequest, "ephemeral"},
		"ack past the end":  {ack(1), wire.CodeInvalidRequest, ""},
		"extend by nothing": {extend(0, 1, 0), wire.CodeInvalidRequest, ""},
		"seek past the end": {&wire.GroupSeek{GroupTarget: groupOf(1), Start: wire.Start{Kind: wire.StartOffset, Offset: 9}}, wire.CodeInvalidRequest, ""},
		"nack of nobody's":  {nack(0, 0), wire.CodeStaleClaim, ""},
	} {
		if r := refused(t, l.ask(c.ask)); r.Code != c.code || r.Reason != c.reason || r.Message == "" {
			t.Errorf("%s: refused %+v", name, r)
		}
	}
}

// The protocol has no rule for names of groups but their length, and foreign clients take any text for one: so does the broker, and no two names
// are the same group. Whoever prints a name escapes it.
func TestAnyTextIsTheNameOfAGroupOfItsOwn(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	l := dial(t, x.connect(), today())
	l.publish("orders", "a")
	for _, name := range []string{"workers", "workers ", "Workers", "a/b", "../a", "*", " ", "\n", "\x00", "\x00\x00", "\x1b]0;owned\x07\x1b[2J", "\u00e9", "e\u0301", "\u202e"} {
		m := pollFor(1, 0)
		m.Group = name
		handed(t, l.poll(m), 1, 0)
		handed(t, l.poll(m), 0)
	}
}

// What a broker cannot do it does not offer: one without a disk has no groups.
func TestABrokerWithoutADiskOffersNoGroups(t *testing.T) {
	const groups = wire.FeatureConsumerGroup | wire.FeatureGroupDeadLetters | wire.FeatureGroupConsumer | wire.FeatureGroupSkipped |
		wire.FeatureGroupAdmin | wire.FeatureGroupClaimControl
	if o := EphemeralOffer(); o.Features&(groups|wire.FeatureGroupPublisher) != 0 {
		t.Errorf("offered in memory: %v", o.Features)
	}
	if o := DurableOffer(); !o.Features.Has(groups) || o.Features.Has(wire.FeatureGroupPublisher) {
		t.Errorf("offered with a disk: %v", o.Features)
	}
	x := open(t, setting{})
	if f := dial(t, x.connect(), today()).ask(pollFor(1, 0)); string(f.payload) != `{"type":"unsupported","request_type":"group_poll","request_id":1}` {
		t.Errorf("answered %s", f.payload)
	}
}

func TestGroupsTakeTheirOwnPermissions(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	consumer, manager := nothing(), nothing()
	consumer.Token, manager.Token = "no manage", "no consume"
	c, m := dial(t, x.connect(), consumer), dial(t, x.connect(), manager)
	lacks := func(f frame, permission string) bool {
		e, ok := f.message.(*wire.ErrorAnswer)
		return ok && e.Message == "forbidden: the token lacks the permission "+permission+" on group:t1/default/orders/workers"
	}
	for _, q := range []wire.Message{
		pollFor(1, 0), ack(0), nack(0, 1), extend(0, 1, 1), &wire.GroupDeadLetter{GroupTarget: groupOf(1)}, &wire.GroupDeadLetters{GroupTarget: groupOf(1)},
		&wire.GroupDescribe{GroupTarget: groupOf(1)},
	} {
		if f := m.ask(q); !lacks(f, "group.consume") {
			t.Errorf("%T was answered %s", q, f.payload)
		}
		if f := c.ask(q); lacks(f, "group.consume") {
			t.Errorf("%T was forbidden", q)
		}
	}
	for _, q := range []wire.Message{ // what may lose others their work, or give it to them again
		&wire.GroupDiscard{GroupTarget: groupOf(1)}, &wire.GroupRedrive{GroupTarget: groupOf(1)}, &wire.GroupSeek{GroupTarget: groupOf(1)},
		&wire.GroupDelete{GroupTarget: groupOf(1)},
	} {
		if f := c.ask(q); !lacks(f, "group.manage") {
			t.Errorf("%T was answered %s", q, f.payload)
		}
		if f := m.ask(q); lacks(f, "group.manage") {
			t.Errorf("%T was forbidden", q)
		}
	}
}

// A claim stands for as long as it was given or prolonged, and not a moment longer; a late extend is refused, a late ack settles.
func TestAClaimLapsesWhenItsTimeIsUp(t *testing.T) {
	clock := manual()
	x := newSiteDisk().stored(t, setting{clock: clock})
	a, b := dial(t, x.connect(), today()), dial(t, x.connect(), today())
	a.publish("orders", "a", "b")
	short := pollFor(2, 0)
	short.VisibilityMillis = 1000
	handed(t, a.poll(short), 1, 0, 1)
	clock.Advance(900 * time.Millisecond)
	if f := a.ask(extend(1, 1, 5000)); string(f.payload) != `{"type":"group_extended","visible_ms":5000,"request_id":4}` {
		t.Fatalf("answered %s", f.payload)
	}
	handed(t, b.poll(pollFor(2, 0)), 0)
	clock.Advance(100 * time.Millisecond)
	handed(t, b.poll(pollFor(2, 0)), 2, 0)
	a.stale(extend(0, 1, 5000), wire.RetryFatal)
	a.stale(nack(0, 1), wire.RetryFatal)
	a.done(ack(0)) // late, and done all the same
	clock.Advance(4900 * time.Millisecond)
	handed(t, b.poll(pollFor(2, 0)), 2, 1)
	b.done(ack(1))
	if i := a.describe(); i.Committed.V != 2 || i.InFlight != 0 || i.Owed != 0 {
		t.Errorf("%+v", i)
	}
}

// What was acked is not handed out after a restart; what was not is, as a further delivery.
func TestARestartHandsOutWhatWasNotAckedAndNothingElse(t *testing.T) {
	disk := newSiteDisk()
	x := disk.stored(t, setting{})
	l := dial(t, x.connect(), today())
	l.publish("orders", "a", "b", "c")
	handed(t, l.poll(pollFor(3, 0)), 1, 0, 1, 2)
	l.done(ack(1))
	x.close()
	x = disk.stored(t, setting{})
	l = dial(t, x.connect(), today())
	var got []id.Offset
	for len(got) < 2 {
		for _, r := range l.poll(pollFor(3, 0)) {
			if r.Attempts < 1 || r.Attempts > 2 {
				t.Errorf("%d is delivery %d", r.Offset, r.Attempts)
			}
			got = append(got, r.Offset)
		}
	}
	if got[0] != 0 || got[1] != 2 {
		t.Errorf("handed out again: %v", got)
	}
	l.done(ack(0))
	l.done(ack(2))
	handed(t, l.poll(pollFor(3, 0)), 0)
}

func TestTwoConnectionsShareAGroupAndAMemberTakesItsClaimsBack(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	c := x.connect()
	a, b := dial(t, c, today()), dial(t, x.connect(), today())
	a.publish("orders", "a", "b", "c", "d")
	member := pollFor(2, 0)
	member.Consumer = wire.Some("m")
	handed(t, a.poll(member), 1, 0, 1)
	handed(t, b.poll(pollFor(9, 0)), 1, 2, 3)
	a.done(ack(0))
	c.leave()
	want(t, c.ctx.Done(), "the end of the connection")
	bob := today()
	bob.Token = "bob"
	again := pollFor(2, 0)
	again.Consumer, again.Reclaim = wire.Some("m"), true
	handed(t, dial(t, x.connect(), bob).poll(again), 0) // the same name, somebody else
	handed(t, dial(t, x.connect(), today()).poll(again), 2, 1)
}

// A poll that waits is answered by what is published, and by the end of its time.
func TestAPublishWakesAPollThatWaits(t *testing.T) {
	clock := manual()
	x := newSiteDisk().stored(t, setting{clock: clock})
	a, b := dial(t, x.connect(), today()), dial(t, x.connect(), today())
	a.send(pollFor(5, 30_000))
	eventually(t, "the poll waits", func() bool { return x.metric("felix_group_polls_waiting") == 1 })
	b.publish("orders", "a", "b")
	handed(t, a.polled(1), 1, 0, 1)
	b.send(pollFor(5, 2000))
	eventually(t, "the poll is under way", func() bool { return x.metric("felix_group_polls_waiting") == 1 })
	a.describe() // behind it: the poll waits for its end by now
	clock.Advance(2 * time.Second)
	eventually(t, "its time is up", func() bool { clock.Advance(0); return b.h.unread() > 0 }) // a shard answers before it arms
	handed(t, b.polled(1), 0)
}

// A poll whose connection is gone takes no record along, whether it waited or came last.
func TestAPollWhoseClientIsGoneTakesNoRecord(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	c, b := x.connect(), dial(t, x.connect(), today())
	for n := range 8 {
		l := dial(t, c, today())
		l.send(pollFor(1, 30_000))
		if n%2 == 0 {
			l.h.CancelRead()
		}
	}
	eventually(t, "the polls wait", func() bool { return x.metric("felix_group_polls_waiting") == 8 })
	c.leave()
	eventually(t, "the polls are over", func() bool { return x.metric("felix_group_polls_waiting") == 0 })
	b.publish("orders", "a", "b")
	handed(t, b.poll(pollFor(5, 10_000)), 1, 0, 1)
}

// A stream that is gone while its connection lives on costs nobody a record: what was to be read for it is owed again at once. When the
// broker notices that it is gone nobody is told; until then its poll may get a record, which lapses soon.
func TestAPollWhoseStreamIsGoneTakesNoRecord(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	c := x.connect()
	b := dial(t, c, today())
	for tries := 0; ; tries++ {
		gone := dial(t, c, today())
		m := pollFor(1, 30_000)
		m.VisibilityMillis = 1
		gone.send(m)
		eventually(t, "the poll waits", func() bool { return x.metric("felix_group_polls_waiting") == 1 })
		gone.w.CancelWrite()
		b.publish("orders", "a")
		list := b.poll(pollFor(5, 10_000))
		eventually(t, "the poll is over", func() bool { return x.metric("felix_group_polls_waiting") == 0 })
		if len(list) != 1 || list[0].Offset != id.Offset(tries) {
			t.Fatalf("handed out: %+v", list)
		}
		if b.done(ack(list[0].Offset)); list[0].Attempts == 1 {
			return
		}
		if tries == 100 {
			t.Fatal("a poll of a stream that is gone always takes the record")
		}
	}
}

// Waiting polls do not hold up a drain: they are answered empty.
func TestADrainAnswersPollsThatWait(t *testing.T) {
	x := newSiteDisk().stored(t, setting{clock: manual()})
	c := x.connect()
	l, other := dial(t, c, today()), dial(t, c, today())
	for n := range uint64(3) {
		m := pollFor(1, 30_000)
		m.RequestID = n
		l.send(m)
	}
	other.send(pollFor(1, 30_000))
	eventually(t, "the polls wait", func() bool { return x.metric("felix_group_polls_waiting") == 4 })
	done := x.drain()
	for n := range uint64(3) {
		handed(t, l.polled(n), 0)
	}
	handed(t, other.polled(1), 0)
	x.drained(done, c)
}

// When the shard goes away under a poll it is answered too, and so is one that comes after.
func TestPollsAreAnsweredWhenTheirShardGoes(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	l := dial(t, x.connect(), today())
	l.send(pollFor(1, 30_000))
	eventually(t, "the poll waits", func() bool { return x.metric("felix_group_polls_waiting") == 1 })
	x.desire(stream("wide", 4))
	switch m := l.next().message.(type) {
	case *wire.GroupRecords:
		if len(m.Records) > 0 {
			t.Errorf("answered %+v", m)
		}
	case *wire.ErrorAnswer:
		if m.Refusal().Retry == wire.RetryFatal {
			t.Errorf("answered %+v", m)
		}
	default:
		t.Errorf("answered %+v", m)
	}
	if r := refused(t, l.ask(pollFor(1, 30_000))); r.Code != wire.CodeNotFound && r.Code != wire.CodeShardUnavailable {
		t.Errorf("refused %+v", r)
	}
}

// A shard that fails while polls wait answers them, and the group goes on with what is durable.
func TestAGroupGoesOnAfterItsShardFailed(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	l, w := dial(t, x.connect(), today()), dial(t, x.connect(), today())
	l.publish("orders", "a", "b")
	handed(t, l.poll(pollFor(1, 0)), 1, 0)
	l.done(ack(0))
	handed(t, l.poll(pollFor(1, 0)), 1, 1)
	w.send(pollFor(1, 30_000))
	eventually(t, "the poll waits", func() bool { return x.metric("felix_group_polls_waiting") == 1 })
	x.sabotage.panicNext("orders/0")
	l.send(ack(1))
	refused(t, l.next())
	if r := refused(t, w.next()); r.Retry == wire.RetryFatal {
		t.Errorf("the poll was refused %+v", r)
	}
	eventually(t, "the record is handed out again", func() bool {
		f := l.ask(pollFor(1, 0))
		m, ok := f.message.(*wire.GroupRecords)
		return ok && len(m.Records) == 1 && m.Records[0].Offset == 1
	})
}

// An answer has about 4 MiB of payloads; what does not fit stays with the group and comes next. Everything that was read is let go of.
func TestALargeAnswerHasFourMebibytesAndTheRestComesNext(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	l := dial(t, x.connect(), today())
	const size = 900 << 10
	for i := range 6 {
		l.publish("orders", fmt.Sprintf("%0*d", size, i))
	}
	next := id.Offset(0)
	for _, n := range []int{4, 2} {
		list := l.poll(pollFor(100, 0))
		if len(list) != n {
			t.Fatalf("%d records in an answer, want %d", len(list), n)
		}
		for _, r := range list {
			if r.Offset != next || string(r.Payload) != fmt.Sprintf("%0*d", size, next) || r.Attempts != 1 {
				t.Errorf("the record at %d is not that at %d", r.Offset, next)
			}
			next++
		}
	}
	eventually(t, "the places come back", func() bool { _, n := x.opts.NodeReads.InUse(); return n == 0 })
}

// A poll that waits lets go of its frame, however long that was, and counts with what is kept of it.
func TestAWaitingPollHoldsNoPermits(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	l := dial(t, x.connect(), today())
	f := wire.AppendJSONFrame(nil, pollFor(1, 30_000))
	payload := append(bytes.Repeat([]byte(" "), 1<<20), f[wire.HeaderSize:]...)
	l.raw(binary.BigEndian.AppendUint32(slices.Clone(f[:wire.HeaderSize-4]), uint32(len(payload))))
	l.raw(payload)
	eventually(t, "the poll waits", func() bool { return x.metric("felix_group_polls_waiting") == 1 })
	eventually(t, "it holds none", func() bool { _, held := x.opts.Frames.InUse(); return held == 0 })
	if n, want := x.opts.Polls.Used(), pollBytes(pollFor(1, 30_000), ""); n != want {
		t.Errorf("%d bytes are counted, want %d", n, want)
	}
}

// One connection with a thousand polls that wait has no goroutine for each, and little memory.
func TestAThousandWaitingPollsCostNoGoroutines(t *testing.T) {
	orders, wide := stream("orders", 1), stream("wide", 4)
	orders.Durable, wide.Durable = true, true
	d := newSiteDisk()
	x := d.serving(t, setting{disk: d, desired: []route.Assignment{orders, wide}, change: func(o *Options) { o.Offer = DurableOffer() }})
	c := x.connect()
	const lanes, each = 16, 65 // the ring of a stream has just grown from 64
	var list []*line
	for range lanes {
		list = append(list, dial(t, c, today()))
	}
	handed(t, list[0].poll(pollFor(1, 0)), 0) // the group is up
	goroutines, memory := runtime.NumGoroutine(), memoryInUse()
	for i, l := range list {
		for n := range uint64(each) {
			m := pollFor(1, 30_000)
			m.RequestID = n
			l.send(m)
		}
		// All at once would be more than a shard's mailbox takes before its first turn.
		eventually(t, "the polls wait", func() bool { return x.metric("felix_group_polls_waiting") == float64((i+1)*each) })
	}
	// A lane that rests has two for a moment.
	eventually(t, "hardly more goroutines are there", func() bool { return runtime.NumGoroutine()-goroutines <= 5 })
	per := (memoryInUse() - memory) / (lanes * each)
	t.Logf("a poll that waits: %d bytes", per)
	if counted := int64(pollBytes(pollFor(1, 30_000), "")); per > counted && poolSlack == 0 {
		t.Errorf("a poll that waits costs %d bytes and is counted with %d", per, counted)
	}
	writer := dial(t, x.connect(), today())
	payloads := make([]string, lanes*each)
	for i := range payloads {
		payloads[i] = fmt.Sprint(i)
	}
	writer.publish("orders", payloads...)
	seen := map[id.Offset]bool{}
	for _, l := range list {
		for n := range uint64(each) {
			for _, r := range l.polled(n) {
				if seen[r.Offset] || string(r.Payload) != fmt.Sprint(r.Offset) {
					t.Fatalf("%d came twice, or with the payload %q", r.Offset, r.Payload)
				}
				seen[r.Offset] = true
			}
		}
	}
	if len(seen) != lanes*each {
		t.Errorf("%d records were handed out", len(seen))
	}
}
