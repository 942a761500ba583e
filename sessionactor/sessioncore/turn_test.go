package sessioncore

import (
	"testing"

	"github.com/felixd/felixd/wire"
)

func TestARequestIsFirstOnceEveryOlderOneHasItsAnswer(t *testing.T) {
	s := NewStream(wire.RoleControl, wire.Offer{}, 8)
	var tokens []Token
	for range 3 {
		tokens = append(tokens, s.open.push(slot{form: formMessage}))
	}
	is := func(n int, wantFirst, wantGone bool) {
		t.Helper()
		if first, gone := s.Turn(tokens[n]); first != wantFirst || gone != wantGone {
			t.Errorf("request %d is first: %t, gone: %t", n, first, gone)
		}
	}
	is(0, true, false)
	is(2, false, false)
	s.Settle(tokens[1], Answer{Message: &wire.OK{}})
	is(1, false, true)
	is(2, false, false)
	s.Settle(tokens[0], Answer{Message: &wire.OK{}})
	is(0, false, true)
	is(2, true, false)
	if s.Gone() {
		t.Error("gone before it was abandoned")
	}
	s.Abandon("gone")
	if !s.Gone() {
		t.Error("not gone")
	}
	is(2, false, true)
}
