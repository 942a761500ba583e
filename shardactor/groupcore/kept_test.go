package groupcore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
	"pgregory.net/rapid"
)

// keepersOf is a node with room for so many keys beside its groups, which have so many records each.
func keepersOf(keys int, groups ...int) (*Claims, []*shell) {
	n := int64(keys * keptBeyond(2, FreeKeys+1))
	for i := range groups {
		n += int64(Kept(fmt.Sprint("g", i), 0))
	}
	c := NewKept(ClaimLimits{Tenant: n * KeptUnit, Node: n * KeptUnit})
	var list []*shell
	for i, records := range groups {
		s := newShell(small(), records)
		s.opts.Group, s.opts.Counted, s.opts.MaxInFlight, s.opts.Visibility, s.kept = fmt.Sprint("g", i), true, 10_000, time.Hour, c
		s.start()
		list = append(list, s)
	}
	return c, list
}

// verifyKept counts anew what groups keep, and finds whether that is what is counted.
func verifyKept(t interface{ Fatal(...any) }, c *Claims, list []*shell) {
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	held := 0
	for i, s := range list {
		held += s.keeper.held
		base, n, given := Kept(s.opts.Group, 0), s.core.keptUnits(), 0
		for _, g := range s.given {
			given += g.Records
		}
		switch granted := s.core.keep.granted; {
		case base+granted+given != s.keeper.held:
			t.Fatal(fmt.Sprintf("group %d believes to hold %d and %d, is told of %d, and holds %d", i, base, granted, given, s.keeper.held))
		case n > granted:
			t.Fatal(fmt.Sprintf("group %d keeps %d, and %d are counted", i, n, granted))
		case given == 0 && !s.patient && granted > steps(n)+claimStep:
			t.Fatal(fmt.Sprintf("group %d keeps %d, and %d are counted", i, n, granted))
		}
		onTheWay := 0
		for l := range s.core.backlog.logs {
			onTheWay += len(s.core.backlog.logs[l].changed) + len(s.core.backlog.logs[l].flying)
		}
		noted := s.core.playKeys() + s.core.otherKeys()
		if keys := s.keys(); s.core.Resting() && keys != noted || keys > noted+onTheWay {
			t.Fatal(fmt.Sprintf("group %d has %d keys, knows of %d, and %d are on their way", i, keys, noted, onTheWay))
		}
	}
	if int64(held)*KeptUnit != c.Used() {
		t.Fatal(fmt.Sprintf("%d are held, and %d bytes counted", held, c.Used()))
	}
}

// odd hands out so many records, and settles every other one.
func odd(s *shell, n int) (left []id.Offset) {
	for _, h := range s.records(Poll{Max: uint32(n)}) {
		if h.Offset%2 == 1 {
			s.ack(h.Offset)
		} else {
			left = append(left, h.Offset)
		}
	}
	return left
}

