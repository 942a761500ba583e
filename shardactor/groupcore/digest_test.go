package groupcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
)

// stepped steps inputs on a new core, each a second after the one before, and takes and completes nothing but what they say.
func stepped(opts Options, inputs ...Input) *Core {
	c := New(opts, 0, Loaded{Tail: Tail{End: 9, Committed: 9}})
	for i, in := range inputs {
		c.Step(time.Duration(i)*time.Second, in)
		c.Take()
	}
	return c
}

func pollOf(change func(*Poll)) *Poll {
	p := &Poll{Conn: 1, Max: 2}
	change(p)
	return p
}

// Each of these differs from the others in one thing, which the digest has to show.
func TestEveryPieceOfStateIsInTheDigest(t *testing.T) {
	plain := func() *Poll { return pollOf(func(*Poll) {}) }
	both := Read{Poll: 1, Found: []bool{true, true}}
	claimed := func(more ...Input) []Input { return append([]Input{plain(), both}, more...) }
	settled := func(more ...Input) []Input { return claimed(append([]Input{Persisted{Seq: 1}}, more...)...) }
	f := wire.Refuse(wire.CodeNotLeader, "elsewhere")
	stories := map[string][]Input{
		"nothing":             {},
		"a later moment":      {Wake{}, Wake{}},
		"end":                 {Tail{End: 10, Committed: 9}},
		"committed":           {Tail{End: 10, Committed: 10}},
		"base":                {Trimmed{Base: 1}},
		"being read for":      {plain()},
		"for more":            {pollOf(func(p *Poll) { p.Max = 3 })},
		"on another":          {pollOf(func(p *Poll) { p.Conn = 2 })},
		"with another place":  {pollOf(func(p *Poll) { p.Token = 1 })},
		"for longer":          {pollOf(func(p *Poll) { p.Visibility = time.Minute })},
		"waiting as well":     {plain(), pollOf(func(p *Poll) { p.Max = 100; p.Wait = 9 * time.Second }), pollOf(func(p *Poll) { p.Wait = 9 * time.Second })},
		"waiting longer":      {plain(), pollOf(func(p *Poll) { p.Max = 100; p.Wait = 9 * time.Second }), pollOf(func(p *Poll) { p.Wait = 8 * time.Second })},
		"claimed":             claimed(),
		"one of two read":     {plain(), Read{Poll: 1, Found: []bool{true}}},
		"a hole":              {plain(), Read{Poll: 1, Found: []bool{false, true}}},
		"another hole":        {plain(), Read{Poll: 1, Found: []bool{true, false}}},
		"given back":          claimed(Nack{Offset: 0}),
		"the other":           claimed(Nack{Offset: 1}),
		"delayed":             claimed(Nack{Offset: 0, HasDelay: true, Delay: time.Second}),
		"delayed longer":      claimed(Nack{Offset: 0, HasDelay: true, Delay: time.Minute}),
		"extended":            claimed(Extend{Conn: 1, Offset: 0, Attempts: 1, Extend: time.Hour}),
		"gone":                claimed(Gone{Conn: 1}),
		"written":             claimed(Persisted{Seq: 1}),
		"failed":              claimed(Failed{Seq: 1}),
		"acked":               settled(&Ack{Offset: 0}),
		"acked above":         settled(&Ack{Offset: 1}),
		"acked for another":   settled(&Ack{Ask: Ask{Token: 5}, Offset: 0}),
		"acked and written":   settled(&Ack{Offset: 0}, Persisted{Seq: 2}),
		"given up":            settled(GiveUp{Offset: 0}),
		"listed":              settled(GiveUp{Offset: 0}, Persisted{Seq: 2}),
		"listed and finished": settled(GiveUp{Offset: 0}, Persisted{Seq: 2}, Persisted{Seq: 3}),
		"redriven":            settled(GiveUp{Offset: 0}, Persisted{Seq: 2}, Redrive{Offset: 0}),
		"discarded":           settled(GiveUp{Offset: 0}, Persisted{Seq: 2}, Discard{Offset: 0}),
		"moved":               {Seek{Start: at(3)}},
		"moved elsewhere":     {Seek{Start: at(4)}},
		"moved to an end":     {Seek{Start: wire.Start{Kind: wire.StartLatest}}},
		"created and removed": {plain(), Remove{}},
		"removed and moved":   {plain(), Remove{}, Seek{Start: at(3)}},
		"stopped":             {Stop{Refusal: &f}},
		"reserved":            {pollOf(func(p *Poll) { p.Member = "m" }), both, pollOf(func(p *Poll) { p.Member, p.Conn, p.Reclaim = "m", 2, true })},
	}
	seen := map[uint64]string{}
	for name, story := range stories {
		c, again := stepped(small(), story...), stepped(small(), story...)
		d := c.Digest()
		if again.Digest() != d {
			t.Errorf("%s: two cores that were stepped alike differ", name)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("%q has the digest of %q", name, other)
		}
		seen[d] = name
		if err := c.CheckAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACoreSaysWhetherPollsWait(t *testing.T) {
	s := newShell(small(), 0)
	expect(t, "nobody", s.core.Waiting(), false)
	s.poll(Poll{Max: 1, Wait: time.Second})
	expect(t, "somebody", s.core.Waiting(), true)
	s.publish(1)
	expect(t, "served", s.core.Waiting(), false)
}

// Broken on purpose, each invariant is noticed.
func TestEveryInvariantIsNoticedWhenItBreaks(t *testing.T) {
	for name, spoil := range map[string]func(*Core){
		"cursor above next":     func(c *Core) { c.next = c.cursor - 1 },
		"cursor below base":     func(c *Core) { c.base = c.cursor + 1 },
		"lost record":           func(c *Core) { delete(c.play.byOffset, 5) },
		"ranges touch":          func(c *Core) { c.settled.insert(0, span{from: c.cursor, to: c.cursor + 1}) },
		"ranges without number": func(c *Core) { c.settled.spans = make([]span, 10_000) },
		"a hole in play":        func(c *Core) { c.next++ },
		"counts":                func(c *Core) { c.play.counts[claimed]++ },
		"owed counts":           func(c *Core) { c.play.counts[owed]++ },
		"redriven":              func(c *Core) { c.play.redriven++ },
		"one record redriven":   func(c *Core) { c.play.all[0].redriven = true },
		"held by nobody":        func(c *Core) { c.play.byOffset[5].conn = nil },
		"two places":            func(c *Core) { c.play.all[0].slot = 1 },
		"wrong heap":            func(c *Core) { c.play.byOffset[5].place = 0 },
		"finished in play":      func(c *Core) { c.settled.insert(1, span{from: 5, to: 6}) },
		"run is gone":           func(c *Core) { clear(c.play.runs) },
		"polls":                 func(c *Core) { c.polls++ },
		"a poll in no ring":     func(c *Core) { c.waiting.remove(c.waiting.head.first) },
		"the last in no ring":   func(c *Core) { c.waiting.head = nil },
		"a poll of another":     func(c *Core) { c.waiting.head.first.worker = &worker{} },
		"waits for nothing":     func(c *Core) { c.backlog.logs[LogCursors].now = make([]waiter, 1) },
		"dead out of order":     func(c *Core) { c.dead.list = append(c.dead.list, c.dead.list[0]) },
	} {
		s := newShell(small(), 7)
		s.poll(Poll{Max: 7})
		s.ack(0)
		s.ack(3)
		s.do(GiveUp{Ask: s.ask(), Offset: 1})
		s.poll(Poll{Max: 1, Wait: time.Second})
		s.poll(Poll{Max: 1, Wait: time.Second})
		if err := s.core.CheckAll(); err != nil {
			t.Fatal(err)
		}
		if spoil(s.core); s.core.CheckAll() == nil {
			t.Errorf("%s: nothing is noticed", name)
		}
	}
	s := newShell(small(), 1)
	s.core.settled.insert(0, span{from: 7, to: 8})
	s.core.exists, s.core.base = true, 3
	expect(t, "a step notices", panics(func() { s.core.Step(0, Wake{}) }), true)
}
