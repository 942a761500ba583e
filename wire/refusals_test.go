package wire

import (
	"strings"
	"testing"
)

// verdictTable is the whole decision, written by hand: for each group of kinds the action on a stream that is
//
//	new, answer owed | new, not owed | open, owed | open, not owed
//
// on a control stream; "/" separates a client that offered unsupported from one that did not. r: answer the refusal,
// x: answer it and end, u: unsupported, e: end silently, d: drop, a: accept.
var verdictTable = map[string]string{
	"auth":      "a a r r",
	"served":    "x e a a",
	"unserved":  "x e u/e u/e",
	"unknown":   "x e u/e u/e",
	"malformed": "x e r d",
	"flags":     "x e r r",
}

// groupOf sorts every kind into a group of verdictTable.
func groupOf(k RequestKind) string {
	switch k {
	case KindUnknown:
		return "unknown"
	case KindMalformed:
		return "malformed"
	case KindUnknownFlags:
		return "flags"
	case KindAuth:
		return "auth"
	case KindShardInspect, KindSubscriptionsList, KindExtension:
		return "unserved"
	}
	return "served"
}

var actionLetters = map[Action]string{Accept: "a", AnswerRefusal: "r", AnswerRefusalAndEnd: "x", AnswerUnsupported: "u", EndSilently: "e", Drop: "d"}

// mission 202
func TestEveryRequestHasItsVerdictOnAControlStream(t *testing.T) {
	for kind := KindUnknown; kind < kindEnd; kind++ {
		for column, want := range strings.Fields(verdictTable[groupOf(kind)]) {
			phase, owed := Phase(column/2)+PhaseNew, column%2 == 0
			with, without, differ := strings.Cut(want, "/")
			if !differ {
				without = with
			}
			for _, c := range []struct {
				offer Offer
				want  string
			}{{Offer{Features: FeatureUnsupported}, with}, {Offer{Features: ^FeatureUnsupported}, without}} {
				v := Judge(RoleControl, phase, kind, owed, c.offer)
				if got := actionLetters[v.Action]; got != c.want {
					t.Errorf("%v, phase %d, owed %v, %v: %v, want %s", kind, phase, owed, c.offer, v.Action, c.want)
				}
				checkVerdictRefusal(t, kind, phase, v)
			}
		}
	}
}

// checkVerdictRefusal: a refusal goes with the two answering actions and with no other, and its code tells the story.
func checkVerdictRefusal(t *testing.T, kind RequestKind, phase Phase, v Verdict) {
	t.Helper()
	if answers := v.Action == AnswerRefusal || v.Action == AnswerRefusalAndEnd; !answers {
		if v.Refusal != (Refusal{}) {
			t.Errorf("%v: %v carries a refusal", kind, v.Action)
		}
		return
	}
	want := CodeInvalidRequest
	if phase == PhaseNew && kind != KindMalformed && kind != KindUnknownFlags {
		want = CodeUnauthenticated
	}
	if v.Refusal.Code != want || v.Refusal.Retry != RetryFatal || v.Refusal.Message == "" {
		t.Errorf("%v, phase %d: refusal %+v, want %v", kind, phase, v.Refusal, want)
	}
	if want == CodeUnauthenticated && !strings.Contains(v.Refusal.Message, "token") {
		t.Errorf("%v: %q: clients recognise an auth error by the word token", kind, v.Refusal.Message)
	}
}

func TestAPublishOnlyStreamIsNeverAnswered(t *testing.T) {
	for kind := KindUnknown; kind < kindEnd; kind++ {
		for _, phase := range []Phase{PhaseNew, PhaseOpen} {
			for _, owed := range []bool{true, false} {
				want := EndSilently
				if phase == PhaseNew && kind == KindAuth || phase == PhaseOpen && kind == KindPublish && !owed {
					want = Accept
				}
				if v := Judge(RolePublishOnly, phase, kind, owed, Offer{Features: FeatureUnsupported}); v != (Verdict{Action: want}) {
					t.Errorf("%v, phase %d, owed %v: %+v, want %v", kind, phase, owed, v, want)
				}
			}
		}
	}
}

func TestAnUnackedPublishIsNeverAnswered(t *testing.T) {
	for _, phase := range []Phase{PhaseNew, PhaseOpen} {
		for _, kind := range []RequestKind{KindPublish, KindMalformed} {
			for _, role := range []Role{RoleControl, RolePublishOnly} {
				switch v := Judge(role, phase, kind, false, Offer{Features: ^Features(0)}); v.Action {
				case Accept, EndSilently, Drop:
				default:
					t.Errorf("role %d, phase %d, %v: %v", role, phase, kind, v.Action)
				}
			}
		}
	}
}

