package groupcore

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// reservedWhileManyWait is a group with so many polls that wait, each of a connection of its own, and a few members that have something
// reserved and do not come for it.
func reservedWhileManyWait(polls, members int) *Core {
	c := New(DefaultOptions("orders"), 0, Loaded{Tail: Tail{End: id.Offset(members), Committed: id.Offset(members)}})
	complete := func() {
		for effects := c.Take(); len(effects) > 0; effects = c.Take() {
			for _, e := range effects {
				switch e := e.(type) {
				case *Fetch:
					c.Step(0, Read{Poll: e.Poll, Found: []bool{true}})
				case *Persist:
					c.Step(0, Persisted{Seq: e.Seq})
				}
			}
		}
	}
	for i := range Conn(members) {
		c.Step(0, &Poll{Conn: 1 + i, Member: fmt.Sprint("m", i), Max: 1, Visibility: time.Hour})
		complete()
	}
	for _, r := range c.play.all {
		c.play.become(r, reserved, time.Hour)
	}
	for i := range polls {
		c.Step(0, &Poll{Conn: Conn(1_000_000 + i), Max: 1, Wait: time.Minute})
	}
	complete()
	return c
}

// Expected: a step looks at nobody who waits for something else: less than a microsecond, whether 10 polls wait or 10,000.
func BenchmarkStepWhileSomethingIsReserved(b *testing.B) {
	for _, polls := range []int{10, 10_000} {
		b.Run(fmt.Sprint(polls), func(b *testing.B) {
			c := reservedWhileManyWait(polls, 100)
			if c.play.counts[reserved] != 100 || c.ends.len() != polls {
				b.Fatalf("%d are reserved, %d wait", c.play.counts[reserved], c.ends.len())
			}
			for b.Loop() {
				c.Step(0, Wake{})
				c.Take()
			}
		})
	}
}

// Members that come for what is reserved get it, each its own, however many wait for something else, and those who come twice all of it.
func TestWhoComesForWhatIsReservedGetsItAmongMany(t *testing.T) {
	s := newShell(small(), 9)
	for i := range Conn(3) {
		s.poll(Poll{Conn: 1 + i, Member: fmt.Sprint("m", i), Max: 3, Visibility: time.Hour})
	}
	for i := range Conn(50) {
		s.poll(Poll{Conn: 100 + i, Max: 1, Wait: time.Hour})
	}
	waits := s.poll(Poll{Conn: 11, Member: "m1", Max: 1, Wait: time.Hour}) // before it says that it reclaims
	again := s.poll(Poll{Conn: 11, Member: "m1", Max: 1, Wait: time.Hour, Reclaim: true})
	expect(t, "the poll that waited", told(waits.deliver.Records), "3:2")
	expect(t, "the one that reclaims", told(again.deliver.Records), "4:2")
	expect(t, "the third record waits", s.core.play.counts[reserved], 1)
	expect(t, "for the member alone", told(s.records(Poll{Conn: 11, Member: "m1", Max: 1})), "5:2")
	expect(t, "the others wait", s.core.ends.len(), 50)
}
