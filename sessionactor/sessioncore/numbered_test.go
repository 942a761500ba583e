package sessioncore

import (
	"testing"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func numberedPublish(id uint64) *wire.Publish {
	p := published("hello", 1)
	p.Flags |= wire.FlagPublishAcked | wire.FlagPublishIdempotent
	p.RequestID, p.Ack, p.ProducerID, p.Sequence = id, wire.AckPerBatch, 99, 4
	return p
}

const numberedJSON = `{"type":"publish_idempotent","tenant_id":"t1","namespace":"default","stream":"orders","payloads":["aGVsbG8="],"request_id":7,"producer_id":99,"sequence":4}`

// mission 371, REP-11: however a numbered publish came, its answer is JSON under its id, and says which of the things it is.
func TestANumberedPublishIsAnsweredInJSONWhateverBecameOfIt(t *testing.T) {
	for name, f := range map[string]func() Frame{
		"binary": func() Frame { return binaryFrame(numberedPublish(7)) },
		"JSON":   func() Frame { return text(numberedJSON) },
	} {
		for _, c := range []struct {
			answer Answer
			want   string
		}{
			{Answer{HasOffset: true, Offset: 12}, `{"type":"publish_ok","request_id":7,"offset":12}`},
			{Answer{Refused: &wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: 3}},
				`{"type":"publish_refused","request_id":7,"reason":{"sequence_gap":{"expected":3}},"message":"the sequence is past the next one, which is 3; send that first"}`},
			{Answer{Refused: &wire.RefusedReason{Kind: wire.RefusedSequenceReused}},
				`{"type":"publish_refused","request_id":7,"reason":"sequence_reused","message":"the sequence was used for other payloads; nothing was appended"}`},
		} {
			s := open(t, todayOffered(), rights{})
			q := s.Frame(f())
			if q.Do != Publish || q.Kind != wire.KindPublishIdempotent || q.Publish.ProducerID != 99 || q.Publish.Sequence != 4 {
				t.Fatalf("%s: wants %d of kind %v, %+v", name, q.Do, q.Kind, q.Publish)
			}
			if got := string(q.Framed[RegionHeadroom:]); got != "\x00\x00\x00\x05hello" {
				t.Fatalf("%s: region %q", name, got)
			}
			s.Settle(q.Token, c.answer)
			if got := string(one(t, s).payload); got != c.want {
				t.Errorf("%s: answered %s, want %s", name, got, c.want)
			}
		}
	}
}

// A client that cannot read a reason gets an error that is fatal, and never an ok for what was not appended.
func TestAReasonThatAClientCannotReadIsAFatalError(t *testing.T) {
	for _, features := range []wire.Features{wire.FeatureErrorCodes, wire.FeatureErrorCodes | wire.FeatureIdempotentProducer} {
		s := open(t, offering(0, features)(), rights{})
		s.Settle(s.Frame(text(numberedJSON)).Token, Answer{Refused: &wire.RefusedReason{Kind: wire.RefusedSequenceReused}})
		got := one(t, s)
		if f := got.failure(t); f.Code != wire.CodeInvalidRequest || f.Retry != wire.RetryFatal || f.Reason != "sequence_reused" {
			t.Errorf("offered %x: answered %s", features, got.payload)
		}
	}
}

func TestAConditionalPublishIsAnsweredWithItsOffsetOrTheNextOne(t *testing.T) {
	const asked = `{"type":"publish_if","tenant_id":"t1","namespace":"default","stream":"orders","payloads":["YQ=="],"expected_offset":8,"request_id":3}`
	const commit = `{"type":"commit","tenant_id":"t1","namespace":"default","stream":"orders","entity_key":"ZQ==","event":"YQ==","request_id":3,"expected_offset":8}`
	mismatch := Answer{Refused: &wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 9}}
	const refused = `{"type":"publish_refused","request_id":3,"reason":{"offset_mismatch":{"tail":9}},"message":"the next offset of the shard is 9; nothing was appended"}`
	for _, c := range []struct {
		asked  string
		do     Do
		answer Answer
		want   string
	}{
		{asked, Publish, Answer{HasOffset: true, Offset: 8}, `{"type":"publish_ok","request_id":3,"offset":8}`},
		{asked, Publish, mismatch, refused},
		{asked, Publish, Answer{Refusal: full()}, `{"type":"error","message":"no room"}`},
		{commit, Ask, Answer{HasOffset: true, Offset: 8}, `{"type":"commit_ok","request_id":3,"offset":8}`},
		{commit, Ask, mismatch, refused},
	} {
		s := open(t, legacyOffered(), rights{}) // it did not offer offsets in acks
		q := s.Frame(text("%s", c.asked))
		if q.Do != c.do {
			t.Fatalf("%s wants %d: %q", c.asked, q.Do, s.Out())
		}
		if m, ok := q.Message.(*wire.PublishIf); c.do == Publish && (!ok || m.ExpectedOffset != 8 || q.Kind != wire.KindPublishIf || q.Publish.Count != 1) {
			t.Errorf("the request is %+v", q)
		}
		s.Settle(q.Token, c.answer)
		if got := string(one(t, s).payload); got != c.want {
			t.Errorf("answered %s, want %s", got, c.want)
		}
	}
}

