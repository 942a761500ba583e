package groupcore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
	"pgregory.net/rapid"
)

// pass hands grants on, to be looked at later.
func pass(of Budget, list []Grant) {
	for _, g := range list {
		s := g.Owner.(*shell)
		s.given = append(s.given, Granted{Of: of, Records: g.Records})
	}
}

// Whatever groups of whatever tenants ask for, give back and leave behind: no more is given than there is, the last share only to tenants inside
// theirs, nobody waits while there is room, and groups of a tenant get it in the order they came.
func TestClaimsAreNeverGivenTwiceAndNobodyWaitsForRoomThatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const share, total = 2 * claimStep, 6 * claimStep
		c := NewClaims(ClaimLimits{Tenant: share * ClaimBytes, Node: total * ClaimBytes})
		type group struct {
			tenant string
			h      *Holder
			held   int
			waits  int // since; 0: it does not
		}
		var groups []*group
		turn := 0
		of := func(tenant string) (n int) {
			for _, g := range groups {
				if g.tenant == tenant {
					n += g.held
				}
			}
			return n
		}
		used := func() (n int) {
			for _, g := range groups {
				n += g.held
			}
			return n
		}
		grants := func(list []Grant) {
			for _, x := range list {
				g := x.Owner.(*group)
				for _, o := range groups {
					if o.tenant == g.tenant && o.waits > 0 && o.waits < g.waits {
						t.Fatal("one that came later is served before")
					}
				}
				if g.waits == 0 || x.Records < 1 {
					t.Fatalf("%d are given to one that waits since %d", x.Records, g.waits)
				}
				g.waits, g.held = 0, g.held+x.Records
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			what := rapid.SampledFrom([]string{"join", "enter", "want", "want", "want", "must", "spare", "spare", "keep", "leave"}).Draw(t, "what")
			if what == "join" || what == "enter" || len(groups) == 0 {
				g := &group{tenant: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tenant")}
				if n := rapid.IntRange(1, claimStep).Draw(t, "at once"); what == "enter" {
					mine, all := of(g.tenant), used()
					fits := all+n <= total && (mine+n <= share || all+n <= total-share)
					if g.h = c.Enter(g.tenant, g, n); (g.h != nil) != fits {
						t.Fatalf("%d are to be had by a tenant with %d, and %d are given already: %v", n, mine, all, g.h != nil)
					}
					if g.h == nil {
						continue
					}
					g.held = n
				} else {
					g.h = c.Join(g.tenant, g)
				}
				groups = append(groups, g)
				continue
			}
			g := groups[rapid.IntRange(0, len(groups)-1).Draw(t, "group")]
			switch what {
			case "want", "must":
				records, must := rapid.IntRange(1, 3*claimStep).Draw(t, "records"), 0
				if what == "must" {
					records, must = 0, rapid.IntRange(1, claimStep).Draw(t, "must")
				}
				mine, all := of(g.tenant), used()
				n, later := c.Want(g.h, records, must)
				switch {
				case n < must || n > must+records || !later && n < must+records:
					t.Fatalf("%d are given of %d, and %d that must be: later %v", n, records, must, later)
				case must == 0 && n > 0 && all+n > total, must == 0 && n > 0 && mine+n > share && all+n > total-share:
					t.Fatalf("%d are given to a tenant with %d, and %d are given already", n, mine, all)
				case must == 0 && n == 0 && mine+claimStep <= share && all+claimStep <= total:
					t.Fatalf("nothing is given to a tenant with %d, and only %d are given", mine, all)
				}
				g.held += n
				if turn++; later && g.waits == 0 {
					g.waits = turn
				}
			case "spare":
				n := rapid.IntRange(0, g.held).Draw(t, "spare")
				g.held -= n
				grants(c.Spare(g.h, n))
			case "keep":
				n := rapid.IntRange(0, 2*claimStep).Draw(t, "exactly")
				g.held, g.waits = n, 0
				grants(c.Keep(g.h, n))
				if held, _ := c.Own(g.h, g); held != n {
					t.Fatalf("it does not hold %d", n)
				}
			case "leave":
				groups = slices.DeleteFunc(groups, func(o *group) bool { return o == g })
				grants(c.Leave(g.h))
			}
			if c.Used() != int64(used())*ClaimBytes {
				t.Fatalf("%d bytes are used, %d records are held", c.Used(), used())
			}
			if err := c.check(); err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range slices.Clone(groups) {
			groups = groups[1:]
			grants(c.Leave(g.h))
		}
		if c.Used() != 0 || len(c.tenants) != 0 || c.turn != nil {
			t.Fatalf("%d bytes and %d tenants are left", c.Used(), len(c.tenants))
		}
	})
}

