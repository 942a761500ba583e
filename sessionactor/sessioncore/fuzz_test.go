package sessioncore

import (
	"testing"

	"github.com/felixd/felixd/wire"
)

// FuzzStreamFrame gives arbitrary frames to streams in every role and phase. Nothing may panic, permits must balance, a frame
// must bring at most one answer, and that one must be readable for the client and free of what it did not offer.
func FuzzStreamFrame(f *testing.F) {
	add := func(frames ...Frame) {
		for _, x := range frames {
			f.Add(uint16(x.Flags), x.Payload())
		}
	}
	for _, x := range quiet() {
		add(x)
	}
	for _, a := range asks() {
		add(a.make(7))
	}
	add(message(nothingOffered()), message(allOffered()), frameOf(0x8009, make([]byte, 40)), text(`{"type":"extension","name":"x"}`))
	offers := []func() *wire.Auth{nothingOffered, legacyOffered, todayOffered, allOffered}
	f.Fuzz(func(t *testing.T, flags uint16, payload []byte) {
		for _, role := range []wire.Role{wire.RoleControl, wire.RolePublishOnly} {
			for _, offer := range offers {
				s := unauthenticated(role)
				letIn(t, s, offer(), rights{})
				s.TakeOut()
				s.Released()
				fuzzFrame(t, s, offer().Offer(), frameOf(wire.Flags(flags), payload))
			}
			fuzzFrame(t, unauthenticated(role), wire.Offer{}, frameOf(wire.Flags(flags), payload))
		}
	})
}

func fuzzFrame(t *testing.T, s *Stream, offered wire.Offer, f Frame) {
	size := len(f.Payload())
	q := s.Frame(f)
	silent := false
	switch q.Do {
	case Authenticate:
		refused := wire.Refuse(wire.CodeUnauthenticated, "unauthorized")
		s.AuthenticatedAs(q.Token, q.Message.(*wire.Auth), nil, &refused)
		offered = q.Message.(*wire.Auth).Offer()
	case Publish:
		silent = s.Silent(q.Token)
		if n := wire.Region(q.Framed[RegionHeadroom:]).Count(); n != q.Publish.Count {
			t.Fatalf("a region of %d records, announced as %d", n, q.Publish.Count)
		}
		s.Settle(q.Token, Answer{HasOffset: true, Offset: 1})
	case Ask:
		f := wire.Refuse(wire.CodeInternal, "why").WithReason("reason", 1)
		s.Settle(q.Token, Answer{Refusal: &f})
	case Nothing:
	}
	list := answers(t, s.Out())
	if len(list) > 1 || silent && len(list) > 0 {
		t.Fatalf("%d answers to one frame, silent %v", len(list), silent)
	}
	for _, a := range list {
		if a.flags&^offered.Flags != 0 {
			t.Fatalf("sent flags %s, offered %s", a.flags, offered.Flags)
		}
	}
	if got := s.Released(); got != size || s.Open() != 0 {
		t.Fatalf("%d permits came back of %d, %d open", got, size, s.Open())
	}
	s.TakeOut()
	if s.Finished() != (s.Ended() != "") {
		t.Fatalf("ended %q and finished is %v", s.Ended(), s.Finished())
	}
}
