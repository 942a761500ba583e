package sessioncore

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/wire"
)

// quiet are publishes that asked for no answer, well formed or not.
func quiet() map[string]Frame {
	keyed := published("hello", 2)
	keyed.Flags |= wire.FlagPublishKeyed
	keyed.Keyed, keyed.Key = true, []byte("k")
	foreign := published("hello", 1)
	foreign.Tenant = []byte("t2")
	at := `"type":"publish","tenant_id":"t1","namespace":"default","stream":"orders"`
	return map[string]Frame{
		"well formed":                          unacked(),
		"keyed":                                binaryFrame(keyed),
		"empty frame":                          frameOf(wire.FlagPublishBatch, nil),
		"cut short":                            cut(unacked(), 1),
		"keyed and cut short":                  cut(binaryFrame(keyed), 9),
		"count beyond its bytes":               frameOf(wire.FlagPublishBatch, []byte("\x00\x02t1\x00\x01n\x00\x01s\xff\xff\xff\xff")),
		"another tenant":                       binaryFrame(foreign),
		"JSON":                                 text(`{%s,"payload":"YQ=="}`, at),
		"JSON with an id":                      text(`{%s,"payload":"YQ==","request_id":4}`, at),
		"JSON that wants none":                 text(`{%s,"payload":"YQ==","request_id":4,"ack":"none"}`, at),
		"JSON without payload":                 text(`{%s}`, at),
		"JSON with bad base64":                 text(`{%s,"payload":"*"}`, at),
		"JSON with an id and bad base64":       text(`{%s,"payload":"*","request_id":4}`, at),
		"JSON that wants none, bad base64":     text(`{%s,"payload":"*","request_id":4,"ack":"none"}`, at),
		"JSON that wants null, bad base64":     text(`{%s,"ack":null,"payload":"*","request_id":4}`, at),
		"JSON with bytes that are no UTF-8":    text("{%s,\"payload\":\"\xff\"}", at),
		"JSON that is cut short":               text(`{%s,"payload":"YQ`, at),
		"JSON that is cut short after its id":  text(`{"request_id":4,%s,"payload":"YQ`, at),
		"JSON for another tenant":              text(`{"type":"publish","tenant_id":"t2","namespace":"n","stream":"s","payload":"YQ=="}`),
		"JSON batch of something that is none": text(`{"type":"publish_batch","tenant_id":"t1","namespace":"n","stream":"s","payloads":"YQ=="}`),
	}
}

// An unacknowledged publish is never answered, not even with an error.
func TestAnUnacknowledgedPublishIsNeverAnsweredNotEvenWithAnError(t *testing.T) {
	refusal := wire.Refuse(wire.CodeNotFound, "no such stream")
	conditions := []struct {
		name string
		on   func() *Stream
	}{
		{"open", func() *Stream { return open(t, todayOffered(), rights{}) }},
		{"nothing offered", func() *Stream { return open(t, nothingOffered(), rights{}) }},
		{"without the right", func() *Stream { return open(t, todayOffered(), rights{denied: ActionPublish}) }},
		{"draining", func() *Stream { s := open(t, todayOffered(), rights{}); s.Drain(); return s }},
		{"before auth", func() *Stream { return unauthenticated(wire.RoleControl) }},
		{"publish only", func() *Stream {
			s := unauthenticated(wire.RolePublishOnly)
			letIn(t, s, todayOffered(), rights{})
			s.Released()
			return s
		}},
	}
	for _, c := range conditions {
		for name, f := range quiet() {
			for _, outcome := range []Answer{{HasOffset: true}, {Refusal: &refusal}} {
				s := c.on()
				if q := s.Frame(f); q.Do == Publish {
					s.Settle(q.Token, outcome)
				}
				if got := answers(t, s.Out()); len(got) != 0 {
					t.Errorf("%s, %s: answered %q", c.name, name, got[0].payload)
				}
				if n := s.Released(); n != len(f.Payload()) || s.Open() != 0 {
					t.Errorf("%s, %s: %d permits came back of %d, %d requests open", c.name, name, n, len(f.Payload()), s.Open())
				}
			}
		}
	}
}

