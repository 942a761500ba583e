package wire

import (
	"strings"
	"testing"
)

func TestAnAckUsesOnlyGrantedParts(t *testing.T) {
	refused := Refuse(CodeOverloaded, "busy").WithReason(ReasonTenantQuota, 40)
	owner := &Owner{NodeID: "b", Addr: "10.0.0.5:5000", Generation: 7}
	acks := []PublishAck{
		{RequestID: 1}, {RequestID: 1, HasOffset: true, Offset: 9, Owner: owner},
		{RequestID: 1, Refusal: &refused}, {RequestID: 1, Refusal: &refused, Owner: owner},
	}
	server := Offer{Flags: KnownFlags}
	for i := range 1 << 15 {
		grant := Negotiate(Offer{Flags: Flags(i)}, server)
		if !grant.Flags.Has(FlagPublishAck) {
			continue
		}
		for _, a := range acks {
			flags, payload := split(t, AppendPublishAck(nil, &a, grant))
			if flags&^grant.Flags != 0 {
				t.Fatalf("grant %04x: sent %04x", grant.Flags, flags)
			}
			got, err := DecodePublishAck(flags, payload)
			if err != nil || got.RequestID != 1 || (got.Refusal == nil) != (a.Refusal == nil) {
				t.Fatalf("grant %04x: %+v, %v", grant.Flags, got, err)
			}
		}
	}
}

// mission 186
func TestAClientWithoutBinaryAcksIsAnsweredInJSON(t *testing.T) {
	refused := Refuse(CodeNotFound, "stream not found")
	tests := []struct {
		ack   PublishAck
		grant Grant
		want  string
	}{
		{PublishAck{RequestID: 3}, Grant{}, `{"type":"publish_ok","request_id":3}`},
		{PublishAck{RequestID: 3, HasOffset: true, Offset: 8}, Grant{}, `{"type":"publish_ok","request_id":3}`},
		{PublishAck{RequestID: 3, HasOffset: true, Offset: 8}, Grant{Flags: FlagPublishAckOffset}, `{"type":"publish_ok","request_id":3,"offset":8}`},
		{PublishAck{RequestID: 3, Refusal: &refused}, Grant{}, `{"type":"publish_error","request_id":3,"message":"stream not found"}`},
		{PublishAck{RequestID: 3, Refusal: &refused}, Grant{Features: FeatureErrorCodes}, `{"type":"publish_error","request_id":3,"message":"stream not found","code":"not_found","retry":"retry_after"}`},
	}
	for _, tt := range tests {
		flags, payload := split(t, AppendPublishAck(nil, &tt.ack, tt.grant))
		if flags != 0 || string(payload) != tt.want {
			t.Errorf("flags %04x, %s, want %s", flags, payload, tt.want)
		}
	}
	flags, payload := split(t, AppendPublishAnswer(nil, &PublishAck{RequestID: 3}, Grant{Flags: KnownFlags}))
	if flags != 0 || string(payload) != tests[0].want {
		t.Errorf("a JSON publish is answered with flags %04x, %s", flags, payload)
	}
}

func TestCodesWithoutANumberTravelAsTheNearestOne(t *testing.T) {
	for _, tt := range []struct {
		refusal Refusal
		want    Code
	}{
		{Refuse(CodeRevoked, "m"), CodeUnauthenticated}, {Refuse(CodeStreamDeleted, "m"), CodeNotFound},
		{Refusal{Message: "m", Retry: RetryRetry}, CodeInternal}, {Refuse(Code(77), "m"), Code(77)},
	} {
		flags, payload := split(t, AppendPublishAck(nil, &PublishAck{Refusal: &tt.refusal}, Grant{Flags: KnownFlags}))
		got, err := DecodePublishAck(flags, payload)
		if err != nil || got.Refusal.Code != tt.want || got.Refusal.Retry != tt.refusal.Retry {
			t.Errorf("%v: %+v, %v", tt.refusal, got.Refusal, err)
		}
	}
}

func TestARefusalWithoutCodeAndClassSendsNoNumber(t *testing.T) {
	flags, payload := split(t, AppendPublishAck(nil, &PublishAck{Refusal: &Refusal{Message: "m"}}, Grant{Flags: KnownFlags}))
	got, err := DecodePublishAck(flags, payload)
	if flags != FlagPublishAck || err != nil || *got.Refusal != (Refusal{Message: "m"}) {
		t.Errorf("flags %04x, %+v, %v", flags, got.Refusal, err)
	}
}

func TestLocalCodeNumbersMeanNothingFromAPeer(t *testing.T) {
	payload := []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\xff\xfe\x09")
	got, err := DecodePublishAck(0x0210, payload)
	if err != nil || got.Refusal.Code != CodeUnknown || got.Refusal.Retry != RetryFatal {
		t.Errorf("%+v, %v", got.Refusal, err)
	}
}

func TestAckTextsAreCutAndRepaired(t *testing.T) {
	refused := Refuse(CodeInternal, strings.Repeat("é", MaxErrorTextBytes))
	flags, payload := split(t, AppendPublishAck(nil, &PublishAck{Refusal: &refused}, Grant{Flags: KnownFlags}))
	got, err := DecodePublishAck(flags, payload)
	if err != nil || got.Refusal.Message != strings.Repeat("é", MaxErrorTextBytes/2) {
		t.Errorf("%d bytes, %v", len(got.Refusal.Message), err)
	}
	got, err = DecodePublishAck(0x0010, []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x03a\xffb"))
	if err != nil || got.Refusal.Message != "a?b" {
		t.Errorf("%+v, %v", got.Refusal, err)
	}
}

func TestEncodingAnAckAllocatesNothing(t *testing.T) {
	refused := Refuse(CodeOverloaded, "busy").WithReason(ReasonTenantQuota, 40)
	acks := []PublishAck{{RequestID: 1, HasOffset: true, Offset: 9, Owner: &Owner{NodeID: "b"}}, {RequestID: 1, Refusal: &refused}}
	buf := make([]byte, 0, 256)
	for i := range acks {
		if n := testing.AllocsPerRun(100, func() { AppendPublishAck(buf, &acks[i], Grant{Flags: KnownFlags}) }); n != 0 {
			t.Errorf("ack %d: %v allocations", i, n)
		}
	}
}

func TestAnAckIsNoOtherFrame(t *testing.T) {
	for _, flags := range []Flags{0, 0x0004, 0x0001, 0x8010} {
		if _, err := DecodePublishAck(flags, make([]byte, 32)); err == nil {
			t.Errorf("flags %04x decoded as an ack", flags)
		}
	}
}
