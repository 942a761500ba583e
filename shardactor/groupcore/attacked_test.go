package groupcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// These are what an attacker found.

func TestAGroupIsServedThoughTheBoundOfWhatIsInFlightWasLowered(t *testing.T) {
	o := small()
	o.MaxInFlight = 100
	s := newShell(o, 100)
	s.poll(Poll{Max: 100})
	for i := 1; i < 100; i += 2 {
		s.ack(id.Offset(i))
	}
	s.opts.MaxInFlight = 10
	for range 3 {
		s.start()
		for _, r := range s.records(Poll{Max: 1}) {
			s.ack(r.Offset)
		}
	}
	for range 100 {
		for _, r := range s.records(Poll{Max: 10}) {
			expect(t, "ack", refused(s.ack(r.Offset)), "ok")
		}
	}
	expect(t, "settled", s.core.Info().Cursor, id.Offset(100))
}

func TestDeadLettersRedrivenAfterASeekBackMakeNoMoreRangesThanMayBe(t *testing.T) {
	o := small()
	o.MaxInFlight = 2
	s := newShell(o, 40)
	for i := range id.Offset(40) {
		s.records(Poll{Max: 1})
		if i%2 == 1 {
			s.do(GiveUp{Ask: s.ask(), Offset: i})
		} else {
			s.ack(i)
		}
	}
	s.seek(at(0), false)
	refusals := 0
	for i := id.Offset(1); i < 40; {
		f := s.do(Redrive{Ask: s.ask(), Offset: i}).Refusal
		switch {
		case f == nil:
			i += 2
		case f.Code != wire.CodeOverloaded || refusals == 1000:
			t.Fatalf("the redrive of %d: %v", i, f)
		default:
			refusals++
		}
		for _, r := range s.records(Poll{Max: 1}) {
			expect(t, "ack", refused(s.ack(r.Offset)), "ok")
		}
	}
	if refusals == 0 {
		t.Error("nothing was refused: the bound was not reached")
	}
	for range 40 {
		for _, r := range s.records(Poll{Max: 2}) {
			s.ack(r.Offset)
		}
	}
	expect(t, "settled", s.core.Info().Cursor, id.Offset(40))
	expect(t, "dead letters", len(s.deads()), 0)
}

// A worker that comes by less often than a group is let go of.
func TestFailuresCountThoughTheGroupRestsBetweenThem(t *testing.T) {
	for name, fail := range map[string]func(*shell, Handed){
		"nack":  func(s *shell, h Handed) { s.nack(h.Offset, h.Attempts) },
		"lapse": func(*shell, Handed) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(small(), 1)
			for range small().MaxAttempts {
				got := s.records(Poll{Max: 1})
				if len(got) != 1 {
					t.Fatalf("handed out: %v, dead letters: %v", got, s.deads())
				}
				fail(s, got[0])
				s.wait(25 * time.Minute)
				if !s.idle {
					t.Fatal("not idle")
				}
				s.start() // let go of in good order, and made again
			}
			expect(t, "dead letters", s.deads(), []id.Offset{0})
			s.wait(25 * time.Minute)
			expect(t, "idle", s.idle, true)
		})
	}
}

func TestAListingOfARemovedGroupFinishesNothingOfTheNextOne(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	s.patient = true
	s.step(GiveUp{Ask: s.ask(), Offset: 0})
	if s.writes[LogDeadLetters] == nil {
		t.Fatal("no listing on its way")
	}
	s.step(Remove{Ask: s.ask()})
	g := s.poll(Poll{Max: 1})
	for len(s.fetches) > 0 {
		s.readOne(0)
		s.take()
	}
	if s.writes[LogCursors] != nil {
		s.complete(LogCursors, true)
		s.take()
	}
	if g.deliver == nil || len(g.deliver.Records) != 1 {
		t.Fatalf("%+v", g)
	}
	s.step(GiveUp{Ask: s.ask(), Offset: 0}) // of the new group
	s.complete(LogDeadLetters, true)        // the listing of the old one
	s.take()
	for s.writes[LogCursors] != nil {
		s.complete(LogCursors, true)
		s.take()
	}
	s.crash([logCount]bool{}) // the second listing is lost
	s.patient = false
	s.settle()
	s.take()
	if got := s.records(Poll{Max: 1}); len(got) == 0 && len(s.deads()) == 0 {
		t.Errorf("record 0 is gone: %+v", s.core.Info())
	}
}