// node is a few groups with a small budget between them.
func nodeOf(budget int, groups ...int) (*Claims, []*shell) {
	c := NewClaims(ClaimLimits{Tenant: int64(budget) * ClaimBytes, Node: int64(budget) * ClaimBytes})
	var list []*shell
	for i, records := range groups {
		o := small()
		o.Group, o.Rationed, o.MaxInFlight, o.Visibility = fmt.Sprint("g", i), true, 10_000, time.Hour
		s := newShell(small(), records)
		s.opts, s.claims = o, c
		s.start()
		list = append(list, s)
	}
	return c, list
}

// hear has groups look at what they were given.
func hear(list []*shell) {
	for again := true; again; {
		again = false
		for _, s := range list {
			given := s.given
			s.given = nil
			for _, g := range given {
				again = true
				s.step(g)
			}
		}
	}
}

func verifyClaims(t interface{ Fatal(...any) }, c *Claims, list []*shell) {
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	for i, s := range list {
		if n, granted := len(s.core.play.all), s.core.ration.granted; n > FreeClaims+granted {
			t.Fatal(fmt.Sprintf("group %d has %d records in play, and room for %d beside %d", i, n, granted, FreeClaims))
		} else if granted > s.holder.held {
			t.Fatal(fmt.Sprintf("group %d believes to have room for %d, and has for %d", i, granted, s.holder.held))
		}
	}
}

// A node is filled: what its groups have in play is bounded in bytes, whatever they ask for.
func TestWhatAllGroupsHaveInPlayIsBoundedInBytes(t *testing.T) {
	const budget = 4 * claimStep
	c, list := nodeOf(budget, 2000, 2000, 2000)
	for range 3 {
		for _, s := range list {
			s.poll(Poll{Max: 1000, Wait: time.Minute})
		}
	}
	inPlay := 0
	for _, s := range list {
		inPlay += len(s.core.play.all)
	}
	if most := budget + len(list)*FreeClaims; inPlay > most || inPlay < budget {
		t.Errorf("%d are in play, and %d may be", inPlay, most)
	}
	expect(t, "bytes", c.Used(), c.Limits().Node)
	verifyClaims(t, c, list)
}

// A group never waits for others to settle: what it may always have in play goes round and round, while another holds all there is.
func TestAGroupIsWorkedOffWhileAnotherHoldsAllThereIs(t *testing.T) {
	c, list := nodeOf(4*claimStep, 2000, 300)
	hoarder, other := list[0], list[1]
	hoarder.poll(Poll{Max: 1000})
	for settled := 0; settled < 300; {
		got := other.records(Poll{Max: 100})
		if len(got) != min(FreeClaims, 300-settled) {
			t.Fatalf("%d are handed out after %d", len(got), settled)
		}
		for _, h := range got {
			expect(t, "ack", refused(other.ack(h.Offset)), "ok")
			settled++
		}
		verifyClaims(t, c, list)
	}
	expect(t, "cursor", other.core.Info().Cursor, 300)
}

// A poll that waits for room is answered with more as soon as another group has settled, and one that does not wait counts as capped.
func TestAPollThatFoundNoRoomGetsItWhenOthersHaveSettled(t *testing.T) {
	c, list := nodeOf(4*claimStep, 2000, 2000)
	hoarder, other := list[0], list[1]
	held := hoarder.records(Poll{Max: 1000})
	other.records(Poll{Max: 100})
	expect(t, "nothing more", told(other.records(Poll{Max: 100})), "")
	expect(t, "capped", other.core.Counts().PollsCapped, 1)
	waits := other.poll(Poll{Max: 100, Wait: time.Minute})
	for i, h := range held {
		hoarder.ack(h.Offset)
		hear(list)
		verifyClaims(t, c, list)
		if waits.times > 0 && i < claimStep/2 {
			t.Fatalf("there was room after %d", i)
		}
	}
	if waits.times != 1 || len(waits.deliver.Records) < claimStep {
		t.Fatalf("the poll that waited has got %+v", waits)
	}
	hoarder.settle()
	expect(t, "the hoarder's room is free", hoarder.core.ration.granted, 0)
}

