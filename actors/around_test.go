package actors

import (
	"fmt"
	"testing"
)

func TestAroundSeesEveryTurnAndItsPanicIsTheActors(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	story := ""
	inner := actFunc(func(turn *Turn) { story += fmt.Sprintf("%s%d ", turn.Lifecycle(), len(turn.Messages())) })
	after := func(turn *Turn) {
		if story += "| "; len(turn.Messages()) == 2 {
			panic("twice is too often")
		}
	}
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), New: func() Actor {
		return Around(inner, func(*Turn) { story += "> " }, after)
	}})
	end := s.Watch(ref)
	h.all()
	_ = ref.TrySend(1, 0)
	h.all()
	_ = ref.TrySend(1, 0)
	_ = ref.TrySend(2, 0)
	h.all()
	if want := "> started0 | > none1 | > none2 | > stopped0 | "; story != want {
		t.Errorf("%q, want %q", story, want)
	}
	if x := wait(t, end, "the end"); x.Reason != Panicked {
		t.Errorf("ended %v", x.Reason)
	}
	if u, ok := Around(inner, nil, nil).(interface{ Unwrap() Actor }); !ok || u.Unwrap() == nil {
		t.Error("what is inside can't be reached")
	}
}