func TestRightsAreCheckedForEveryDurableRequest(t *testing.T) {
	for _, c := range []struct {
		m      wire.Message
		denied Action
	}{
		{&wire.StreamRead{TenantID: tenant, Namespace: namespace, Stream: "orders"}, ActionSubscribe},
		{&wire.OffsetForTime{TenantID: tenant, Namespace: namespace, Stream: "orders"}, ActionSubscribe},
		{&wire.StateGet{TenantID: tenant, Namespace: namespace, Stream: "orders"}, ActionSubscribe},
		{&wire.Commit{TenantID: tenant, Namespace: namespace, Stream: "orders"}, ActionPublish},
		{&wire.PublishIf{TenantID: tenant, Namespace: namespace, Stream: "orders"}, ActionPublish},
	} {
		s := open(t, todayOffered(), rights{denied: c.denied})
		if q := s.Frame(message(c.m)); q.Do != Nothing || one(t, s).failure(t).Code != wire.CodeForbidden {
			t.Errorf("%T was let in", c.m)
		}
	}
	s := open(t, todayOffered(), rights{})
	if q := s.Frame(message(&wire.ProducerInit{RequestID: 1})); q.Do != Ask {
		t.Error("producer_init needs a token and nothing else")
	}
}

// A write whose log does not answer in time is answered as unknown; what it holds stays held until its outcome, which nobody is told.
func TestAnOverdueRequestIsAnsweredAndKeepsWhatItHolds(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	var tokens []Token
	for i := range uint64(3) {
		tokens = append(tokens, s.Frame(acked(i)).Token)
		s.Admitted(tokens[i], id.ShardID(5))
		s.Due(tokens[i], int64(100+i))
	}
	held := s.Bytes(tokens[0])
	late := wire.Refuse(wire.CodeUnacknowledged, "late")
	if n, next := s.Expire(99, &late); n != 0 || next != 100 {
		t.Fatalf("before its time: %d expired, next %d", n, next)
	}
	s.Settle(tokens[1], Answer{}) // done in time; its answer waits for the first
	if n, next := s.Expire(100, &late); n != 1 || next != 102 {
		t.Fatalf("%d expired, next %d", n, next)
	}
	got := sent(t, s)
	if len(got) != 2 || got[0].failure(t).Retry != wire.RetryOutcomeUnknown || got[1].String() != "publish 1 ok" {
		t.Fatalf("answered %v", got)
	}
	if n := s.Released(); n != held || len(s.Outcomes()) != 1 {
		t.Errorf("%d bytes came back, want those of the one that has its outcome", n)
	}
	if s.IsOpen(tokens[0]) || !s.Outlived(tokens[0]) || s.Outlived(tokens[0]) {
		t.Error("the outcome of the overdue one is taken once")
	}
	if n, list := s.Released(), s.Outcomes(); n != held || len(list) != 1 || list[0] != (Outcome{Shard: 5, Requests: 1, Bytes: held}) {
		t.Errorf("%d bytes came back, outcomes %v", n, list)
	}
	none(t, s)
	if s.Outlived(tokens[2]) {
		t.Error("one that is not overdue was taken for one")
	}
}

// The window bounds what is overdue, too, and a stream is not finished before the last outcome.
func TestOverdueRequestsFillTheWindowAndHoldTheStream(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	late := wire.Refuse(wire.CodeUnacknowledged, "late")
	var tokens []Token
	for i := range uint64(window) {
		tokens = append(tokens, s.Frame(acked(i)).Token)
		s.Due(tokens[i], 1)
	}
	if n, next := s.Expire(1, &late); n != window || next != 0 || len(sent(t, s)) != window {
		t.Fatalf("%d expired", n)
	}
	if s.Room() || s.Open() != 0 {
		t.Errorf("room %v with a window of overdue requests, %d open", s.Room(), s.Open())
	}
	s.End("finished")
	for _, token := range tokens {
		if s.Finished() {
			t.Fatal("finished with a request that has no outcome")
		}
		s.Outlived(token)
	}
	if !s.Finished() || !s.Room() {
		t.Error("it is not finished after the last outcome")
	}
}
