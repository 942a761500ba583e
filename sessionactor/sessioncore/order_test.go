package sessioncore

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire"
)

// twin is the naive list of what a client must be told: one entry for each request that was taken, in order.
type twin struct {
	list       []*entry
	told       int // entries whose answers have left
	ended      bool
	fed, freed int // permits
}

type entry struct {
	ask   ask
	n     uint64
	token Token
	done  bool
	owed  string // "" = nothing is ever sent for it
}

func (w *twin) answered(owed string) { w.list = append(w.list, &entry{done: true, owed: owed}) }

// ready is what must be sent now: everything up to the oldest request without an outcome.
func (w *twin) ready() (list []string) {
	for w.told < len(w.list) && w.list[w.told].done {
		if owed := w.list[w.told].owed; owed != "" {
			list = append(list, owed)
		}
		w.told++
	}
	return list
}

func (w *twin) open() (list []*entry) {
	for _, e := range w.list {
		if !e.done {
			list = append(list, e)
		}
	}
	return list
}

// ask is one way to make a request.
type ask struct {
	name    string
	make    func(n uint64) Frame
	outcome func(n uint64, ok bool) string // of one that is let in
	refused func(n uint64) string          // of one that is answered at once; nil: it is let in
	ends    bool                           // only without FeatureUnsupported
}

func asks() []ask {
	at := `"tenant_id":"t1","namespace":"default"`
	publish := func(n uint64, ok bool) string { return outcome(n, ok) }
	silent := func(uint64, bool) string { return "" }
	fixed := func(s string) func(uint64) string { return func(uint64) string { return s } }
	orError := func(format string) func(uint64, bool) string {
		return func(n uint64, ok bool) string {
			if !ok {
				return "error"
			}
			return fmt.Sprintf(format, n)
		}
	}
	return []ask{
		{name: "acked publish", make: acked, outcome: publish},
		{name: "unacked publish", make: func(uint64) Frame { return unacked() }, outcome: silent},
		{name: "malformed acked publish", make: func(n uint64) Frame { return cut(acked(n), 3) }, refused: func(n uint64) string { return outcome(n, false) }},
		{name: "malformed unacked publish", make: func(uint64) Frame { return cut(unacked(), 3) }},
		{name: "JSON publish", make: func(n uint64) Frame {
			return text(`{"type":"publish",%s,"stream":"orders","payload":"YQ==","request_id":%d,"ack":"per_message"}`, at, n)
		}, outcome: publish},
		{name: "JSON batch", make: func(n uint64) Frame {
			return text(`{"type":"publish_batch",%s,"stream":"orders","payloads":["YQ==","Yg=="],"request_id":%d,"ack":"per_batch"}`, at, n)
		}, outcome: publish},
		{name: "unacked JSON publish", make: func(uint64) Frame {
			return text(`{"type":"publish",%s,"stream":"orders","payload":"YQ==","ack":"none"}`, at)
		}, outcome: silent},
		{name: "put", make: func(n uint64) Frame {
			return text(`{"type":"cache_put",%s,"cache":"users","key":"k","value":"dg==","request_id":%d,"ttl_ms":null}`, at, n)
		}, outcome: orError("cache_ok %d")},
		{name: "put without id", make: func(uint64) Frame {
			return text(`{"type":"cache_put",%s,"cache":"users","key":"k","value":"dg=="}`, at)
		}, outcome: func(_ uint64, ok bool) string {
			if ok {
				return "ok"
			}
			return "error"
		}},
		{name: "get", make: func(n uint64) Frame {
			return text(`{"type":"cache_get",%s,"cache":"users","key":"k","request_id":%d}`, at, n)
		}, outcome: orError(`cache_value %d "found"`)},
		{name: "delete", make: func(n uint64) Frame {
			return text(`{"type":"cache_delete",%s,"cache":"users","key":"k","request_id":%d}`, at, n)
		}, outcome: orError(`cache_value %d "found"`)},
		{name: "topology", make: func(uint64) Frame { return text(`{"type":"topology"}`) }, outcome: func(_ uint64, ok bool) string {
			if ok {
				return "topology_view"
			}
			return "error"
		}},
		{name: "second auth", make: func(uint64) Frame { return message(todayOffered()) }, refused: fixed("error")},
		{name: "no JSON", make: func(uint64) Frame { return text("{") }, refused: fixed("error")},
		{name: "foreign tenant", make: func(uint64) Frame {
			return text(`{"type":"cache_get","tenant_id":"t2","namespace":"default","cache":"users","key":"k"}`)
		}, refused: fixed("error")},
		{name: "type that is not served", make: func(n uint64) Frame { return text(`{"type":"shard_inspect","request_id":%d}`, n) }, refused: fixed("unsupported shard_inspect"), ends: true},
	}
}