func TestWhatIsPassedOverInSilenceIsCounted(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	s.Frame(cut(unacked(), 1))
	s.Frame(text(`{"type":"publish"}`))
	s.Frame(unacked())
	if s.Dropped() != 2 || s.Ended() != "" {
		t.Errorf("%d frames were counted, want 2; ended %q", s.Dropped(), s.Ended())
	}
}

// A publish that does not decode but asked for an answer gets it, under its id.
func TestAMalformedPublishThatAskedForAnAnswerGetsOne(t *testing.T) {
	at := `"type":"publish","tenant_id":"t1","namespace":"default","stream":"orders"`
	for _, c := range []struct {
		frame Frame
		want  string
	}{
		{cut(acked(6), 2), "publish 6 refused"},
		{text(`{%s,"payload":"*","request_id":6,"ack":"per_batch"}`, at), "publish 6 refused"},
		{text(`{%s,"ack":"per_message","request_id":6,"payload":1}`, at), "publish 6 refused"},
		{text(`{%s,"payload":"YQ==","request_id":6,"ack":"sometimes"}`, at), "publish 6 refused"},
		{text(`{%s,"payload":"*","ack":"per_batch"}`, at), "error"},
		{text("{%s,\"payload\":\"\xff\",\"request_id\":6,\"ack\":\"per_batch\"}", at), "error"},
	} {
		s := open(t, todayOffered(), rights{})
		s.Frame(c.frame)
		got := one(t, s)
		if got.String() != c.want || got.failure(t).Code != wire.CodeInvalidRequest || s.Ended() != "" {
			t.Errorf("%q: answered %s, want %s; ended %q", c.frame.Payload(), got, c.want, s.Ended())
		}
	}
}

func TestAPublishOnlyStreamSaysNothingAndTakesPublishesWithoutAnswersOnly(t *testing.T) {
	refused := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
	for name, token := range map[string]*wire.Refusal{"good token": nil, "bad token": &refused} {
		s := unauthenticated(wire.RolePublishOnly)
		q := s.Frame(message(todayOffered()))
		s.AuthenticatedAs(q.Token, q.Message.(*wire.Auth), rights{}, token)
		none(t, s)
		if s.Finished() != (token != nil) {
			t.Errorf("%s: finished is %v", name, s.Finished())
		}
	}
	frames := map[string]Frame{
		"acked publish": acked(1), "auth": message(nothingOffered()), "get": message(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k"}),
		"acked JSON publish": text(`{"type":"publish","tenant_id":"t1","namespace":"n","stream":"s","payload":"","request_id":1,"ack":"per_batch"}`),
		"unknown flags":      frameOf(0x8001, nil), "unknown type": text(`{"type":"what"}`), "no JSON": text("x"), "malformed": cut(unacked(), 1),
	}
	for name, f := range frames {
		for _, authenticated := range []bool{true, false} {
			if name == "auth" && !authenticated {
				continue
			}
			s := unauthenticated(wire.RolePublishOnly)
			if authenticated {
				letIn(t, s, todayOffered(), rights{})
			}
			if q := s.Frame(f); q.Do != Nothing || !s.Finished() {
				t.Errorf("%s, authenticated %v: wants %d, finished %v", name, authenticated, q.Do, s.Finished())
			}
			none(t, s)
		}
	}
	s := unauthenticated(wire.RolePublishOnly)
	letIn(t, s, nothingOffered(), rights{})
	for i := range 3 {
		q := s.Frame(unacked())
		if q.Do != Publish {
			t.Fatalf("publish %d was not taken", i)
		}
		s.Settle(q.Token, Answer{})
	}
	none(t, s)
	if fmt.Sprint(s.Ended()) != "" {
		t.Errorf("ended: %s", s.Ended())
	}
}
