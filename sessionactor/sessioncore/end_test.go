package sessioncore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

func TestADrainingStreamFinishesWhatIsOpenAndRefusesWhatComes(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	before := s.Frame(acked(1))
	s.Drain()
	for _, f := range []Frame{acked(2), get(), text(`{"type":"topology"}`)} {
		if q := s.Frame(f); q.Do != Nothing {
			t.Fatalf("%q was taken", f.Payload())
		}
	}
	none(t, s) // the oldest request is open
	s.Settle(before.Token, Answer{})
	list := sent(t, s)
	if got := fmt.Sprint(list); got != "[publish 1 ok publish 2 refused error error]" {
		t.Fatalf("sent %s", got)
	}
	for _, a := range list[1:] {
		if f := a.failure(t); f.Code != wire.CodeDraining || f.Retry != wire.RetryRetry {
			t.Errorf("%s: %+v", a, f)
		}
	}
	if s.Ended() != "" {
		t.Errorf("ended: %s", s.Ended())
	}
}

func TestAuthOnADrainingStreamIsRefusedWhateverTheToken(t *testing.T) {
	s := unauthenticated(wire.RoleControl)
	s.Drain()
	q := s.Frame(message(todayOffered()))
	s.AuthenticatedAs(q.Token, q.Message.(*wire.Auth), rights{}, nil)
	if f := one(t, s).failure(t); f.Code != wire.CodeDraining || f.Retry != wire.RetryRetry || !s.Finished() || s.Authenticated() {
		t.Errorf("%+v, finished %v", f, s.Finished())
	}
}

func TestTooManyUnfinishedBytesEndTheStreamAfterWhatItOwes(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	q := s.Frame(acked(1))
	s.TooMuch()
	if s.Ended() == "" || s.Finished() {
		t.Fatalf("ended %q, finished %v", s.Ended(), s.Finished())
	}
	late := acked(2)
	if q := s.Frame(late); q.Do != Nothing {
		t.Fatal("a frame was taken after the end")
	}
	s.Settle(q.Token, Answer{})
	list := sent(t, s)
	if got := fmt.Sprint(list); got != "[publish 1 ok error]" {
		t.Fatalf("sent %s", got)
	}
	if f := list[1].failure(t); f.Code != wire.CodeOverloaded || f.Retry != wire.RetryAfter || f.Reason != "partial_frames" || f.RetryAfterMS != 100 {
		t.Errorf("%+v", f)
	}
	if want := len(acked(1).Payload()) + len(late.Payload()); !s.Finished() || s.Released() != want {
		t.Error("the stream is not over, or permits are missing")
	}
}

func TestAfterAbandonWhatIsOpenKeepsItsPermitsUntilItsOutcomeAndNothingIsSent(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	var tokens []Token
	fed := 0
	for i := range uint64(5) {
		f := acked(i)
		fed += len(f.Payload())
		tokens = append(tokens, s.Frame(f).Token)
	}
	s.Settle(tokens[2], Answer{})
	back := s.Released()
	s.Abandon("the client is gone")
	if n := s.Released(); n != 0 || s.Finished() {
		t.Errorf("%d permits came back before their outcomes; finished %v", n, s.Finished())
	}
	for i, token := range tokens {
		if i != 2 {
			s.Settle(token, Answer{})
		}
	}
	if back += s.Released(); back != fed || s.Pending() != 0 || !s.Finished() || s.Ended() != "the client is gone" {
		t.Errorf("%d permits came back, want %d; %d bytes to send; ended %q", back, fed, s.Pending(), s.Ended())
	}
	s.Abandon("again")
	if s.Released() != 0 || s.Ended() != "the client is gone" {
		t.Error("a second Abandon changed something")
	}
}

// mission 183
func TestABadHeaderEndsTheStreamAfterWhatItOwes(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	q := s.Frame(acked(1))
	_, bad := wire.ParseHeader([]byte("HTTP/1.1 200"), wire.MaxPayload)
	s.BadFrame(bad)
	if s.Finished() || !strings.Contains(s.Ended(), "magic") {
		t.Fatalf("finished %v, ended %q", s.Finished(), s.Ended())
	}
	s.Settle(q.Token, Answer{})
	if got := one(t, s); got.String() != "publish 1 ok" || !s.Finished() {
		t.Errorf("sent %s, finished %v", got, s.Finished())
	}
	s.End("later")
	if !strings.Contains(s.Ended(), "magic") {
		t.Errorf("the reason of the end changed: %q", s.Ended())
	}
}

func TestActionsAreSpelledAsInATokensPermissions(t *testing.T) {
	for a, want := range map[Action]string{ActionPublish: "stream.publish", ActionSubscribe: "stream.subscribe", ActionCacheRead: "cache.read", ActionCacheWrite: "cache.write", 99: "unknown"} {
		if a.String() != want {
			t.Errorf("%d is %q, want %q", a, a, want)
		}
	}
}