// Whatever becomes of groups that share what they may keep, every step of it is counted as what is really kept: a recount finds the same, no
// record that was settled comes again, everything is finished in the end however little room there is, and nothing is counted when all is gone.
func TestWhatGroupsKeepIsCountedExactlyAndTheyFinishEverything(t *testing.T) {
	const records = 60
	rapid.Check(t, func(t *rapid.T) {
		c, list := keepersOf(rapid.SampledFrom([]int{16, 40, 200}).Draw(t, "room"), records, records, records)
		hands, settled := make([][]id.Offset, len(list)), make([]map[id.Offset]bool, len(list))
		for i := range settled {
			settled[i] = map[id.Offset]bool{}
		}
		poll := func(i int, most uint32) {
			for _, h := range list[i].records(Poll{Max: most}) {
				if settled[i][h.Offset] {
					t.Fatalf("group %d hands out %d, which is settled", i, h.Offset)
				}
				hands[i] = append(hands[i], h.Offset)
			}
		}
		ack := func(i, which int) {
			o := hands[i][which]
			hands[i] = slices.Delete(hands[i], which, which+1)
			if f := list[i].ack(o); f != nil {
				t.Fatalf("group %d refuses to settle %d: %s", i, o, f.Message)
			}
			settled[i][o] = true
		}
		// late does a few things while writes are on their way, which then succeed, fail, or are lost with the broker.
		late := func(i int) {
			s := list[i]
			s.patient = true
			polls, acks := []*got{}, map[id.Offset]*got{}
			for range rapid.IntRange(1, 6).Draw(t, "things") {
				switch what := rapid.IntRange(0, 9).Draw(t, "thing"); {
				case what == 9:
					s.step(Seek{Ask: s.ask(), Start: at(id.Offset(rapid.IntRange(0, records).Draw(t, "to")))})
					hands[i], settled[i], acks = nil, map[id.Offset]bool{}, map[id.Offset]*got{}
					polls = slices.DeleteFunc(polls, func(g *got) bool { return g.times > 0 })
				case what < 3:
					polls = append(polls, s.poll(Poll{Max: 20}))
				case what < 5 && s.writes[LogCursors] != nil:
					s.complete(LogCursors, rapid.Bool().Draw(t, "written"))
					s.take()
				case len(s.fetches) > 0:
					s.readOne(0)
					s.take()
				case len(hands[i]) > 0 && what < 7:
					s.step(Nack{Ask: s.ask(), Conn: 1, Offset: hands[i][0]})
					hands[i] = hands[i][1:]
				case len(hands[i]) > 0:
					a := &Ack{Ask: s.ask(), Offset: hands[i][len(hands[i])-1]}
					s.step(a)
					acks[a.Offset] = s.got[a.Token]
				}
				verifyKept(t, c, list)
			}
			s.patient = false
			lost := rapid.Bool().Draw(t, "lost")
			if lost {
				s.crash([logCount]bool{rapid.Bool().Draw(t, "cursors"), rapid.Bool().Draw(t, "dead letters")})
				hands[i] = nil
			} else {
				s.settle()
				s.take()
				s.wait(2 * s.opts.WriteRetry)
			}
			for o, g := range acks {
				if g.answer != nil && g.answer.Refusal == nil {
					settled[i][o] = true
					hands[i] = slices.DeleteFunc(hands[i], func(x id.Offset) bool { return x == o })
				}
			}
			for _, g := range polls {
				for h := 0; !lost && g.deliver != nil && h < len(g.deliver.Records); h++ {
					hands[i] = append(hands[i], g.deliver.Records[h].Offset)
				}
			}
		}
		act := func(i int, what string) {
			s := list[i]
			switch what {
			case "late":
				late(i)
			case "poll":
				poll(i, uint32(rapid.IntRange(1, 40).Draw(t, "most")))
			case "ack":
				for n := min(len(hands[i]), rapid.IntRange(1, 30).Draw(t, "acks")); n > 0; n-- {
					ack(i, rapid.IntRange(0, len(hands[i])-1).Draw(t, "which"))
				}
			case "nack", "give up":
				for range min(len(hands[i]), 3) {
					var in Input = GiveUp{Ask: s.ask(), Offset: hands[i][0]}
					if what == "nack" {
						in = Nack{Ask: s.ask(), Conn: 1, Offset: hands[i][0]}
					}
					if f := s.do(in).Refusal; f == nil || what == "nack" {
						hands[i] = hands[i][1:]
					}
				}
			case "redrive", "discard":
				for _, o := range s.deads()[:min(2, len(s.deads()))] {
					var in Input = Discard{Ask: s.ask(), Offset: o}
					if what == "redrive" {
						in = Redrive{Ask: s.ask(), Offset: o}
						delete(settled[i], o)
					}
					s.do(in)
				}
			case "seek", "remove":
				var in Input = Remove{Ask: s.ask()}
				if what == "seek" {
					in = Seek{Ask: s.ask(), Start: at(id.Offset(rapid.IntRange(0, records).Draw(t, "to")))}
				}
				s.do(in)
				hands[i], settled[i] = nil, map[id.Offset]bool{}
			case "lapse":
				s.wait(time.Hour)
				hands[i] = nil
			case "trim":
				s.base = max(s.base, id.Offset(rapid.IntRange(0, records/2).Draw(t, "base")))
				s.step(Trimmed{Base: s.base})
			case "crash": // or it is let go of
				s.crash([logCount]bool{})
				hands[i] = nil
			}
			if rapid.Bool().Draw(t, "heard") {
				hear(list)
			}
			verifyKept(t, c, list)
		}
		actions := []string{
			"poll", "poll", "poll", "poll", "ack", "ack", "ack", "nack", "give up", "redrive", "discard", "seek", "remove", "lapse", "trim", "crash", "late",
		}
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			act(rapid.IntRange(0, len(list)-1).Draw(t, "group"), rapid.SampledFrom(actions).Draw(t, "what"))
		}
		for i, s := range list {
			for rounds := 0; s.core.Info().Cursor < records || len(s.core.play.all) > 0 || len(s.core.dead.list) > 0; rounds++ {
				if s.wait(time.Minute); rounds > 10*records {
					t.Fatalf("group %d gets stuck at %+v", i, s.core.Info())
				}
				for _, o := range s.deads() {
					s.do(Discard{Ask: s.ask(), Offset: o})
				}
				poll(i, 100)
				for len(hands[i]) > 0 {
					ack(i, 0)
				}
				hear(list)
				verifyKept(t, c, list)
			}
			if n := s.core.keptKeys(); n > 0 {
				t.Fatalf("group %d keeps %d when everything is finished", i, n)
			}
		}
		for _, s := range list {
			pass(BudgetKept, c.Leave(s.keeper))
		}
		if c.Used() != 0 {
			t.Fatalf("%d bytes are counted when all groups are gone", c.Used())
		}
	})
}

