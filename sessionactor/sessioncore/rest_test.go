package sessioncore

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/wire"
)

// A stream that rests keeps nothing to be quicker, and goes on where it was: what is open stays open, in order, and a request of before stays
// as it was read.
func TestAStreamThatRestsKeepsOnlyWhatIsOpenAndGoesOn(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	s.Settle(s.Frame(acked(1)).Token, Answer{})
	sent(t, s)
	s.Rest()
	if s.publishes != nil || s.out != nil || s.open.slots != nil {
		t.Errorf("it keeps %v, %d bytes for answers and %d slots", s.publishes, cap(s.out), len(s.open.slots))
	}
	first := s.Frame(acked(2))
	name := string(first.Publish.Stream)
	s.Rest()
	second := s.Frame(acked(3))
	if string(first.Publish.Stream) != name || name == "" || first.Publish.RequestID != 2 {
		t.Errorf("the request of before the rest became %+v", first.Publish)
	}
	s.Settle(second.Token, Answer{})
	s.Rest()
	if s.Open() != 2 || s.Pending() != 0 {
		t.Errorf("%d requests are open and %d bytes may leave", s.Open(), s.Pending())
	}
	s.Settle(first.Token, Answer{})
	s.Rest() // with answers that have not left
	if got := fmt.Sprint(sent(t, s)); got != "[publish 2 ok publish 3 ok]" {
		t.Errorf("sent %s", got)
	}
}

func TestAFramerThatRestsInTheMiddleOfAFrameLosesNothing(t *testing.T) {
	var f Framer
	for i := range uint64(3) {
		frame := acked(i)
		head := wire.AppendHeader(nil, wire.Header{Flags: frame.Flags, Length: uint32(len(frame.Payload()))})
		for _, b := range append(head, frame.Payload()...) {
			f.Want()[0] = b
			got, done, err := f.Feed(1, 1<<20)
			f.Rest()
			if err != nil {
				t.Fatal(err)
			}
			if done {
				if string(got.Payload()) != string(frame.Payload()) || got.Flags != frame.Flags {
					t.Fatalf("frame %d came as %x", i, got.Payload())
				}
				f.Reuse(got)
				f.Rest()
				if f.spare != nil || !f.Between() {
					t.Errorf("it keeps %d bytes", cap(f.spare))
				}
			}
		}
	}
}
