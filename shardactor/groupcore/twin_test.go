package groupcore

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire/id"
	"pgregory.net/rapid"
)

// twin is a group as plainly as it can be told: one struct for each offset, and loops over all of them.
type twin struct {
	opts     Options
	now      time.Duration
	base     int
	known    int // what lies below may have been handed out before a restart
	exists   bool
	offsets  []twinOffset
	listed   []bool // dead letters
	redriven []bool // dead letters that are owed
}

type twinOffset struct {
	hole     bool
	unfit    bool // no answer can hold it
	done     bool
	returned bool   // owed, and not handed out since it was chosen
	in       string // "", "claimed", "delayed" or "owed"
	until    time.Duration
	number   uint32
	failures uint32
	written  uint32 // failures that the log knows of
}

func newTwin(opts Options, records int) *twin {
	w := &twin{opts: opts, known: records}
	w.publish(records)
	return w
}

func (w *twin) publish(n int) {
	w.offsets = append(w.offsets, make([]twinOffset, n)...)
	w.listed = append(w.listed, make([]bool, n)...)
	w.redriven = append(w.redriven, make([]bool, n)...)
}

func (w *twin) count(in string) (n int) {
	for _, x := range w.offsets {
		if x.in == in {
			n++
		}
	}
	return n
}

func (w *twin) pass(d time.Duration) {
	w.now += d
	for o := range w.offsets {
		x := &w.offsets[o]
		if x.in == "claimed" && x.until <= w.now {
			w.fail(o, x.until+w.opts.backOff(x.failures+1))
		}
		if x.in == "delayed" && x.until <= w.now {
			x.in = "owed"
		}
	}
}

func (w *twin) fail(o int, due time.Duration) {
	x := &w.offsets[o]
	switch x.failures++; {
	case x.failures >= w.opts.MaxAttempts:
		w.giveUp(o)
	case due > w.now:
		x.in, x.until = "delayed", due
	default:
		x.in = "owed"
	}
}

func (w *twin) finish(o int) {
	w.offsets[o] = twinOffset{done: true, hole: w.offsets[o].hole, unfit: w.offsets[o].unfit}
}

func (w *twin) giveUp(o int) {
	w.finish(o)
	w.listed[o], w.redriven[o] = true, false
}

func (w *twin) cursor() int {
	if !w.exists {
		return 0
	}
	for o, x := range w.offsets {
		if !x.done {
			return o
		}
	}
	return len(w.offsets)
}

func (w *twin) create(at int) {
	w.exists, w.known = true, 0
	for o := range w.offsets {
		w.offsets[o] = twinOffset{done: o < at, hole: w.offsets[o].hole, unfit: w.offsets[o].unfit}
	}
}

// poll is what a poll for so many records gets.
func (w *twin) poll(most int) string {
	if !w.exists {
		w.create(w.base)
	}
	listing := [2]int{} // records that the last two reads gave up on: they count until their listing is durable
	for {
		batch := w.choose(most, listing[0]+listing[1])
		if len(batch) == 0 {
			return ""
		}
		handed, gaveUp := w.read(batch)
		if len(handed) > 0 {
			return w.hand(handed)
		}
		listing = [2]int{gaveUp, listing[0]}
	}
}

// choose is what a poll asks to be read: a record that was handed out before alone, or others, those first that were asked for before.
func (w *twin) choose(most, listing int) (batch []int) {
	for len(batch) < most && w.count("claimed")+w.count("delayed")+listing+len(batch) < w.opts.MaxInFlight {
		o := slices.IndexFunc(w.offsets, func(x twinOffset) bool { return x.in == "owed" })
		if o >= 0 && !w.offsets[o].returned {
			if len(batch) > 0 {
				break
			}
			return []int{o}
		}
		if o < 0 {
			o = slices.IndexFunc(w.offsets, func(x twinOffset) bool { return !x.done && x.in == "" })
		}
		if o < 0 {
			break
		}
		w.offsets[o].in = "chosen"
		batch = append(batch, o)
	}
	return batch
}

