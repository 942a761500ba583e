package sessionactor

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// numberedTo is the frame of an idempotent publish.
func numberedTo(name string, request, producer, sequence uint64, payloads ...string) []byte {
	p := &wire.Publish{Flags: wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagPublishIdempotent, Tenant: []byte(tenant), Namespace: []byte(namespace), Stream: []byte(name)}
	p.RequestID, p.Ack, p.ProducerID, p.Sequence, p.Count = request, wire.AckPerBatch, producer, sequence, uint32(len(payloads))
	for _, s := range payloads {
		p.Region = wire.AppendPayload(p.Region, []byte(s))
	}
	return wire.AppendPublish(nil, p)
}

func publishIf(name string, expected id.Offset, payloads ...string) *wire.PublishIf {
	m := &wire.PublishIf{TenantID: tenant, Namespace: namespace, Stream: name, Count: uint32(len(payloads)), ExpectedOffset: expected, RequestID: 3}
	for _, s := range payloads {
		m.Records = wire.AppendPayload(m.Records, []byte(s))
	}
	return m
}

func commitTo(name string) *wire.Commit {
	return &wire.Commit{TenantID: tenant, Namespace: namespace, Stream: name, EntityKey: []byte("e"), Event: []byte("paid"), Changes: []wire.Change{{Key: "k", Value: []byte("v")}}, RequestID: 4}
}

// Acks of a durable stream name the offset of the first record, to those who read it; those of an ephemeral one never do.
func TestAnAckOfADurableStreamNamesItsOffset(t *testing.T) {
	x, _ := durable(t, setting{})
	l := dial(t, x.connect(), today())
	for i, want := range []id.Offset{0, 2, 4} {
		l.raw(batchTo("orders", uint64(i), wire.AckPerBatch, "a", "b"))
		if f := l.next(); f.flags != wire.FlagPublishAck|wire.FlagPublishAckOffset || f.ack.Offset != want {
			t.Errorf("flags %s, offset %d, want %d", f.flags, f.ack.Offset, want)
		}
	}
	l.raw(batchTo("wide", 9, wire.AckPerBatch, "a"))
	if f := l.next(); f.flags != wire.FlagPublishAck || f.ack.HasOffset {
		t.Errorf("an ephemeral stream was answered with flags %s", f.flags)
	}
	json := &wire.PublishBatchMessage{TenantID: tenant, Namespace: namespace, Stream: "orders", Records: wire.AppendPayload(nil, []byte("a")), RequestID: wire.Some(uint64(5)), Ack: wire.AckPerBatch}
	if f := l.ask(json); string(f.payload) != `{"type":"publish_ok","request_id":5,"offset":6}` {
		t.Errorf("answered %s", f.payload)
	}
	l.raw(numberedTo("orders", 6, 11, 0, "a"))
	if f := l.next(); string(f.payload) != `{"type":"publish_ok","request_id":6,"offset":7}` {
		t.Errorf("answered %s", f.payload)
	}
}

// heard keeps what publishes came to a shard.
type heard struct {
	mu   sync.Mutex
	list []shardactor.Publish
}

// answering makes the shards of a site answer publishes so, and keeps them.
func (x *site) answering(a shardactor.Answer) *heard {
	got := &heard{}
	x.sabotage.mu.Lock()
	defer x.sabotage.mu.Unlock()
	x.sabotage.answer = func(m *shardactor.Publish) shardactor.Answer {
		got.mu.Lock()
		defer got.mu.Unlock()
		got.list = append(got.list, *m)
		return a
	}
	return got
}

// last is the newest.
func (a *heard) last() *shardactor.Publish {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &a.list[len(a.list)-1]
}

// await is the newest with that one record, once it is there: shards are asked side by side.
func (a *heard) await(t *testing.T, record string) (m *shardactor.Publish) {
	t.Helper()
	eventually(t, "the shard is asked for "+record, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range a.list {
			if string(a.list[i].Batch.Body[4:]) == record {
				m = &a.list[i]
			}
		}
		return m != nil
	})
	return m
}

