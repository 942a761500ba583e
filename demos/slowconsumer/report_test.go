package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// good is a report in which everything held.
func good(p policy) report {
	r := report{policy: p, rate: 100, bound: 100, heapBefore: 1 << 20, published: 1000, counted: 40}
	for _, ph := range phases() {
		r.rows = append(r.rows, row{phase: ph.name, published: 100, slow: 100, others: 100, held: 100, heap: 2 << 20})
	}
	r.total = []tally{{received: 960, lost: 40, next: 1000}, {received: 1000, next: 1000}, {received: 1000, next: 1000}}
	if p == block {
		r.total[0], r.counted = tally{received: 1000, next: 1000}, 0
		r.rows[1].others, r.rows[3].others = 0, 20 // everybody waits: that is the policy
	}
	return r
}

// mission 217, mission 219
func TestAReportHoldsOnlyWhenEveryClaimDoes(t *testing.T) {
	for _, p := range []policy{dropNew, block} {
		if broken := good(p).broken(); len(broken) > 0 {
			t.Errorf("%s: a good report is called broken: %q", p, broken)
		}
	}
	for name, c := range map[string]struct {
		policy policy
		spoil  func(*report)
		want   string
	}{
		"the publisher is held":        {dropNew, func(r *report) { r.rows[1].published, r.rows[1].others, r.rows[1].withheld = 80, 80, 20 }, "80 % of their rate"},
		"others slow down":             {dropNew, func(r *report) { r.rows[1].others = 84 }, `84 % of their rate while "one stops"`},
		"others stop":                  {dropNew, func(r *report) { r.rows[3].others = 0 }, `0 % of their rate`},
		"nobody ever read":             {dropNew, func(r *report) { r.rows[0].others, r.rows[1].others = 0, 0 }, "of their rate"},
		"the broker holds for good":    {dropNew, func(r *report) { r.rows[1].published, r.rows[1].others, r.rows[1].withheld = 0, 0, 100 }, "0 % of their rate"},
		"others lose":                  {dropNew, func(r *report) { r.rows[2].otherLost = 1 }, `lost 1 records while "it reads again"`},
		"others lose in the end":       {dropNew, func(r *report) { r.total[2].lost = 1 }, "subscriber 3 kept up and lost 1"},
		"the slow one loses, blocking": {block, func(r *report) { r.total[0].lost = 1 }, "slow subscriber lost 1 records under block"},
		"others lose, blocking":        {block, func(r *report) { r.rows[1].otherLost = 2 }, "lost 2 records"},
		"memory":                       {dropNew, func(r *report) { r.rows[1].held = 101 }, "its bound is"},
		"memory, blocking":             {block, func(r *report) { r.rows[3].held = 101 }, "its bound is"},
		"memory of the process":        {dropNew, func(r *report) { r.rows[1].heap = 1<<20 + 100 + heapAllowance + 1 }, "the process held"},
		"the end was not seen":         {block, func(r *report) { r.total[1].next = 999 }, "subscriber 2 has seen the end of 999"},
		"losses nobody counted":        {dropNew, func(r *report) { r.counted = 39 }, "miss 40 records, and the broker counted 39"},
	} {
		r := good(c.policy)
		c.spoil(&r)
		if broken := strings.Join(r.broken(), "\n"); !strings.Contains(broken, c.want) {
			t.Errorf("%s: says %q, want %q", name, broken, c.want)
		}
	}
}

func TestARowIsComputedFromItsFirstSampleAndTheNewest(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	from := sample{at: begin, published: 100, waited: time.Second, readers: []tally{{100, 0, 100}, {100, 0, 100}, {90, 10, 100}}}
	now := sample{at: begin.Add(2 * time.Second), published: 300, held: 7, heap: 9, waited: 1500 * time.Millisecond,
		readers: []tally{{110, 190, 300}, {300, 0, 300}, {190, 15, 205}}}
	r := row{phase: "x", held: 8}
	r.update(from, now, 200)
	if want := (row{phase: "x", published: 100, withheld: 50, slow: 5, slowLost: 190, others: 50, otherLost: 5, held: 8, heap: 9}); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
	before := r
	if r.update(from, from, 200); r != before {
		t.Error("no time passed, and the row changed")
	}
}

func TestAPhaseIsOverWhenThoseThatKeepUpHaveAllOfIt(t *testing.T) {
	s := sample{readers: []tally{{next: 1}, {next: 100}, {next: 99}}}
	if s.reached(100) || !s.reached(99) {
		t.Error("the first does not count, and all others do")
	}
}