// read is what of a choice is handed out. What is not there is finished, the first record is given up on if no answer can hold it, and what
// lies behind one that this answer has no room for is owed.
func (w *twin) read(batch []int) (handed []int, gaveUp int) {
	for i, o := range batch {
		x := &w.offsets[o]
		switch {
		case x.hole || o < w.base:
			w.finish(o)
			w.redriven[o] = false
			continue
		case !x.unfit:
			handed = append(handed, o)
			continue
		case len(handed) == 0:
			w.giveUp(o)
			gaveUp++
			i++
		}
		for _, o := range batch[i:] {
			w.offsets[o].in, w.offsets[o].returned = "owed", true
		}
		break
	}
	return handed, gaveUp
}

func (w *twin) hand(batch []int) string {
	var out []Handed
	for _, o := range batch {
		x := &w.offsets[o]
		x.number++
		x.in, x.until, x.written, x.returned = "claimed", w.now+w.opts.Visibility, x.failures, false
		out = append(out, Handed{Offset: id.Offset(o), Attempts: min(x.number, w.opts.MaxAttempts)})
	}
	return told(out)
}

func (w *twin) ack(o int) string {
	switch {
	case o >= len(w.offsets):
		return "invalid_request fatal"
	case !w.exists:
		return "stale_claim retry"
	case w.offsets[o].in != "" || w.offsets[o].done || o < w.known:
		w.finish(o)
		w.listed[o], w.redriven[o] = false, false
		return "ok"
	}
	return "stale_claim retry"
}

// settle is a nack or an extend of the delivery that is told as attempts, 0 for any.
func (w *twin) stands(o int, attempts uint32) (refusal string) {
	switch {
	case o >= len(w.offsets):
		return "invalid_request fatal"
	case w.offsets[o].in == "claimed" && (attempts == 0 || attempts == min(w.offsets[o].number, w.opts.MaxAttempts)):
		return "ok"
	case attempts == 0 && w.exists && !w.offsets[o].done:
		return "stale_claim retry"
	}
	return "stale_claim fatal"
}

func (w *twin) nack(o int, attempts uint32, delay time.Duration) string {
	r := w.stands(o, attempts)
	if r == "ok" {
		if delay == 0 {
			delay = w.opts.backOff(w.offsets[o].failures + 1)
		}
		w.fail(o, w.now+delay)
	}
	return r
}

func (w *twin) extend(o int, attempts uint32, by time.Duration) string {
	r := w.stands(o, attempts)
	if r == "ok" {
		w.offsets[o].until = w.now + by
	}
	return r
}

func (w *twin) askGiveUp(o int) string {
	switch {
	case o >= len(w.offsets):
		return "invalid_request fatal"
	case w.exists && w.offsets[o].done && w.offsets[o].in == "":
		return "invalid_request fatal"
	case !w.exists || w.offsets[o].in == "" && o >= w.known:
		return "stale_claim retry"
	}
	w.giveUp(o)
	return "ok"
}

func (w *twin) discard(o int) string {
	if o < len(w.offsets) && (w.listed[o] || w.redriven[o]) {
		if w.redriven[o] && w.offsets[o].done {
			w.finish(o)
		}
		w.listed[o], w.redriven[o] = false, false
	}
	return "ok"
}

func (w *twin) redrive(o int) string {
	switch {
	case o >= len(w.offsets) || !w.listed[o] && !w.redriven[o], o < w.base:
		return "invalid_request fatal"
	case w.redriven[o]:
		return "ok"
	}
	w.listed[o], w.redriven[o] = false, true
	x := &w.offsets[o]
	if x.failures, x.written = 0, 0; x.in != "claimed" {
		x.in, x.number, x.returned = "owed", 0, false
	}
	return "ok"
}