// What a client asks for beside the records is what the shard is asked for, and the batch's sum is there already.
//
// mission 367, mission 371, REP-11
func TestAShardIsAskedForWhatTheClientAsked(t *testing.T) {
	for _, weak := range []bool{false, true} { // FELIX_ACK_ON_COMMIT=0
		x, _ := durable(t, setting{change: func(o *Options) { o.AckAtClaim = weak }})
		got := x.answering(shardactor.Answer{Offset: 8})
		l := dial(t, x.connect(), today())
		strict := today()
		strict.ClientFeatures.V |= wire.FeatureAckOnCommit

		l.publish("orders", "a")
		if m := got.last(); m.AtClaim != weak || m.HasExpected || m.Batch.ProducerID != 0 || !m.Batch.Summed || m.Batch.Sum != batch.Checksum(m.Batch.Body) {
			t.Errorf("a publish became %+v", m)
		}
		dial(t, x.connect(), strict).publish("orders", "a")
		if got.last().AtClaim {
			t.Error("a client that asked for the commit is answered at the claim")
		}
		l.raw(batchTo("orders", 0, wire.AckNone, "b"))
		l.publish("wide", "c")
		if m := got.await(t, "b"); m.AtClaim || !m.Batch.Summed {
			t.Errorf("a publish without an answer became %+v", m)
		}
		if m := got.await(t, "c"); m.AtClaim || m.Batch.Summed {
			t.Errorf("a publish to an ephemeral stream became %+v", m)
		}
		l.raw(numberedTo("orders", 6, 11, 4, "a"))
		l.next()
		if m := got.last(); m.AtClaim || m.Batch.ProducerID != 11 || m.Batch.Sequence != 4 || !m.Batch.Summed {
			t.Errorf("a numbered publish became %+v", m)
		}
		if f := l.ask(publishIf("orders", 8, "a")); string(f.payload) != `{"type":"publish_ok","request_id":3,"offset":8}` {
			t.Errorf("publish_if was answered %s", f.payload)
		}
		if m := got.last(); m.AtClaim || !m.HasExpected || m.Expected != 8 || m.Batch.Kind != batch.Records {
			t.Errorf("a conditional publish became %+v", m)
		}
		commit := commitTo("orders")
		commit.ExpectedOffset = wire.Some(id.Offset(5))
		if f := l.ask(commit); string(f.payload) != `{"type":"commit_ok","request_id":4,"offset":8}` {
			t.Errorf("commit was answered %s", f.payload)
		}
		m := got.last()
		c, err := reading.DecodeCommit(m.Batch.Body)
		if err != nil || m.AtClaim || !m.HasExpected || m.Expected != 5 || m.Batch.Kind != batch.Commit || m.Batch.Count != 1 || string(c.Event) != "paid" || string(c.Entity) != "e" || c.Count() != 1 {
			t.Errorf("a commit became %+v, %+v, %v", m, c, err)
		}
	}
}

func TestAnAnswerAtTheClaimNamesNoOffset(t *testing.T) {
	x, _ := durable(t, setting{})
	x.answering(shardactor.Answer{Offset: 8, NoOffset: true})
	l := dial(t, x.connect(), today())
	l.raw(batchTo("orders", 1, wire.AckPerBatch, "a"))
	if f := l.next(); f.flags != wire.FlagPublishAck || f.ack.Refusal != nil {
		t.Errorf("flags %s, %+v", f.flags, f.ack)
	}
}