func TestEveryRequestTypeHasAKindAndAName(t *testing.T) {
	kinds := map[RequestKind]bool{}
	for _, row := range requestTable {
		if KindOfType(row.typ) != row.kind {
			t.Errorf("%s is %v", row.typ, KindOfType(row.typ))
		}
		kinds[row.kind] = true
		m := newMessage([]byte(row.typ))
		if m == nil || RequestKindOf(m) != row.kind {
			t.Errorf("%s: makes %#v", row.typ, m)
		}
	}
	for k := KindAuth; k < kindEnd; k++ {
		if !kinds[k] {
			t.Errorf("kind %d has no type", k)
		}
		if KindOfType(k.String()) != k {
			t.Errorf("kind %d is called %q", k, k)
		}
	}
	for _, k := range []RequestKind{KindUnknown, KindMalformed, KindUnknownFlags} {
		if k.Served() || KindOfType(k.String()) != KindUnknown {
			t.Errorf("%v is no request", k)
		}
	}
	if k := RequestKindOf(&AuthOK{}); k != KindUnknown {
		t.Errorf("a broker's message from a client is %v", k)
	}
}

// mission 202
func TestRequestsThatAreNotServedDecodeAndAreAnsweredUnderTheirID(t *testing.T) {
	seen := map[RequestKind]bool{}
	for _, v := range loadVectors(t).JSON {
		m, err := DecodeJSON([]byte(v.Text))
		if err != nil {
			t.Fatal(err)
		}
		kind := RequestKindOf(m)
		if kind == KindUnknown || kind == KindExtension || kind.Served() {
			continue
		}
		seen[kind] = true
		want := AnswerUnsupported
		verdict := Judge(RoleControl, PhaseOpen, kind, true, Offer{Features: FeatureUnsupported})
		if id := RequestIDOf(m); verdict.Action != want || !id.Set && kind != KindCacheWatch { // a watch has none
			t.Errorf("%s: %v under the id %+v", v.Text, verdict.Action, id)
		}
	}
	for kind := KindAuth; kind < kindEnd; kind++ {
		if groupOf(kind) == "unserved" && kind != KindExtension && !seen[kind] {
			t.Errorf("no vector of %v", kind)
		}
	}
}

func TestActionsHaveNames(t *testing.T) {
	if Accept.String() != "accept" || Drop.String() != "drop" || Action(0).String() != "none" || Action(99).String() != "none" {
		t.Errorf("%v %v %v", Accept, Drop, Action(99))
	}
}

// mission 180: what a broker does not offer it does not take, whatever its version could.
func TestABrokerServesOnlyWhatItOffers(t *testing.T) {
	for k := KindUnknown; k < kindEnd; k++ {
		nothing, everything := Offer{}.Serves(k), Offer{Features: ^Features(0)}.Serves(k)
		if everything != k.Served() || nothing && !everything {
			t.Errorf("%v: served by an offer of nothing %v, of everything %v, by this version %v", k, nothing, everything, k.Served())
		}
	}
	for k, f := range map[RequestKind]Features{KindStreamRead: FeatureStreamRead, KindPublishIdempotent: FeatureIdempotentProducer, KindStateGet: FeatureAtomicCommit,
		KindGroupPoll: FeatureConsumerGroup, KindGroupExtend: FeatureGroupClaimControl, KindGroupRedrive: FeatureGroupDeadLetters, KindGroupSeek: FeatureGroupAdmin} {
		if (Offer{Features: ^f}).Serves(k) || !(Offer{Features: f}).Serves(k) {
			t.Errorf("%v does not depend on its feature alone", k)
		}
	}
	unsupported := Offer{Features: FeatureUnsupported}
	for _, q := range []struct {
		kind  RequestKind
		offer Offer
		want  Action
	}{{KindStreamRead, unsupported, AnswerUnsupported}, {KindStreamRead, Offer{}, EndSilently}, {KindPublishIdempotent, Offer{}, AnswerRefusal}} {
		if v := NotServed(q.kind, q.offer); v.Action != q.want {
			t.Errorf("%v, offered %v: %v, want %v", q.kind, q.offer, v.Action, q.want)
		}
	}
}
