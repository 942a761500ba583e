package sessioncore

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/felixd/felixd/wire"
)

// The clients of the table, each with what it may be sent.
func clients() []struct {
	name                  string
	auth                  func() *wire.Auth
	binary, codes, detail bool // of a publish ack
	json                  bool // code, retry and detail in JSON
	offset                bool
} {
	return []struct {
		name                  string
		auth                  func() *wire.Auth
		binary, codes, detail bool
		json                  bool
		offset                bool
	}{
		{name: "nothing offered", auth: nothingOffered},
		{name: "legacy flags", auth: legacyOffered},
		{name: "today's bits", auth: todayOffered, binary: true, codes: true, detail: true, json: true, offset: true},
		{name: "unknown bits", auth: unknownOffered},
		{name: "all bits", auth: allOffered, binary: true, codes: true, detail: true, json: true, offset: true},
		{name: "ack alone", auth: offering(wire.FlagPublishAck, 0), binary: true},
		{name: "codes without their base", auth: offering(wire.FlagPublishAckCode|wire.FlagPublishAckDetail, 0)},
		{name: "ack and code", auth: offering(wire.FlagPublishAck|wire.FlagPublishAckCode, 0), binary: true, codes: true},
		{name: "ack and detail without code", auth: offering(wire.FlagPublishAck|wire.FlagPublishAckDetail, 0), binary: true},
		{name: "offset for JSON", auth: offering(wire.FlagPublishAckOffset, 0), offset: true},
		{name: "JSON codes", auth: offering(0, wire.FeatureErrorCodes), json: true},
	}
}

func offering(flags wire.Flags, features wire.Features) func() *wire.Auth {
	return func() *wire.Auth {
		a := nothingOffered()
		a.ClientFlags, a.ClientFeatures = wire.Some(flags), wire.Some(features)
		return a
	}
}

func full() *wire.Refusal {
	f := wire.Refuse(wire.CodeOverloaded, "no room").WithReason(wire.ReasonPublishQueueFull, 20)
	return &f
}