// What groups keep comes to a stand by itself where no room is left, whatever workers do: few new records leave before the position moves on, each
// is taken when it is settled, and the first that is open can always be had.
func TestAGroupThatFindsNoRoomKeepsNoMoreAndGoesOn(t *testing.T) {
	const room = 100
	c, list := keepersOf(room, 2000, 2000)
	hoarder, s := list[0], list[1]
	held := hoarder.records(Poll{Max: 400})
	if n := len(held); n > room+FreeKeys || n < room {
		t.Fatalf("%d are handed out where there is room for %d", n, room+FreeKeys)
	}
	verifyKept(t, c, list)
	expect(t, "who asks for little", len(s.records(Poll{Max: 200})), FreeKeys)
	expect(t, "and not more", told(s.records(Poll{Max: 200})), "")
	expect(t, "is capped", s.core.Counts().PollsCapped, 1)
	given := FreeKeys
	for o := id.Offset(1); o < 2000; o++ { // the first one is never finished
		if o >= id.Offset(given) {
			n := len(s.records(Poll{Max: 200}))
			if given += n; n == 0 {
				break
			}
		}
		if o%3 > 0 {
			expect(t, "ack", refused(s.ack(o)), "ok")
		}
		if n := s.core.keptKeys(); n > FreeKeys+heldBackPlay {
			t.Fatalf("%d are kept", n)
		}
		verifyKept(t, c, list)
	}
	if given < 2*FreeKeys || given > 10*FreeKeys {
		t.Errorf("%d are handed out before it is held back", given)
	}
	expect(t, "nothing is counted beyond the budget", c.Used() <= c.Limits().Node, true)
	s.wait(time.Hour)
	first := s.records(Poll{Max: 200})
	expect(t, "the first that is open", told(first), "0:2")
	s.ack(0)
	for range 2000 {
		list := s.records(Poll{Max: 200})
		if len(list) == 0 {
			break
		}
		for _, h := range list {
			expect(t, "ack", refused(s.ack(h.Offset)), "ok")
		}
	}
	verifyKept(t, c, list)
	expect(t, "all is finished", s.core.Info().Cursor, 2000)
	s.publish(2000)
	waits := []*got{s.poll(Poll{Max: FreeKeys}), s.poll(Poll{Max: 200, Wait: time.Minute})}
	for i, h := range held {
		hoarder.ack(h.Offset)
		hear(list)
		if verifyKept(t, c, list); waits[1].times > 0 && i < 8 {
			t.Fatalf("there was room after %d", i)
		}
	}
	if waits[1].times != 1 || len(waits[1].deliver.Records) < FreeKeys {
		t.Fatalf("the poll that waited has got %+v", waits[1])
	}
}

// Groups take turns in leaving behind as much as they can, and rest: together they keep no more than there is room for, and twice that by what
// becomes of records that were handed out within it.
func TestGroupsThatTakeTurnsKeepNoMoreThanThereIsRoomFor(t *testing.T) {
	const room = 200
	c, list := keepersOf(room, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000)
	limit, most := c.Limits().Node, int64(0)
	for range 3 {
		for _, s := range list {
			for got := s.records(Poll{Max: 300}); len(got) > 0; got = s.records(Poll{Max: 300}) {
				for _, h := range got {
					switch in := h.Offset % 4; {
					case in == 0:
						s.nack(h.Offset, h.Attempts)
					case in == 2:
						s.do(GiveUp{Ask: s.ask(), Offset: h.Offset})
					case in == 3:
						s.ack(h.Offset)
					}
				}
			}
			s.wait(time.Hour)
			verifyKept(t, c, list)
			most = max(most, c.Used())
			s.crash([logCount]bool{})
			hear(list)
		}
	}
	if keys := (most - limit) / KeptUnit / int64(keyUnits(2)); keys > 2*room || most < limit*9/10 {
		t.Errorf("%d keys are kept beyond the %d that there is room for", keys, room)
	}
	for i, s := range list {
		for s.core.Info().Cursor < 1000 {
			for _, o := range s.deads() {
				s.do(Discard{Ask: s.ask(), Offset: o})
			}
			for _, h := range s.records(Poll{Max: 300}) {
				s.ack(h.Offset)
			}
			if s.wait(time.Minute); s.now > 1000*time.Hour {
				t.Fatalf("group %d gets stuck at %+v", i, s.core.Info())
			}
			hear(list)
		}
	}
}