func TestARunIsForgottenWhenNothingRestsOnIt(t *testing.T) {
	s := newShell(small(), 10)
	s.poll(Poll{Max: 10})
	s.patient = true
	s.step(GiveUp{Ask: s.ask(), Offset: 3})
	s.step(Redrive{Ask: s.ask(), Offset: 3})
	s.step(Discard{Ask: s.ask(), Offset: 3})
	s.patient = false
	s.settle()
	s.take()
	expect(t, "it comes again", told(s.records(Poll{Conn: 2, Max: 1})), "3:1")
	for i := range id.Offset(10) {
		s.ack(i)
	}
	expect(t, "runs", len(s.core.play.runs), 0)
	expect(t, "keys", len(s.tables[LogCursors]), 1) // the position
}

func TestARunIsNotReplacedByAnother(t *testing.T) {
	state := NewState("g")
	for _, e := range []Entry{
		{Kind: KindPosition, Epoch: 1, Born: 1, Cursor: 0},
		{Kind: KindRun, Epoch: 1, Offset: 0, Count: 10},
		{Kind: KindDead, Epoch: 1, Offset: 0},
	} {
		if err := state.Add(AppendKey(nil, "g", e.Kind, e.Offset), AppendValue(nil, &e)); err != nil {
			t.Fatal(err)
		}
	}
	o := small()
	o.Group = "g"
	s := newShell(o, 10)
	s.wakeAt = never
	s.core = New(o, 0, Loaded{State: state, Tail: Tail{End: 10, Committed: 10}})
	s.take()
	s.do(Redrive{Ask: s.ask(), Offset: 0})
	s.do(Discard{Ask: s.ask(), Offset: 0})
	expect(t, "handed out", len(s.records(Poll{Max: 1})), 1)
}

func TestAllWhoReclaimAtTheBoundAreServedAfterAWriteFailed(t *testing.T) {
	o := small()
	o.MaxInFlight = 4
	s := newShell(o, 10)
	s.poll(Poll{Conn: 1, Member: "a", Max: 2})
	s.poll(Poll{Conn: 2, Member: "b", Max: 2})
	s.patient = true
	s.core.dirty(dkey{KindPosition, 0})
	s.take()
	s.complete(LogCursors, false)
	s.take()
	s.poll(Poll{Conn: 5, Member: "c", Max: 1, Wait: 20 * time.Second})
	a := s.poll(Poll{Conn: 3, Member: "a", Max: 2, Reclaim: true, Wait: 20 * time.Second})
	b := s.poll(Poll{Conn: 4, Member: "b", Max: 2, Reclaim: true, Wait: 20 * time.Second})
	s.patient = false
	s.wait(time.Second)
	if a.deliver == nil || b.deliver == nil {
		t.Errorf("a is served: %v, b is served: %v; both have reserved records and a poll", a.deliver != nil, b.deliver != nil)
	}
}

// A worker died and its broker does not know yet: it comes again and reclaims. What its poll was to get is for the one that lives.
func TestAReclaimEndsThePollsOfTheMembersOlderConnections(t *testing.T) {
	for name, reading := range map[string]bool{"waiting": false, "being read for": true} {
		t.Run(name, func(t *testing.T) {
			s := newShell(small(), 1)
			s.poll(Poll{Conn: 1, Member: "m", Max: 1})
			s.ack(0)
			old := s.poll(Poll{Conn: 1, Member: "m", Max: 1, Wait: 30 * time.Second})
			s.patient = true
			if reading {
				s.publish(1)
				expect(t, "reads under way", len(s.fetches), 1)
			}
			g := s.poll(Poll{Conn: 2, Member: "m", Max: 1, Wait: 30 * time.Second, Reclaim: true})
			if !reading {
				s.publish(1)
			}
			s.patient = false
			s.settle()
			s.take()
			expect(t, "the older one", old.deliver != nil && len(old.deliver.Records) == 0, true)
			expect(t, "the younger one", g.deliver != nil && len(g.deliver.Records) == 1, true)
		})
	}
}

func TestAMemberReclaimsFromAConnectionThatIsGoneAlsoOnAnOlderOne(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Conn: 5, Member: "m", Max: 1})
	s.step(Gone{Conn: 5})
	expect(t, "taken back", len(s.records(Poll{Conn: 3, Member: "m", Max: 1, Reclaim: true})), 1)
}