// Nothing is sent that the client did not offer to understand.
//
// mission 180, mission 186
func TestNothingIsSentThatTheClientDidNotOfferToUnderstand(t *testing.T) {
	for _, c := range clients() {
		t.Run(c.name, func(t *testing.T) {
			offered := c.auth().Offer()
			s := open(t, c.auth(), rights{})
			for _, settle := range []Answer{{HasOffset: true, Offset: 42}, {Refusal: full()}} {
				s.Settle(s.Frame(acked(7)).Token, settle)
				got := one(t, s)
				if got.flags&^offered.Flags != 0 {
					t.Errorf("sent flags %s, offered %s", got.flags, offered.Flags)
				}
				if c.binary != (got.flags != 0) {
					t.Errorf("binary answer is %v, want %v", got.flags != 0, c.binary)
				}
				if c.binary {
					checkBinaryAck(t, got, settle, c.codes, c.detail, c.offset)
				} else {
					checkJSONAck(t, got, settle, c.json, c.offset)
				}
			}
			s.Settle(s.Frame(message(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k"})).Token, Answer{Refusal: full()})
			checkFailureFields(t, one(t, s).payload, c.json)
		})
	}
}

func checkBinaryAck(t *testing.T, got answer, a Answer, codes, detail, offset bool) {
	t.Helper()
	ack := got.ack
	if ack.RequestID != 7 || (ack.Refusal == nil) != (a.Refusal == nil) {
		t.Fatalf("answered %+v", ack)
	}
	if a.Refusal == nil {
		if ack.HasOffset != offset || offset && ack.Offset != a.Offset {
			t.Errorf("offset %v %d, want %v", ack.HasOffset, ack.Offset, offset)
		}
		return
	}
	if (ack.Refusal.Code == wire.CodeOverloaded) != codes || (ack.Refusal.Retry == wire.RetryAfter) != codes {
		t.Errorf("code %s, class %d; codes were offered: %v", ack.Refusal.Code, ack.Refusal.Retry, codes)
	}
	if (ack.Refusal.RetryAfterMS == 20) != detail || (ack.Refusal.Reason == wire.ReasonPublishQueueFull) != detail {
		t.Errorf("reason %q and pause %d; details were offered: %v", ack.Refusal.Reason, ack.Refusal.RetryAfterMS, detail)
	}
}

func checkJSONAck(t *testing.T, got answer, a Answer, codes, offset bool) {
	t.Helper()
	if a.Refusal != nil {
		if m, ok := got.message.(*wire.PublishError); !ok || m.RequestID != 7 {
			t.Fatalf("answered %s", got.payload)
		}
		checkFailureFields(t, got.payload, codes)
		return
	}
	m, ok := got.message.(*wire.PublishOK)
	if !ok || m.RequestID != 7 || m.Offset.Set != offset {
		t.Fatalf("answered %s, offset offered: %v", got.payload, offset)
	}
}

// checkFailureFields looks at the text itself: a field that was not offered must not even be named.
func checkFailureFields(t *testing.T, payload []byte, codes bool) {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		t.Fatal(err)
	}
	if len(fields["message"]) <= 2 {
		t.Errorf("%s says nothing", payload)
	}
	for _, name := range []string{"code", "retry", "detail"} {
		if _, there := fields[name]; there != codes {
			t.Errorf("%s: %s is there: %v, want %v", payload, name, there, codes)
		}
	}
}

// mission 180
func TestTheAnswerToAuthTellsTheServersBitsAndEchoesNone(t *testing.T) {
	server := wire.Offer{HasFlags: true, Flags: 0x0017, Features: wire.FeatureErrorCodes | wire.FeaturePublishPipeline | wire.FeatureExtended, FeaturesHi: 1}
	for _, c := range []struct {
		name string
		auth *wire.Auth
		want string
	}{
		{"nothing", nothingOffered(), `{"type":"ok"}`},
		{"legacy", legacyOffered(), `{"type":"auth_ok","server_flags":23,"server_features":34816}`},
		{"today", todayOffered(), `{"type":"auth_ok","server_flags":23,"server_features":2147518464,"server_features_hi":1,"publish_window":8}`},
		{"unknown", unknownOffered(), `{"type":"auth_ok","server_flags":23,"server_features":2147518464,"server_features_hi":1}`},
	} {
		s := NewStream(wire.RoleControl, server, window)
		letIn(t, s, c.auth, rights{})
		if got := string(one(t, s).payload); got != c.want {
			t.Errorf("%s: answered\n%s, want\n%s", c.name, got, c.want)
		}
		if g := s.Grant(); g.Flags&^(c.auth.ClientFlags.V&server.Flags) != 0 || g.Features&^(c.auth.ClientFeatures.V&server.Features) != 0 {
			t.Errorf("%s: granted %+v", c.name, g)
		}
	}
}

func TestAnUnknownRequestIsAnsweredUnsupportedToThoseWhoOfferedItAndEndsTheStreamOfOthers(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{`{"type":"shard_inspect","request_id":5}`, `{"type":"unsupported","request_type":"shard_inspect","request_id":5}`},
		{`{"type":"no_such_type","request_id":"five"}`, `{"type":"unsupported","request_type":"no_such_type"}`},
		{`{"type":"extension","name":"x.y","request_id":9,"body":{"a":1}}`, `{"type":"unsupported","request_type":"extension","extension":"x.y","request_id":9}`},
		// Types that only a broker sends are unknown too, and are named as they came.
		{`{"type":"cache_ok","request_id":6}`, `{"type":"unsupported","request_type":"cache_ok","request_id":6}`},
		{`{"type":"subscribed","subscription_id":1}`, `{"type":"unsupported","request_type":"subscribed"}`},
	} {
		s := open(t, todayOffered(), rights{})
		s.Frame(text("%s", c.sent))
		if got := string(one(t, s).payload); got != c.want || s.Ended() != "" {
			t.Errorf("%s: answered %s, want %s; ended %q", c.sent, got, c.want, s.Ended())
		}
		s = open(t, legacyOffered(), rights{})
		s.Frame(text("%s", c.sent))
		none(t, s)
		if !s.Finished() {
			t.Errorf("%s: the stream of a client that cannot be told goes on", c.sent)
		}
	}
}

func TestAnIdempotentPublishIsRefusedInJSONUnderItsRequestID(t *testing.T) {
	for name, f := range map[string]Frame{
		"binary":    binaryFrame(numberedPublish(11)),
		"malformed": cut(binaryFrame(numberedPublish(11)), 2),
		"JSON":      text(`{"type":"publish_idempotent","tenant_id":"t1","namespace":"default","stream":"orders","payloads":["YQ=="],"request_id":11,"producer_id":1,"sequence":0}`),
	} {
		server := everything()
		server.Features &^= wire.FeatureIdempotentProducer
		s := NewStream(wire.RoleControl, server, window)
		letIn(t, s, todayOffered(), rights{})
		sent(t, s)
		s.Frame(f)
		got := one(t, s)
		if m, ok := got.message.(*wire.PublishError); !ok || m.RequestID != 11 || got.failure(t).Code != wire.CodeInvalidRequest {
			t.Errorf("%s: answered %s %q", name, got, got.payload)
		}
		if s.Ended() != "" {
			t.Errorf("%s: the stream ended: %s", name, s.Ended())
		}
	}
}

// mission 184
func TestEveryUnknownOrMisusedFlagIsRefusedAndTheStreamGoesOn(t *testing.T) {
	bits := []wire.Flags{0x8000, 0x0011, 0x0002, 0x0004, 0x0010, 0x0020, 0x0080, 0x0101, 0x0200, 0x0400, 0x0800, 0x1000, 0x2000, 0x4000, 0x8009}
	for _, flags := range bits {
		s := open(t, todayOffered(), rights{})
		s.Frame(frameOf(flags, acked(3).Payload()))
		if got := one(t, s); got.failure(t).Code != wire.CodeInvalidRequest {
			t.Errorf("0x%04x: answered %s", uint16(flags), got)
		}
		s.Settle(s.Frame(acked(4)).Token, Answer{})
		if got := one(t, s); got.String() != "publish 4 ok" {
			t.Errorf("0x%04x: the next request was answered %s", uint16(flags), got)
		}
	}
}

func TestAnAckedPublishTooShortForItsRequestIDIsAnsweredUnderNobodysID(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	s.Frame(frameOf(wire.FlagPublishBatch|wire.FlagPublishAcked, []byte{1, 2, 3}))
	if got := one(t, s); got.String() != "error" || got.failure(t).Code != wire.CodeInvalidRequest {
		t.Errorf("answered %s: an ack must not name a request that nobody made", got)
	}
}

func TestEveryAnswerOfTheCacheRepeatsWhatWasAsked(t *testing.T) {
	s := open(t, nothingOffered(), rights{})
	for _, c := range []struct {
		asked  wire.Message
		answer Answer
		want   string
	}{
		{&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k", RequestID: wire.Some(uint64(3))}, Answer{}, `{"type":"cache_ok","request_id":3}`},
		{&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k"}, Answer{}, `{"type":"ok"}`},
		{&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k", RequestID: wire.Some(uint64(4))}, Answer{}, `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"c","key":"k","value":null,"request_id":4}`},
		{&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k"}, Answer{Found: true}, `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"c","key":"k","value":""}`},
		{&wire.CacheDelete{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k"}, Answer{Found: true, Value: []byte("v")}, `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"c","key":"k","value":"dg=="}`},
	} {
		s.Settle(s.Frame(message(c.asked)).Token, c.answer)
		if got := string(one(t, s).payload); got != c.want {
			t.Errorf("answered %s, want %s", got, c.want)
		}
	}
}

// mission 178
func TestJSONPublishesWithEveryAckMode(t *testing.T) {
	form := map[string]string{"publish": `"payload":"YQ=="`, "publish_batch": `"payloads":["YQ==","Yg=="]`}
	for _, typ := range []string{"publish", "publish_batch"} {
		for _, ack := range []string{"", `,"ack":null`, `,"ack":"none"`, `,"ack":"per_message"`, `,"ack":"per_batch"`} {
			for _, id := range []string{"", `,"request_id":8`} {
				owed := slices.Contains([]string{`,"ack":"per_message"`, `,"ack":"per_batch"`}, ack)
				s := open(t, todayOffered(), rights{})
				q := s.Frame(text(`{"type":%q,"tenant_id":"t1","namespace":"default","stream":"orders",%s%s%s}`, typ, form[typ], id, ack))
				name := fmt.Sprintf("%s%s%s", typ, ack, id)
				if owed && id == "" {
					if got := one(t, s); q.Do != Nothing || got.String() != "error" || got.failure(t).Code != wire.CodeInvalidRequest {
						t.Errorf("%s: answered %s", name, got)
					}
					continue
				}
				if q.Do != Publish || s.Silent(q.Token) == owed {
					t.Fatalf("%s: wants %d, silent %v", name, q.Do, s.Silent(q.Token))
				}
				if want := map[string]uint32{"publish": 1, "publish_batch": 2}[typ]; q.Publish.Count != want || wire.Region(q.Framed[RegionHeadroom:]).Count() != want {
					t.Errorf("%s: %d records, want %d", name, q.Publish.Count, want)
				}
				s.Settle(q.Token, Answer{HasOffset: true, Offset: 5})
				if !owed {
					none(t, s)
				} else if got := one(t, s); string(got.payload) != `{"type":"publish_ok","request_id":8,"offset":5}` {
					t.Errorf("%s: answered %s", name, got.payload)
				}
			}
		}
	}
}
