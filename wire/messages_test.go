package wire

import (
	"reflect"
	"testing"

	"github.com/felixd/felixd/wire/id"
)

func TestNumberedAndConditionalPublishesTakeTheWayOfBinaryOnes(t *testing.T) {
	target := `"tenant_id":"t1","namespace":"ns","stream":"orders","payloads":["YQ==","YmM="],"key":"azE="`
	m, err := DecodeJSON([]byte(`{"type":"publish_idempotent",` + target + `,"request_id":9,"producer_id":3735928559,"sequence":7}`))
	if err != nil {
		t.Fatal(err)
	}
	got := m.(*PublishIdempotent).Publish()
	got.Flags = FlagPublishBatch | FlagPublishAcked | FlagPublishIdempotent | FlagPublishKeyed
	flags, payload := split(t, AppendPublish(nil, &got))
	var binary Publish
	if err := binary.Decode(flags, payload); err != nil || !reflect.DeepEqual(got, binary) {
		t.Errorf("%+v\nin binary %+v, %v", got, binary, err)
	}
	m, err = DecodeJSON([]byte(`{"type":"publish_if",` + target + `,"expected_offset":4,"request_id":9}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Publish{RequestID: 9, HasRequestID: true, Ack: AckPerBatch, Keyed: true, Key: []byte("k1"), Tenant: []byte("t1"),
		Namespace: []byte("ns"), Stream: []byte("orders"), Count: 2, Region: regionOf("a", "bc"), PayloadBytes: 3}
	if got := m.(*PublishIf).Publish(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestEveryReasonOfARefusedPublishGoesThereAndBack(t *testing.T) {
	reasons := []RefusedReason{
		{Kind: RefusedSequenceGap, Expected: 1<<64 - 1}, {Kind: RefusedUnknownProducer}, {Kind: RefusedSequenceExpired},
		{Kind: RefusedSequenceReused}, {Kind: RefusedNotLeader, NodeID: "b", Addr: Some("10.0.0.5:5000")}, {Kind: RefusedOffsetMismatch, Tail: 7},
	}
	if len(reasons) != int(refusedEnd) {
		t.Fatalf("%d reasons are listed, there are %d", len(reasons), refusedEnd)
	}
	for i, reason := range reasons {
		m, err := DecodeJSON(AppendJSON(nil, &PublishRefused{RequestID: 1, Reason: reason, Message: "m"}))
		if err != nil || m.(*PublishRefused).Reason != reason || reason.Kind != RefusedKind(i) {
			t.Errorf("%v comes back as %+v, %v", reason.Kind, m, err)
		}
	}
	if refusedEnd.String() != "unknown" || RefusedNotLeader.String() != "not_leader" {
		t.Error("kinds must be called what they are on the wire")
	}
}

func TestWhatNoClientCouldReadIsNotWritten(t *testing.T) {
	for name, m := range map[string]Message{
		"a reason of no kind":          &PublishRefused{Reason: RefusedReason{Kind: refusedEnd}},
		"dead letters out of order":    &GroupDeadLetterList{Offsets: []id.Offset{2, 1}},
		"a dead letter that is double": &GroupDeadLetterList{Offsets: []id.Offset{2, 2}},
	} {
		if !panics(func() { AppendJSON(nil, m) }) {
			t.Errorf("%s was encoded", name)
		}
	}
}

func TestSignedIntegersKeepTheirWholeRange(t *testing.T) {
	tests := []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-1", -1, true}, {"9223372036854775807", 1<<63 - 1, true}, {"-9223372036854775808", -1 << 63, true},
		{"9223372036854775808", 0, false}, {"-9223372036854775809", 0, false}, {"-99999999999999999999999", 0, false},
		{"-0", 0, false}, {"-1.0", 0, false}, {"1e3", 0, false}, {"+1", 0, false}, {"-", 0, false}, {"01", 0, false}, {"null", 0, false},
	}
	for _, tt := range tests {
		m, err := DecodeJSON([]byte(`{"type":"counter_add","tenant_id":"t","namespace":"n","cache":"c","key":"k","request_id":1,"delta":` + tt.text + `}`))
		if (err == nil) != tt.ok || err == nil && m.(*CounterAdd).Delta != tt.want {
			t.Errorf("%s: %+v, %v", tt.text, m, err)
		}
	}
}

func TestAListThatIsAbsentIsTheSameAsAnEmptyOne(t *testing.T) {
	for _, list := range []string{``, `,"changes":null`, `,"changes":[]`, `,"changes": [ ]`} {
		m, err := DecodeJSON([]byte(`{"type":"commit","tenant_id":"t","namespace":"n","stream":"s","entity_key":"","event":"","request_id":1` + list + `}`))
		if err != nil || m.(*Commit).Changes != nil {
			t.Errorf("%q: %+v, %v", list, m, err)
		}
	}
}

func TestADeleteKeepsNoValue(t *testing.T) {
	m, err := DecodeJSON([]byte(`{"type":"commit","tenant_id":"t","namespace":"n","stream":"s","entity_key":"","event":"","request_id":1,` +
		`"changes":[{"value":"YQ==","key":"k","op":"delete"},{"op":"put","op":"delete","key":"k","value":7}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.(*Commit).Changes, []Change{{Delete: true, Key: "k"}, {Delete: true, Key: "k"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
