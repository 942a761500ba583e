package actors

import (
	"math/rand/v2"
	"testing"
)

// The ledger never holds more than what was admitted: permits given, plus answered entries it has not looked at.
func TestTheLedgerIsBoundedByThePermitsOfItsRequesters(t *testing.T) {
	const permits = 500
	s, h, _ := newHandDriven(t, Options{})
	credit := NewCredit(permits, 1<<30)
	var open []*request
	ref := spawn(t, s, Spec[*request]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(turn *Turn) {
		for _, m := range turn.Messages() {
			open = append(open, m.(*request))
		}
	})})
	r := rand.New(rand.NewPCG(3, 3))
	most := 0
	for range 50_000 {
		if credit.TryAcquire(1, 0) {
			if err := ref.TrySend(&request{}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if r.IntN(4) == 0 {
			h.one()
			most = max(most, ref.b.w.ledger.q.n)
		}
		if len(open) > 0 && (r.IntN(3) == 0 || len(open) > permits-50) { // answer in any order
			i := r.IntN(len(open))
			open[i].answer()
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
			credit.Release(1, 0)
		}
	}
	if limit := 2*permits + turnItemsMax; most > limit || most < permits/2 {
		t.Errorf("the ledger held up to %d entries, want at most %d", most, limit)
	}
	for _, q := range open {
		q.answer()
	}
	open = nil
	_ = ref.TrySend(&request{}, 0)
	h.all()
	if n := ref.b.w.ledger.q.n; n != 1 {
		t.Errorf("%d entries although one is open", n)
	}
}

// brokenSettler panics when asked.
type brokenSettler struct{}

func (*brokenSettler) Settled() bool { panic("settled") }

func TestASettledThatPanicsLeavesItsMessageUnknown(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	unknown := 0
	ref := spawn(t, s, Spec[any]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(*Turn) {}), OnUnanswered: func(any) { unknown++ }})
	_ = ref.TrySend(&brokenSettler{}, 0)
	h.all()
	ref.Stop()
	h.all()
	if unknown != 1 {
		t.Errorf("%d unknown", unknown)
	}
}

func TestTheActorCannotDisturbTheBooks(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	var unknown []int
	ref := spawn(t, s, Spec[*request]{Name: "a", Kind: "a", Bounds: roomy(), OnUnanswered: func(r *request) { unknown = append(unknown, r.n) },
		New: start(func(turn *Turn) {
			if m := turn.Messages(); len(m) > 0 {
				clear(m)
				_ = append(m[:0], "nonsense")
				panic("core is mad")
			}
		})})
	for i := range 3 {
		_ = ref.TrySend(&request{n: i}, 0)
	}
	h.all()
	if len(unknown) != 3 || unknown[0] != 0 || unknown[2] != 2 {
		t.Errorf("unknown: %v", unknown)
	}
}

func TestStatementsOfAFailedTurnAreUnknownAndThoseBeforeAreDone(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	var unknown []int
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), OnUnanswered: func(n int) { unknown = append(unknown, n) },
		New: start(func(turn *Turn) {
			for _, m := range turn.Messages() {
				if m.(int) == 2 {
					panic("x")
				}
			}
		})})
	for i := range 3 {
		_ = ref.TrySend(i, 0)
		h.all()
	}
	if len(unknown) != 1 || unknown[0] != 2 {
		t.Errorf("unknown: %v", unknown)
	}
}