func TestABusyMachineIsNeitherABrokenClaimNorOneThatHolds(t *testing.T) {
	r := good(dropNew)
	r.rows[1].published, r.rows[1].others = 60, 20
	var out bytes.Buffer
	if v := newScreen(&out, dropNew, false).verdict(r); v != unclear || !strings.Contains(out.String(), "\nUNCLEAR this machine published 60 of 100") {
		t.Errorf("verdict %d: %s", v, &out)
	}
	r.rows[1].otherLost = 1 // what needs no rates is judged all the same
	if v := newScreen(&out, dropNew, false).verdict(r); v != broken {
		t.Errorf("verdict %d after a loss", v)
	}
	r.rows[1].published, r.rows[1].others, r.rows[1].otherLost = 90, 90, 0 // publisher and subscribers were a little slow together
	if v := newScreen(&out, dropNew, false).verdict(r); v != holds {
		t.Errorf("verdict %d at 90 %% of the load", v)
	}
}

func TestAPublisherIsFullWhenTheWindowOrTheBytesAreUsedUp(t *testing.T) {
	for _, c := range []struct{ payload, batch, most int }{{256, 10, 256}, {1 << 20, 1, 3}, {8 << 20, 1, 1}} {
		p := publisher{o: options{payload: c.payload, batch: c.batch}}
		p.sent.Store(uint64(c.most*c.batch - 1))
		if p.full() {
			t.Errorf("%d records of %d bytes under way are full", p.sent.Load(), c.payload)
		}
		p.sent.Add(1)
		if !p.full() {
			t.Errorf("%d records of %d bytes under way are not full", p.sent.Load(), c.payload)
		}
		p.acked.Store(uint64(c.batch))
		if p.full() {
			t.Errorf("one batch of %d bytes was acknowledged, and there is still no room", c.payload)
		}
	}
	var p publisher
	now := time.Now()
	p.waited.Store(int64(time.Second))
	p.since.Store(now.Add(-time.Second).UnixNano())
	if d := p.held(now); d != 2*time.Second {
		t.Errorf("held for %v, want what was and what lasts", d)
	}
}

func TestOffATerminalEachPhaseIsALineAndNothingMoves(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, dropNew, false)
	r := good(dropNew)
	for i, x := range r.rows {
		s.live(r.rows[:i], x)
		s.done(r.rows[:i+1])
	}
	if v := s.verdict(r); v != holds {
		t.Errorf("the verdict on a good report is %d", v)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2+len(r.rows)+1 || strings.Contains(out.String(), "\x1b") || !strings.HasPrefix(lines[len(lines)-1], "holds ") {
		t.Errorf("printed %q", out.String())
	}
}

func TestOnATerminalTheTableIsDrawnOverItself(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, block, true)
	r := good(block)
	s.live(r.rows[:1], r.rows[1])
	s.live(r.rows[:1], r.rows[1]) // too soon: not drawn
	s.done(r.rows[:2])
	if n := strings.Count(out.String(), "\x1b[2A"); n != 1 {
		t.Errorf("went up over two rows %d times, want once: %q", n, out.String())
	}
	if n := strings.Count(out.String(), r.rows[1].phase); n != 2 {
		t.Errorf("the phase was drawn %d times, want 2: %q", n, out.String())
	}
	r.total[0].lost++
	if v := s.verdict(r); v != broken || !strings.Contains(out.String(), "BROKEN") {
		t.Errorf("the verdict on a broken report is %d", v)
	}
}

func TestAWrongFlagIsNamedAndNothingIsStarted(t *testing.T) {
	for args, want := range map[string]string{
		"--rate=0":              "--rate: 0 is not between",
		"--subscribers=1":       "--subscribers: 1",
		"--payload=7":           "--payload: 7",
		"--batch=0":             "--batch: 0",
		"--others-capacity=-1":  "--others-capacity: -1",
		"--queue-capacity=9999": "--queue-capacity: 9999",
		"--duration=1ms":        "--duration: 1 ms",
		"--policy=drop_all":     `"drop_all" is neither`,
		"--no-such":             "no-such",
		"more":                  `"more" is not understood`,
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{args}, &out, &errs, false); code != 2 || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, %q; want 2 and %q", args, code, &out, &errs, want)
		}
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &out, &errs, false); code != 0 || !strings.Contains(errs.String(), "-queue-capacity") {
		t.Errorf("--help: exit code %d, %q", code, &errs)
	}
}

func TestFlagsHaveTheDocumentedDefaults(t *testing.T) {
	o, err := parseOptions(nil, new(bytes.Buffer))
	want := options{rate: 20000, subscribers: 3, payload: 256, batch: 40, queueCapacity: 512, duration: 5 * time.Second}
	if got := o; err != nil || len(o.policies) != 2 || got.headline() != want.headline() || got.plain {
		t.Errorf("%+v, %v", o, err)
	}
}