// REP-11: each reason of a shard travels in its own words, and is counted.
func TestWhyAShardRefusedReachesTheClient(t *testing.T) {
	x, _ := durable(t, setting{})
	x.answering(shardactor.Answer{Refused: &wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 12}})
	l := dial(t, x.connect(), today())
	const want = `{"type":"publish_refused","request_id":%d,"reason":{"offset_mismatch":{"tail":12}},"message":"the next offset of the shard is 12; nothing was appended"}`
	if f := l.ask(publishIf("orders", 8, "a")); string(f.payload) != fmt.Sprintf(want, 3) {
		t.Errorf("publish_if was answered %s", f.payload)
	}
	if f := l.ask(commitTo("orders")); string(f.payload) != fmt.Sprintf(want, 4) {
		t.Errorf("commit was answered %s", f.payload)
	}
	x.answering(shardactor.Answer{Refused: &wire.RefusedReason{Kind: wire.RefusedUnknownProducer}})
	l.raw(numberedTo("orders", 6, 11, 4, "a"))
	if m, ok := l.next().message.(*wire.PublishRefused); !ok || m.Reason.Kind != wire.RefusedUnknownProducer || m.RequestID != 6 {
		t.Errorf("a numbered publish was answered %+v", m)
	}
	if n := x.metric("felix_requests_refused_total"); n != 3 {
		t.Errorf("%v refusals were counted", n)
	}
}

// What takes a log is refused by type where there is none, and what is wrong in itself everywhere; the stream goes on.
func TestWhatNeedsALogIsRefusedByTypeWithoutOne(t *testing.T) {
	x, _ := durable(t, setting{})
	l := dial(t, x.connect(), today())
	refusedAs := func(reason string, what string, f frame) {
		t.Helper()
		if r := refused(t, f); r.Code != wire.CodeInvalidRequest || r.Retry != wire.RetryFatal || r.Reason != reason {
			t.Errorf("%s was answered %+v", what, r)
		}
	}
	for what, m := range map[string]wire.Message{
		"publish_if": publishIf("wide", 0, "a"), "commit": commitTo("wide"),
		"state_get":       &wire.StateGet{TenantID: tenant, Namespace: namespace, Stream: "wide"},
		"stream_read":     &wire.StreamRead{TenantID: tenant, Namespace: namespace, Stream: "wide"},
		"offset_for_time": &wire.OffsetForTime{TenantID: tenant, Namespace: namespace, Stream: "wide"},
		"subscribe":       subscribeAt("wide", 0),
	} {
		refusedAs("ephemeral", what, l.ask(m))
	}
	l.raw(numberedTo("wide", 6, 11, 0, "a"))
	refusedAs("ephemeral", "a numbered publish", l.next())
	l.raw(numberedTo("orders", 6, 0, 0, "a"))
	refusedAs("", "producer 0", l.next())
	l.raw(numberedTo("orders", 6, 11, 0))
	refusedAs("", "a batch of nothing", l.next())
	refusedAs("", "a conditional batch of nothing", l.ask(publishIf("orders", 0)))
	refusedAs("", "a shard that is not there", l.ask(&wire.StreamRead{TenantID: tenant, Namespace: namespace, Stream: "orders", Shard: 1}))
	if r := refused(t, l.ask(commitTo("none"))); r.Code != wire.CodeNotFound {
		t.Errorf("an unknown stream was answered %+v", r)
	}
	l.publish("orders", "on")
}

// A broker without storage offers nothing that takes a log, and answers it as unsupported.
func TestABrokerWithoutStorageOffersNothingNew(t *testing.T) {
	if o := EphemeralOffer(); o.Flags != 0x567f || o.Features != 0x4206ac25 || o.FeaturesHi != 0 {
		t.Errorf("it offers flags %#x, features %#x, %#x", uint16(o.Flags), uint32(o.Features), o.FeaturesHi)
	}
	x := open(t, setting{})
	l := dial(t, x.connect(), today())
	for _, m := range []wire.Message{publishIf("orders", 0, "a"), commitTo("orders"), &wire.ProducerInit{RequestID: 1}, &wire.StreamRead{TenantID: tenant}, watchOf("users"), addTo("users", "n", 1)} {
		if u, ok := l.ask(m).message.(*wire.Unsupported); !ok || u.RequestType != m.MessageType() {
			t.Errorf("%s was answered %+v", m.MessageType(), u)
		}
	}
	l.raw(numberedTo("orders", 6, 11, 0, "a"))
	if r := refused(t, l.next()); r.Code != wire.CodeInvalidRequest || r.Reason != "" {
		t.Errorf("a numbered publish was answered %+v", r)
	}
}

