package protocoldoc

import (
	"testing"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/wire"
)

// arrival is what a row of the table of a stream's life means to the broker's judge.
type arrival struct {
	kind   wire.RequestKind
	silent bool // a publish that wants no answer
	offer  wire.Features
}

func arrivals() map[string]arrival {
	return map[string]arrival{
		"`auth`":                         {kind: wire.KindAuth},
		"another request":                {kind: wire.KindCacheGet},
		"something that does not decode": {kind: wire.KindMalformed},
		"a publish without answer":       {kind: wire.KindPublish, silent: true},
		"a request that is served":       {kind: wire.KindCacheGet},
		"a request that is not served, UNSUPPORTED offered":     {kind: wire.KindExtension, offer: wire.FeatureUnsupported},
		"a request that is not served, UNSUPPORTED not offered": {kind: wire.KindExtension},
		"an idempotent publish that is not served":              {kind: wire.KindPublishIdempotent},
		"a publish without answer that does not decode":         {kind: wire.KindMalformed, silent: true},
		"flags that are unknown or do not go together":          {kind: wire.KindUnknownFlags},
	}
}

// says puts a verdict into the words of the table.
func says(v wire.Verdict) string {
	switch v.Action {
	case wire.Accept:
		return "accepts it"
	case wire.AnswerRefusal:
		return "answers `" + v.Refusal.Code.String() + "` and goes on"
	case wire.AnswerRefusalAndEnd:
		return "answers `" + v.Refusal.Code.String() + "` and ends"
	case wire.AnswerUnsupported:
		return "answers `unsupported` and goes on"
	case wire.EndSilently:
		return "ends silently"
	case wire.Drop:
		return "drops it"
	}
	return v.Action.String()
}

// mission 178
func TestTheLifeOfAStreamIsAsTheBrokerJudgesIt(t *testing.T) {
	phases := map[string]wire.Phase{"new": wire.PhaseNew, "open": wire.PhaseOpen}
	seen := map[string]bool{}
	for _, row := range protocol(t).table(t, "state", "what comes").rows {
		phase, known := phases[row[0]]
		a, described := arrivals()[row[1]]
		if !known || !described {
			t.Errorf("nobody knows what %q means", row)
			continue
		}
		seen[row[1]] = true
		offer := wire.Offer{HasFlags: true, Features: a.offer}
		verdict := wire.Judge(wire.RoleControl, phase, a.kind, !a.silent, offer)
		if verdict.Action == wire.Accept && !sessionactor.EphemeralOffer().Serves(a.kind) {
			verdict = wire.NotServed(a.kind, offer)
		}
		got := says(verdict)
		if want := row[2]; got != want && !(phase == wire.PhaseNew && a.kind == wire.KindAuth && want == got+"; the stream is open, or answered and ended") {
			t.Errorf("%s, %s: the table says that the broker %s, and it %s", row[0], row[1], want, got)
		}
	}
	if len(seen) != len(arrivals()) {
		t.Errorf("the table has %d kinds of arrivals, want %d", len(seen), len(arrivals()))
	}
}

func TestAUnidirectionalStreamTakesAuthAndPublishesWithoutAnswersOnly(t *testing.T) {
	for k := wire.KindUnknown; int(k) < wire.RequestKinds; k++ {
		for _, phase := range []wire.Phase{wire.PhaseNew, wire.PhaseOpen} {
			for _, silent := range []bool{false, true} {
				taken := wire.Judge(wire.RolePublishOnly, phase, k, !silent, wire.Offer{}).Action
				want := wire.EndSilently
				if phase == wire.PhaseNew && k == wire.KindAuth || phase == wire.PhaseOpen && k == wire.KindPublish && silent {
					want = wire.Accept
				}
				if taken != want {
					t.Errorf("phase %d, %s, silent %v: %s, want %s", phase, k, silent, taken, want)
				}
			}
		}
	}
}