func (w *twin) seek(to int) string {
	if to < w.base || to > len(w.offsets) {
		return "invalid_request fatal"
	}
	w.known, w.exists = 0, true
	for o := range w.offsets {
		x := &w.offsets[o]
		if x.done = o < to; w.redriven[o] {
			x.in = "owed"
		} else {
			*x = twinOffset{done: x.done, hole: x.hole, unfit: x.unfit}
		}
	}
	return "ok"
}

func (w *twin) remove() bool {
	existed := w.exists
	if w.exists {
		w.create(0)
		clear(w.listed)
		clear(w.redriven)
		w.exists, w.known = false, 0
	}
	return existed
}

func (w *twin) trim(base int) {
	w.base = max(w.base, base)
	for o := range min(w.base, len(w.offsets)) {
		if w.exists {
			w.finish(o)
			w.redriven[o] = false
		}
	}
}

func (w *twin) crash() {
	w.known = len(w.offsets)
	for o := range w.offsets {
		if x := &w.offsets[o]; x.in != "" && x.number == 0 && !w.redriven[o] {
			*x = twinOffset{hole: x.hole, unfit: x.unfit} // nothing is written of one that was chosen and not handed out
		} else if x.in != "" {
			x.in, x.failures = "owed", x.written
		}
	}
}

// pair is a core and its twin, stepped alike.
type pair struct {
	s *shell
	w *twin
}

func twinOptions() Options {
	o := small()
	o.MaxInFlight, o.MaxAttempts, o.BackOff, o.Visibility = 4, 3, []time.Duration{0, 2 * time.Second}, 5*time.Second
	return o
}

func newPair(records int) *pair {
	return &pair{s: newShell(twinOptions(), records), w: newTwin(twinOptions(), records)}
}

// do performs one operation on both and compares what they say of it.
func (p *pair) do(op string, o int, n uint32) error {
	s, w, off := p.s, p.w, id.Offset(o)
	var got, want string
	var in Input
	switch op {
	case "poll":
		g := s.poll(Poll{Max: n})
		for i := range g.deliver.Records {
			g.deliver.Records[i].Skipped = 0
		}
		got, want = told(g.deliver.Records), w.poll(int(n))
	case "ack":
		in, want = &Ack{Ask: s.ask(), Offset: off}, w.ack(o)
	case "nack":
		in, want = Nack{Ask: s.ask(), Conn: 1, Offset: off, Attempts: n}, w.nack(o, n, 0)
	case "delay":
		in, want = Nack{Ask: s.ask(), Conn: 1, Offset: off, HasDelay: true, Delay: 3 * time.Second}, w.nack(o, 0, 3*time.Second)
	case "extend":
		in, want = Extend{Ask: s.ask(), Conn: 1, Offset: off, Attempts: n + 1, Extend: 8 * time.Second}, w.extend(o, n+1, 8*time.Second)
	case "give up":
		in, want = GiveUp{Ask: s.ask(), Offset: off}, w.askGiveUp(o)
	case "discard":
		in, want = Discard{Ask: s.ask(), Offset: off}, w.discard(o)
	case "redrive":
		in, want = Redrive{Ask: s.ask(), Offset: off}, w.redrive(o)
	case "seek":
		in, want = Seek{Ask: s.ask(), Start: at(off)}, w.seek(o)
	case "remove":
		got, want = fmt.Sprint(s.do(Remove{Ask: s.ask()}).Existed), fmt.Sprint(w.remove())
	case "pass":
		s.wait(time.Duration(n) * time.Second)
		w.pass(time.Duration(n) * time.Second)
	case "publish":
		s.publish(1)
		w.publish(1)
		switch n {
		case 0:
			s.holes[s.end-1] = true
			w.offsets[len(w.offsets)-1].hole = true
		case 1:
			s.unfit[s.end-1] = true
			w.offsets[len(w.offsets)-1].unfit = true
		}
	case "trim":
		s.base = max(s.base, min(off, s.end))
		s.step(Trimmed{Base: s.base})
		w.trim(int(s.base))
	case "crash":
		s.crash([logCount]bool{true, true})
		w.crash()
	default:
		panic(op)
	}
	if in != nil {
		got = refused(s.do(in).Refusal)
	}
	if got != want {
		return fmt.Errorf("%s %d %d: got %q, want %q", op, o, n, got, want)
	}
	return p.compare()
}