// What the logs bring along is counted, however much it is; nothing new is handed out beside it, and it is worked off.
func TestWhatARestartBringsAlongIsCountedAndWorkedOff(t *testing.T) {
	_, list := nodeOf(40*claimStep, 500)
	s := list[0]
	s.poll(Poll{Max: 200})
	s.poll(Poll{Max: 200})
	s.claims = NewClaims(ClaimLimits{Tenant: claimStep * ClaimBytes, Node: claimStep * ClaimBytes}) // of a smaller node
	c := s.claims
	s.holder = nil
	s.crash([logCount]bool{})
	expect(t, "counted", c.Used(), int64(400-FreeClaims)*ClaimBytes)
	settled := 0
	for settled < 500 {
		got := s.records(Poll{Max: 1000})
		if len(got) == 0 || settled < 400-claimStep-FreeClaims && (len(got) > 1 || got[0].Attempts != 2) {
			t.Fatalf("after %d: %s", settled, told(got))
		}
		for _, h := range got {
			s.ack(h.Offset)
			settled++
		}
		hear(list)
		verifyClaims(t, c, list)
	}
	expect(t, "nothing is used", c.Used(), 0)
}

// Dead letters are handed out again only as far as there is room.
func TestRedrivesAreBoundedByTheNodeToo(t *testing.T) {
	c, list := nodeOf(claimStep, 400, 400)
	hoarder, s := list[0], list[1]
	for range 20 {
		for _, h := range s.records(Poll{Max: 20}) {
			s.do(GiveUp{Ask: s.ask(), Offset: h.Offset})
		}
	}
	hoarder.records(Poll{Max: 400})
	taken := 0
	for _, o := range s.deads() {
		if f := s.do(Redrive{Ask: s.ask(), Offset: o}).Refusal; f == nil {
			taken++
		} else {
			expect(t, "refused", refused(f), "overloaded retry_after")
		}
	}
	if taken < FreeClaims || taken > FreeClaims+1 {
		t.Errorf("%d are redriven", taken)
	}
	for range taken {
		for _, h := range s.records(Poll{Max: 1}) {
			s.ack(h.Offset)
		}
	}
	expect(t, "there is room again", refused(s.do(Redrive{Ask: s.ask(), Offset: s.deads()[0]}).Refusal), "ok")
	verifyClaims(t, c, list)
}