// What a seek leaves in the logs means nothing any more, and counts until it is deleted.
func TestWhatASeekLeavesBehindCountsUntilItIsDeleted(t *testing.T) {
	c, list := keepersOf(2000, 2000)
	s := list[0]
	odd(s, 1000)
	odd(s, 1000)
	full := c.Used()
	s.patient = true
	s.step(&Ack{Ask: s.ask(), Offset: 2}) // is being written
	s.step(Nack{Ask: s.ask(), Conn: 1, Offset: 0})
	s.poll(Poll{Max: 1})
	s.readOne(0)
	s.take()
	expect(t, "a number that is not written", s.core.play.singles, 1)
	s.step(Seek{Ask: s.ask(), Start: at(2000)})
	verifyKept(t, c, list)
	if c.Used() < full/2 {
		t.Errorf("%d of %d bytes are counted before anything is deleted", c.Used(), full)
	}
	for s.writes[LogCursors] != nil {
		s.complete(LogCursors, true)
		s.take()
		verifyKept(t, c, list)
	}
	expect(t, "then nothing", c.Used(), int64(Kept("g0", 0))*KeptUnit)
}

// A record that would be a dead letter too many for the node is put aside like one of a full list: not handed out, not lost, and listed once there
// is room. A group that has few is not concerned.
func TestDeadLettersFindingNoRoomArePutAside(t *testing.T) {
	c, list := keepersOf(100, 1000, 1000, 1000)
	hoarder, s, small := list[0], list[1], list[2]
	hoarder.records(Poll{Max: 400})
	for range 4 {
		for _, h := range small.records(Poll{Max: 1}) {
			expect(t, "one of few", refused(small.do(GiveUp{Ask: small.ask(), Offset: h.Offset}).Refusal), "ok")
		}
	}
	aside := 0
	for range 30 {
		for _, h := range s.records(Poll{Max: 1}) {
			if f := s.do(GiveUp{Ask: s.ask(), Offset: h.Offset}).Refusal; f != nil {
				expect(t, "no room", refused(f), "limit_exceeded fatal")
				aside++
				for n := uint32(1); n <= 5; n++ {
					s.do(Nack{Ask: s.ask(), Conn: 1, Offset: h.Offset, HasDelay: true})
					if n < 5 {
						expect(t, "again", told(s.records(Poll{Max: 1})), fmt.Sprintf("%d:%d", h.Offset, n+1))
					}
				}
			}
		}
	}
	i := s.core.Info()
	if aside != heldBackPlay || i.Delayed != aside || i.Dead < FreeKeys-1 || i.Dead > FreeKeys+2 {
		t.Fatalf("%d are put aside: %+v", aside, i)
	}
	dead := i.Dead
	verifyKept(t, c, list)
	hoarder.do(Seek{Ask: hoarder.ask(), Start: at(400)})
	hear(list)
	s.wait(s.opts.ParkedRetry)
	expect(t, "listed", s.core.Info().Dead, dead+aside)
	expect(t, "and new ones come", len(s.records(Poll{Max: 4 * FreeKeys})), 4*FreeKeys)
	verifyKept(t, c, list)
}

// What a restart finds is counted, however much it is, and nothing is refused or comes again for it: a smaller setting lets no group fail.
func TestWhatARestartFindsIsTakenAboveTheBudget(t *testing.T) {
	_, list := keepersOf(1000, 600)
	s := list[0]
	left := odd(s, 600)
	c := NewKept(ClaimsOf(4 * (claimStep + 1) * KeptUnit)) // of a smaller node
	s.kept, s.keeper = c, nil
	s.crash([logCount]bool{})
	if c.Used() < 4*c.Limits().Node {
		t.Fatalf("%d bytes are used", c.Used())
	}
	verifyKept(t, c, list)
	for len(left) > 0 {
		got := s.records(Poll{Max: 100})
		if len(got) != 1 || got[0].Offset != left[0] {
			t.Fatalf("handed out: %s", told(got))
		}
		expect(t, "ack", refused(s.ack(left[0])), "ok")
		left = left[1:]
		verifyKept(t, c, list)
	}
	expect(t, "done", s.core.Info().Cursor, 600)
	expect(t, "what is left", c.Used(), int64(Kept("g0", 0))*KeptUnit)
}

// Names are what clients choose: a long one counts with each key.
func TestLongNamesCountWithEachKey(t *testing.T) {
	long := string(make([]byte, MaxGroupBytes))
	beyond := func(group string) int { return (Kept(group, FreeKeys+100) - Kept(group, 0)) * KeptUnit }
	if a, b := beyond("g"), beyond(long); a < 100*KeptKeyBytes || b < 100*(KeptKeyBytes+MaxGroupBytes) {
		t.Errorf("100 keys are counted with %d bytes, and of a long name with %d", a, b)
	}
	expect(t, "free ones", Kept("g", FreeKeys), Kept("g", 0))
}
