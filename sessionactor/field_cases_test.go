package sessionactor

import (
	"testing"
	"time"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// field case PRO-07: a connection that is closed because nobody signed in counts once, however many of its streams notice.
func TestAnAuthTimeoutOfManyStreamsIsCountedOnce(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock, change: func(o *Options) { o.AuthTimeout = 7 * time.Second }})
	c := x.connect()
	began := make(chan struct{}, wire.PreauthStreamsRead)
	for range wire.PreauthStreamsRead {
		s := c.stream(func() { began <- struct{}{} })
		if _, err := s.Write([]byte("FLX1")); err != nil {
			t.Fatal(err)
		}
	}
	for range wire.PreauthStreamsRead {
		want(t, began, "the stream to be read")
	}
	clock.Advance(x.opts.AuthTimeout)
	closedWith(t, c, CloseAuthTimeout)
	eventually(t, "the session is gone", func() bool { return x.metric("felix_client_connections") == 0 })
	for name, want := range map[string]float64{"felix_quic_auth_timeout_total": 1, "felix_client_connections_closed_total": 1, "felix_client_streams": 0} {
		if n := x.metric(name); n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
}

// field case PRO-05: whatever the broker refuses before a shard hears of it is counted by its reason, once.
func TestEveryRefusalOfAStreamIsCountedByItsReason(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	header := func(magic, version uint32, length uint32) []byte {
		b := wire.AppendHeader(nil, wire.Header{Length: length})
		b[3], b[5] = byte(magic), byte(version)
		return b
	}
	foreign := &wire.CacheGet{TenantID: "t2", Namespace: namespace, Cache: "users", Key: "k"}
	dial(t, c, today()) // the connection may open any number of streams from here on
	for _, a := range []struct {
		name, refused, ended string
		signed               bool
		frame                []byte
	}{
		{"magic", "", "bad_magic", false, header('I', 1, 0)},
		{"version", "", "bad_version", true, header('1', 2, 0)},
		{"length", "", "too_long", false, header('1', 1, wire.MaxPreauthPayload+1)},
		{"no auth", "unauthenticated", "unauthenticated", false, batchTo("orders", 1, wire.AckPerBatch, "a")},
		{"no JSON", "invalid_request", "invalid_request", false, wire.AppendHeader(nil, wire.Header{})},
		{"no JSON, signed in", "invalid_request", "", true, wire.AppendHeader(nil, wire.Header{})},
		{"flags", "invalid_request", "", true, wire.AppendHeader(nil, wire.Header{Flags: 0x8000})},
		{"another tenant", "forbidden", "", true, wire.AppendJSONFrame(nil, foreign)},
		{"unknown type", "unsupported", "", true, append(wire.AppendHeader(nil, wire.Header{Length: 12}), `{"type":"x"}`...)},
	} {
		before := x.labels("felix_requests_refused_total", "felix_client_streams_refused_total")
		l := bare(t, c)
		if a.signed {
			l.ask(today())
		}
		l.raw(a.frame)
		if a.refused != "" {
			l.next()
		}
		if a.ended != "" {
			l.over()
		}
		_ = l.w.Close()
		eventually(t, "the stream is forgotten", func() bool { return x.metric("felix_client_streams") == 1 })
		for label, n := range x.labels("felix_requests_refused_total", "felix_client_streams_refused_total") {
			want := 0.0
			if label == "felix_requests_refused_total "+a.refused || label == "felix_client_streams_refused_total "+a.ended {
				want = 1
			}
			if got := n - before[label]; got != want {
				t.Errorf("%s: %s grew by %v, want %v", a.name, label, got, want)
			}
			delete(before, label)
		}
		if len(before) > 0 {
			t.Errorf("%s: counters went away: %v", a.name, before)
		}
	}
	if s := sessioncore.NewStream(wire.RoleControl, wire.Offer{}, 1); s.Fault() != "" || s.TakeRefusal() != "" {
		t.Error("a new stream has a fault")
	}
}

// labels are the values of some counters, by name and label value.
func (x *site) labels(names ...string) map[string]float64 {
	out := map[string]float64{}
	for _, f := range must(x.registry.Gather())(x.t) {
		for _, name := range names {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				out[name+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}