// Groups that share a node's room, at random: the room is never exceeded, nothing is lost, and everything is finished when workers come for it.
func TestGroupsThatShareRoomFinishEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, list := nodeOf(2*claimStep, 150, 150, 150)
		hands := make([][]id.Offset, len(list))
		deliver := func(i int, g *got) {
			if g.deliver == nil {
				t.Fatal("a poll that does not wait is not answered")
			}
			for _, h := range g.deliver.Records {
				hands[i] = append(hands[i], h.Offset)
			}
		}
		act := func(i int, what string) {
			s := list[i]
			switch what {
			case "poll":
				deliver(i, s.poll(Poll{Max: uint32(rapid.IntRange(1, 200).Draw(t, "most"))}))
			case "ack":
				for n := min(len(hands[i]), rapid.IntRange(1, 100).Draw(t, "acks")); n > 0; n-- {
					s.ack(hands[i][0])
					hands[i] = hands[i][1:]
				}
			case "nack", "give up":
				if len(hands[i]) == 0 {
					return
				}
				var in Input = GiveUp{Ask: s.ask(), Offset: hands[i][0]}
				if what == "nack" {
					in = Nack{Ask: s.ask(), Conn: 1, Offset: hands[i][0]}
				}
				s.do(in)
				hands[i] = hands[i][1:]
			case "redrive":
				for _, o := range s.deads() {
					s.do(Redrive{Ask: s.ask(), Offset: o})
				}
			case "seek", "remove":
				var in Input = Remove{Ask: s.ask()}
				if what == "seek" {
					in = Seek{Ask: s.ask(), Start: at(id.Offset(rapid.IntRange(0, 150).Draw(t, "to")))}
				}
				s.do(in)
				hands[i] = nil
			case "lapse":
				s.wait(time.Hour)
			case "crash":
				s.crash([logCount]bool{})
				hands[i] = nil
			}
			if rapid.Bool().Draw(t, "heard") {
				hear(list)
			}
			verifyClaims(t, c, list)
		}
		actions := []string{"poll", "poll", "poll", "ack", "ack", "nack", "give up", "redrive", "seek", "remove", "lapse", "crash"}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			act(rapid.IntRange(0, len(list)-1).Draw(t, "group"), rapid.SampledFrom(actions).Draw(t, "what"))
		}
		for i, s := range list {
			for rounds := 0; s.core.Info().Cursor < 150 || len(s.core.play.all) > 0; rounds++ {
				s.wait(time.Minute) // what is delayed is to be had again
				if rounds > 600 {
					t.Fatalf("group %d gets stuck at %+v", i, s.core.Info())
				}
				deliver(i, s.poll(Poll{Max: 100}))
				for _, o := range hands[i] {
					s.ack(o)
				}
				hands[i] = nil
				hear(list)
				verifyClaims(t, c, list)
			}
		}
		if c.Used() != 0 {
			t.Fatalf("%d bytes are used when everything is finished", c.Used())
		}
	})
}

// A group that had a great deal in flight keeps no memory of that: what it gives back is free.
func TestAGroupThatHadMuchInFlightKeepsNoRoomForIt(t *testing.T) {
	_, list := nodeOf(20_000, 1500)
	s := list[0]
	for range 2 {
		s.poll(Poll{Max: 1000})
	}
	for o := range id.Offset(1500) {
		s.put(&Ack{Ask: s.ask(), Offset: 1499 - o})
	}
	s.take()
	p := &s.core.play
	for what, n := range map[string]int{
		"free records": len(p.free), "records": cap(p.all), "timers": cap(p.timers.items), "ranges": cap(s.core.settled.spans), "peak": p.peak,
	} {
		if n > slimAbove {
			t.Errorf("%d %s are kept", n, what)
		}
	}
	expect(t, "granted", s.core.ration.granted, 0)
}

// Expected: a little more than BenchmarkPoll64AckEach: one question and one answer for each poll, and as much on the way back.
func BenchmarkPoll64AckEachWithinABudget(b *testing.B) {
	opts := DefaultOptions("orders")
	opts.Rationed, opts.Counted = true, true
	c, claims, kept := New(opts, 0, Loaded{}), NewClaims(DefaultClaims()), NewKept(DefaultKept())
	h, keeper := claims.Join("t", nil), kept.Join("t", nil)
	_, p, found := newWork()
	ack, next, handed := Ack{}, id.Offset(0), 0
	step := func(in Input) {
		c.Step(0, in)
		for w, ok := c.Wants(); ok; w, ok = c.Wants() {
			budget, holder := claims, h
			if w.Of == BudgetKept {
				budget, holder = kept, keeper
			}
			n, later := budget.Want(holder, w.Records, w.Must)
			c.Step(0, Granted{Of: w.Of, Records: n, Later: later})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		next += 64
		step(Tail{End: next, Committed: next})
		step(p)
		for effects := c.Take(); len(effects) > 0; effects = c.Take() {
			for _, e := range effects {
				switch e := e.(type) {
				case *Fetch:
					step(Read{Poll: e.Poll, Found: found[:len(e.Offsets)]})
				case *Persist:
					step(Persisted{Seq: e.Seq})
				case Spare:
					if e.Of == BudgetKept {
						kept.Spare(keeper, e.Records)
					} else {
						claims.Spare(h, e.Records)
					}
				case *Deliver:
					for _, r := range e.Records {
						ack.Offset = r.Offset
						step(&ack)
						handed++
					}
				}
			}
		}
	}
	if handed != int(next) || claims.Used() != 0 {
		b.Fatalf("%d of %d are handed out, %d bytes are used", handed, next, claims.Used())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(handed), "ns/record")
}