// A group that is not there hands out nothing, whoever waited for it, and leaves nothing behind that can't be read.
func TestAPollEndsWithTheGroupThatIsRemovedUnderIt(t *testing.T) {
	for name, reading := range map[string]bool{"waiting": false, "being read for": true} {
		t.Run(name, func(t *testing.T) {
			s := newShell(small(), 3)
			for _, r := range s.records(Poll{Max: 3}) {
				s.ack(r.Offset)
			}
			g := s.poll(Poll{Conn: 2, Max: 3, Wait: 30 * time.Second})
			if reading {
				s.patient = true
				s.publish(2)
				expect(t, "reads", len(s.fetches), 1)
			}
			s.step(Remove{Ask: s.ask()})
			s.patient = false
			s.settle()
			s.take()
			if g.deliver == nil || len(g.deliver.Records) != 0 {
				t.Fatalf("%+v", g.deliver)
			}
			s.start()
			s.seek(at(2), true)
			expect(t, "the next one of the name", told(s.records(Poll{Max: 1})), "2:1")
		})
	}
}

func TestATombstoneCanAlwaysBeRead(t *testing.T) {
	s := newShell(small(), 1)
	s.records(Poll{Max: 1})
	s.ack(0)
	s.poll(Poll{Conn: 2, Max: 1, Wait: 30 * time.Second})
	s.patient = true
	s.step(Remove{Ask: s.ask()})
	for len(s.fetches) > 0 {
		s.readOne(0)
		s.take()
	}
	s.step(GiveUp{Ask: s.ask(), Offset: 0})
	for log := range logCount {
		if s.writes[log] != nil {
			s.complete(log, true)
			s.take()
		}
	}
	s.crash([logCount]bool{true, true})
}

func TestARedrivenRecordBelowTheBaseIsGoneAfterARestart(t *testing.T) {
	s := newShell(small(), 5)
	s.poll(Poll{Max: 5})
	s.do(GiveUp{Ask: s.ask(), Offset: 1})
	for _, o := range []id.Offset{0, 2, 3, 4} {
		s.ack(o)
	}
	s.do(Redrive{Ask: s.ask(), Offset: 1})
	s.base = 3
	s.crash([logCount]bool{})
	expect(t, "in play", len(s.core.play.all), 0)
}

// However many claims lapse at a moment, one write is as large as the mailbox of the shard takes.
func TestAWriteIsBoundedHoweverManyLapseAtOnce(t *testing.T) {
	const records = 20_000
	o := small()
	o.Group = string(make([]byte, MaxGroupBytes))
	o.MaxInFlight, o.MaxAttempts, o.MaxDeadLetters, o.MaxUnwritten = records, 1, records, 1000
	s := newShell(o, 0)
	s.now = 0
	c := New(o, 0, Loaded{Tail: Tail{End: records, Committed: records}})
	most := uint32(0)
	now, wake := time.Duration(0), never
	run := func() {
		for e := c.Take(); len(e) > 0; e = c.Take() {
			for _, x := range e {
				switch x := x.(type) {
				case *Persist:
					most = max(most, x.Count)
					c.Step(now, Persisted{Seq: x.Seq})
				case *Fetch:
					f := make([]bool, len(x.Offsets))
					for i := range f {
						f[i] = true
					}
					c.Step(now, Read{Poll: x.Poll, Found: f})
				case Deadline:
					wake = x.At
				}
			}
		}
	}
	for range records / 1000 {
		c.Step(now, &Poll{Conn: 1, Max: 1000})
		run()
	}
	expect(t, "in flight", c.Info().InFlight, records)
	lapsed := now + o.Visibility
	for steps := 0; c.Info().Dead < records; steps++ {
		if now = max(now, wake); now > lapsed || steps > 10*records {
			t.Fatalf("after %d steps, at %v, %d of %d are given up on", steps, now, c.Info().Dead, records)
		}
		wake = never
		c.Step(now, Wake{})
		run()
	}
	expect(t, "settled", c.Info().Cursor, id.Offset(records))
	if most > uint32(4*o.MaxUnwritten) {
		t.Errorf("one write holds %d keys, and %d may wait", most, o.MaxUnwritten)
	}
}

func TestAGroupThatIsNotThereIsLetGoOfAtOnce(t *testing.T) {
	s := newShell(small(), 1)
	expect(t, "described", s.do(Describe{Ask: s.ask()}).Info.Exists, false)
	expect(t, "idle", s.idle, true)
	s.idle = false
	s.poll(Poll{Max: 1})
	expect(t, "idle while it is", s.idle, false)
	s.do(Remove{Ask: s.ask()})
	expect(t, "idle when it is gone, in the logs too", s.idle, true)
}