func TestAProducerIsGivenAnIDThatNobodyElseHas(t *testing.T) {
	draws := []uint64{0, 7, 0, 9}
	x, _ := durable(t, setting{change: func(o *Options) {
		o.ProducerIDs = NewProducerIDs(func() uint64 { d := draws[0]; draws = draws[1:]; return d })
	}})
	l := dial(t, x.connect(), today())
	for i, want := range []uint64{7, 9} {
		if f := l.ask(&wire.ProducerInit{RequestID: uint64(i)}); string(f.payload) != fmt.Sprintf(`{"type":"producer_init_ok","request_id":%d,"producer_id":%d}`, i, want) {
			t.Errorf("answered %s", f.payload)
		}
	}
	if a, b := DefaultOptions().ProducerIDs.next(), DefaultOptions().ProducerIDs.next(); a == b {
		t.Error("two brokers draw the same ids")
	}
}

// A log that does not answer in time: the client is told that nobody knows, in the order of its requests, and the permits stay held until
// the outcome, which is told to nobody.
func TestAWriteWithoutOutcomeIsAnsweredAsUnknownInTime(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x, _ := durable(t, setting{clock: clock})
	l := dial(t, x.connect(), today())
	clock.Advance(2 * restAfter) // nobody looks after a lane that rests
	timers := clock.Pending()
	entered := x.sabotage.hold("orders/0")
	l.raw(batchTo("orders", 1, wire.AckPerBatch, "a"))
	want(t, entered, "the shard stands still")
	x.counts("felix_published_records_total", 1) // and its answer has a deadline
	clock.Advance(time.Second)
	l.raw(batchTo("orders", 2, wire.AckPerBatch, "b"))
	l.raw(batchTo("orders", 0, wire.AckNone, "c"))
	x.counts("felix_published_records_total", 3)
	held := func() int { _, n := x.opts.Frames.InUse(); return n }
	for i := range uint64(2) {
		before := held()
		clock.Advance(time.Second)
		f := l.next()
		if r := refused(t, f); f.ack.RequestID != i+1 || r.Code != wire.CodeUnacknowledged || r.Retry != wire.RetryOutcomeUnknown {
			t.Errorf("publish %d was answered %+v", f.ack.RequestID, r)
		}
		if got := held(); got != before || before == 0 {
			t.Errorf("%d bytes are held after the answer, %d before it", got, before)
		}
	}
	if n := clock.Pending(); n != timers {
		t.Errorf("%d timers are armed, %d before", n, timers)
	}
	x.sabotage.release()
	x.balanced()
	l.raw(batchTo("orders", 4, wire.AckPerBatch, "d"))
	if f := l.next(); f.ack.RequestID != 4 || f.ack.Offset != 3 {
		t.Errorf("after them came %+v", f.ack)
	}
}

// A shard that fails over what is overdue already is laid at nobody's door twice, and nothing is answered again.
func TestAnOverdueWriteOfAFailingShardIsAnsweredOnce(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x, _ := durable(t, setting{clock: clock})
	l := dial(t, x.connect(), today())
	entered := x.sabotage.hold("orders/0")
	l.raw(batchTo("orders", 1, wire.AckPerBatch, "a"))
	want(t, entered, "the shard stands still")
	x.counts("felix_published_records_total", 1) // and its answer has a deadline
	clock.Advance(2 * time.Second)
	if f := l.next(); f.ack.Refusal == nil {
		t.Fatalf("answered %+v", f.ack)
	}
	x.sabotage.panicNext("orders/0")
	x.sabotage.release()
	x.balanced()
	l.raw(batchTo("wide", 2, wire.AckPerBatch, "b"))
	if f := l.next(); f.ack.RequestID != 2 {
		t.Errorf("then came %+v", f.ack)
	}
}