// Every request that is owed an answer gets exactly one, in the order of the requests.
//
// mission 203, mission 231
func TestEveryRequestThatIsOwedAnAnswerGetsExactlyOneInTheOrderOfTheRequests(t *testing.T) {
	offers := []func() *wire.Auth{nothingOffered, legacyOffered, todayOffered, unknownOffered, allOffered}
	rapid.Check(t, func(t *rapid.T) {
		auth := rapid.SampledFrom(offers).Draw(t, "offer")()
		s := NewStream(wire.RoleControl, everything(), rapid.IntRange(1, 20).Draw(t, "window"))
		w := &twin{}
		f := message(auth)
		w.fed += len(f.Payload())
		q := s.Frame(f)
		s.AuthenticatedAs(q.Token, q.Message.(*wire.Auth), rights{}, nil)
		w.answered(map[bool]string{true: "auth_ok", false: "ok"}[auth.ClientFlags.Set])
		unsupported := auth.ClientFeatures.V.Has(wire.FeatureUnsupported)
		w.check(t, s)
		for n := range uint64(rapid.IntRange(0, 60).Draw(t, "steps")) {
			if open := w.open(); len(open) > 0 && (!s.Room() || rapid.Bool().Draw(t, "settle")) {
				w.settle(t, s, rapid.SampledFrom(open).Draw(t, "which"))
			} else if s.Room() {
				w.request(t, s, rapid.SampledFrom(asks()).Draw(t, "ask"), n, unsupported)
			}
			w.check(t, s)
		}
		for open := w.open(); len(open) > 0; open = w.open() {
			w.settle(t, s, rapid.SampledFrom(open).Draw(t, "which"))
			w.check(t, s)
		}
		if w.freed != w.fed || s.Open() != 0 {
			t.Fatalf("%d permits came back of %d, %d requests are open", w.freed, w.fed, s.Open())
		}
		if s.Finished() != w.ended {
			t.Fatalf("finished is %v, want %v", s.Finished(), w.ended)
		}
	})
}

func (w *twin) request(t *rapid.T, s *Stream, a ask, n uint64, unsupported bool) {
	f := a.make(n)
	w.fed += len(f.Payload())
	q := s.Frame(f)
	switch {
	case w.ended:
		if q.Do != Nothing {
			t.Fatalf("%s was taken after the stream had ended", a.name)
		}
	case a.ends && !unsupported:
		w.ended = true
	case a.refused != nil:
		w.answered(a.refused(n))
	case a.outcome == nil: // dropped
	case q.Do != Publish && q.Do != Ask:
		t.Fatalf("%s wants %d", a.name, q.Do)
	default:
		w.list = append(w.list, &entry{ask: a, n: n, token: q.Token})
	}
}

func (w *twin) settle(t *rapid.T, s *Stream, e *entry) {
	ok := rapid.Bool().Draw(t, "ok")
	e.owed, e.done = e.ask.outcome(e.n, ok), true
	s.Settle(e.token, result(e.ask.name, ok))
}

func result(name string, ok bool) Answer {
	switch {
	case !ok:
		f := wire.Refuse(wire.CodeOverloaded, "no room").WithReason(wire.ReasonPublishQueueFull, 20)
		return Answer{Refusal: &f}
	case name == "topology":
		return Answer{Message: &wire.TopologyView{}}
	}
	return Answer{Found: true, Value: []byte("found"), HasOffset: true, Offset: 9}
}

// check compares what the stream sent, holds and gave back with the twin.
func (w *twin) check(t *rapid.T, s *Stream) {
	want := w.ready()
	var got []string
	for _, a := range answers(t, append([]byte(nil), s.Out()...)) {
		got = append(got, a.String())
	}
	s.Sent()
	if !slices.Equal(got, want) {
		t.Fatalf("sent %q, want %q", got, want)
	}
	w.freed += s.Released()
	if s.held+w.freed != w.fed {
		t.Fatalf("%d permits are held and %d came back, of %d", s.held, w.freed, w.fed)
	}
	if s.Open() != len(w.list)-w.told {
		t.Fatalf("%d requests are open, want %d", s.Open(), len(w.list)-w.told)
	}
}

func TestAnAnswerToARequestThatIsNotOpenIsABrokenInvariant(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	a, b := s.Frame(acked(1)), s.Frame(acked(2))
	s.Settle(b.Token, Answer{})
	for name, token := range map[string]Token{"settled, waiting for its turn": b.Token, "never given out": b.Token + 1} {
		if !panics(func() { s.Settle(token, Answer{}) }) {
			t.Errorf("%s: no panic", name)
		}
	}
	s.Settle(a.Token, Answer{})
	if !panics(func() { s.Settle(a.Token, Answer{}) }) {
		t.Error("answered: no panic")
	}
	if got := fmt.Sprint(sent(t, s)); got != "[publish 1 ok publish 2 ok]" {
		t.Errorf("sent %s", got)
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
