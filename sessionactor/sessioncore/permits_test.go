package sessioncore

import (
	"bytes"
	"slices"
	"testing"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func TestOutcomesTellForWhichShardTheyAre(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	var tokens []Token
	size := 0
	for i := range uint64(6) {
		f := acked(i)
		size = len(f.Payload())
		token := s.Frame(f).Token
		if tokens = append(tokens, token); s.Bytes(token) != size {
			t.Errorf("a request holds %d permits, its frame has %d bytes", s.Bytes(token), size)
		}
	}
	for i, token := range tokens[:5] { // the last one is not let through
		s.Admitted(token, []id.ShardID{1, 1, 2, 1, 1}[i])
	}
	for _, token := range tokens {
		s.Settle(token, Answer{})
	}
	want := []Outcome{{1, 2, 2 * size}, {2, 1, size}, {1, 2, 2 * size}}
	if got := s.Outcomes(); !slices.Equal(got, want) {
		t.Errorf("outcomes %+v, want %+v", got, want)
	}
	if got := s.Outcomes(); len(got) != 0 {
		t.Errorf("told twice: %+v", got)
	}
}

// A request that may wait for long holds no permits, and gives back each of them once.
func TestARequestMadeLighterGivesBackItsPermitsOnce(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	s.Released()
	f := grouped("group_poll", `,"max_records":1`)
	size := len(f.Payload())
	q := s.Frame(f)
	if n := s.Released(); n != 0 || s.Bytes(q.Token) != size {
		t.Fatalf("%d were released, %d are held", n, s.Bytes(q.Token))
	}
	for _, want := range []int{size, 0} {
		if s.Lighten(q.Token); s.Released() != want || s.Bytes(q.Token) != 0 {
			t.Errorf("%d are held of %d", s.Bytes(q.Token), size)
		}
	}
	if m, ok := s.Asked(q.Token).(*wire.GroupPoll); !ok || m.Group != "g" {
		t.Errorf("asked was %+v", s.Asked(q.Token))
	}
	if s.Settle(q.Token, Answer{Message: &wire.GroupRecords{RequestID: 1}}); s.Released() != 0 {
		t.Error("permits came back with the outcome, too")
	}
}

// A stream whose client does not read is ended for that reason, also when the client had finished it; what is open keeps its permits.
func TestAStreamThatIsNotReadIsEndedForThatReason(t *testing.T) {
	for _, finished := range []bool{false, true} {
		s := open(t, todayOffered(), rights{})
		waits := s.Frame(acked(1))
		s.Settle(s.Frame(get()).Token, Answer{Found: true, Value: bytes.Repeat([]byte{1}, 1000)})
		s.Released()
		if s.HasLeft(waits.Token) || s.Owed() < 1000 {
			t.Fatalf("%d bytes are owed", s.Owed())
		}
		if finished {
			s.End("finished by the client")
		}
		s.Unread()
		if s.Fault() != "answers_unread" || s.Owed() != 0 || s.Released() != 0 || s.Finished() || s.Ended() == "" {
			t.Errorf("fault %q, %d bytes owed, ended %q", s.Fault(), s.Owed(), s.Ended())
		}
		s.Settle(waits.Token, Answer{})
		if s.Released() == 0 || !s.Finished() || s.Pending() != 0 {
			t.Error("the open request has not got its outcome in silence")
		}
	}
	s := open(t, todayOffered(), rights{})
	s.TooMuch()
	if s.Unread(); s.Fault() != "partial_frames" {
		t.Errorf("the reason of the end became %q", s.Fault())
	}
}

// A request that is parked holds no permits and counts with what its lane says, until its outcome and once.
func TestAParkedRequestCountsElsewhereUntilItsOutcome(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	s.Released()
	f := grouped("group_poll", `,"max_records":1`)
	q := s.Frame(f)
	if s.Park(q.Token, 1000); s.Released() != len(f.Payload()) || s.held != 0 {
		t.Errorf("%d permits are held", s.held)
	}
	if n, bytes := s.Unparked(); n != 0 || bytes != 0 {
		t.Errorf("%d requests and %d bytes came back before the outcome", n, bytes)
	}
	s.Abandon("gone") // its outcome is still to come
	if n, _ := s.Unparked(); n != 0 {
		t.Error("it came back without its outcome")
	}
	s.Settle(q.Token, Answer{Message: &wire.GroupRecords{RequestID: 1}})
	for _, want := range [][2]int{{1, 1000}, {0, 0}} {
		if n, bytes := s.Unparked(); n != want[0] || bytes != want[1] || s.Released() != 0 || s.held != 0 {
			t.Errorf("%d requests and %d bytes came back, want %v", n, bytes, want)
		}
	}
}