// compare holds what both say of themselves against each other.
func (p *pair) compare() error {
	s, w := p.s, p.w
	deads := s.deads()
	want := Info{
		Exists: w.exists, Cursor: id.Offset(w.cursor()), Tail: s.end, InFlight: w.count("claimed"), Delayed: w.count("delayed"), Owed: w.count("owed"), Dead: len(deads),
	}
	if got := s.core.Info(); got != want {
		return fmt.Errorf("the core says %+v, its twin %+v", got, want)
	}
	var list []id.Offset
	for o, dead := range w.listed {
		if dead {
			list = append(list, id.Offset(o))
		}
	}
	if fmt.Sprint(deads) != fmt.Sprint(list) {
		return fmt.Errorf("dead letters %v, its twin has %v", deads, list)
	}
	return nil
}

func TestAGroupDoesWhatItsNaiveTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(rapid.IntRange(0, 6).Draw(t, "records"))
		ops := []string{"poll", "poll", "poll", "ack", "ack", "nack", "delay", "extend", "give up", "discard", "redrive", "seek", "remove", "pass", "pass", "publish", "trim", "crash"}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			op := rapid.SampledFrom(ops).Draw(t, "op")
			if (op == "remove" || op == "seek" || op == "trim") && rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
				op = "ack"
			}
			o, n := rapid.IntRange(0, len(p.w.offsets)+1).Draw(t, "offset"), rapid.Uint32Range(0, 3).Draw(t, "n")
			if op == "poll" || op == "pass" {
				n++
			}
			if op == "trim" {
				o = rapid.IntRange(0, 2).Draw(t, "few") + p.w.base
			}
			if err := p.do(op, o, n); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Every story of three steps, or of five when effort is full, that a group of two records and one restart can have, each after a poll has handed out both.
func TestEverySmallWorldIsThatOfTheTwin(t *testing.T) {
	steps := 3
	if effort.Full() {
		steps = 5
	}
	everySmallWorld(t, steps, false)
}

// The same with a second record that no answer can hold.
func TestEverySmallWorldWithARecordThatFitsNoAnswerIsThatOfTheTwin(t *testing.T) {
	everySmallWorld(t, 3, true)
}

func everySmallWorld(t *testing.T, steps int, unfit bool) {
	type move struct {
		op string
		o  int
		n  uint32
	}
	moves := []move{
		{"poll", 0, 1}, {"poll", 0, 2}, {"ack", 0, 0}, {"ack", 1, 0}, {"nack", 0, 0}, {"nack", 1, 1}, {"give up", 0, 0}, {"redrive", 0, 0},
		{"discard", 0, 0}, {"seek", 0, 0}, {"seek", 1, 0}, {"remove", 0, 0}, {"pass", 0, 5}, {"pass", 0, 2}, {"trim", 1, 0}, {"crash", 0, 0}, {"extend", 0, 0},
	}
	worlds, story := 0, make([]int, steps)
	for {
		p := newPair(2)
		p.s.unfit[1], p.w.offsets[1].unfit = unfit, unfit
		if err := p.do("poll", 0, 2); err != nil {
			t.Fatal(err)
		}
		for i, m := range story {
			if err := p.do(moves[m].op, moves[m].o, moves[m].n); err != nil {
				for _, m := range story[:i+1] {
					t.Logf("%+v", moves[m])
				}
				t.Fatal(err)
			}
		}
		worlds++
		i := 0
		for ; i < steps; i++ {
			if story[i]++; story[i] < len(moves) {
				break
			}
			story[i] = 0
		}
		if i == steps {
			break
		}
	}
	if most := int(math.Pow(float64(len(moves)), float64(steps))); worlds != most {
		t.Fatalf("%d worlds of %d", worlds, most)
	}
}
