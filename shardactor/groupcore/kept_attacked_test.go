package groupcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// A group that rests again and again, with workers that give back a few records before and give them up after, keeps no more than there is room for.
func TestAGroupThatRestsOftenKeepsNoMoreThanThereIsRoomFor(t *testing.T) {
	c, list := keepersOf(0, 2000)
	s := list[0]
	limit := c.Limits().Node
	for range 200 {
		for _, h := range s.records(Poll{Max: 4}) { // those that are owed come alone
			s.do(Nack{Ask: s.ask(), Conn: 1, Offset: h.Offset, HasDelay: true})
		}
		for s.core.play.counts[owed] > 0 && !s.core.Resting() {
			s.wait(time.Second)
		}
		s.crash([logCount]bool{}) // it rests, or its broker begins anew
		for range 8 {
			for _, h := range s.records(Poll{Max: 1}) {
				if h.Attempts == 1 {
					s.do(Nack{Ask: s.ask(), Conn: 1, Offset: h.Offset, HasDelay: true})
					continue
				}
				s.do(GiveUp{Ask: s.ask(), Offset: h.Offset})
			}
		}
		verifyKept(t, c, list)
	}
	if n := s.core.keptKeys(); n > 3*FreeKeys+3*heldBackPlay || c.Used() > 3*limit {
		t.Errorf("%d keys are kept, %d bytes where there is room for %d", n, c.Used(), limit)
	}
}

// Acks of what was never handed out leave nothing behind that there is no room for.
func TestAcksOfWhatWasNotHandedOutKeepNoMoreThanThereIsRoomFor(t *testing.T) {
	c, list := keepersOf(0, 20000, 20000, 20000, 20000)
	limit := c.Limits().Node
	for _, s := range list {
		s.records(Poll{Max: 1})
		s.crash([logCount]bool{})
		for o := id.Offset(1); o < 20000; o += 2 {
			if f := s.ack(o); f != nil {
				break
			}
		}
	}
	verifyKept(t, c, list)
	if c.Used() > 3*limit {
		t.Errorf("%d bytes are kept where there is room for %d", c.Used(), limit)
	}
}
