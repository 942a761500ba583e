package shardcore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// A role either takes a write, holds it, or refuses it with a code that says what to do; every role is in the table.
func TestEveryRoleSaysWhatAWriteGets(t *testing.T) {
	for _, c := range []struct {
		role  role
		holds bool
		code  wire.Code
	}{
		{opening{}, true, 0},
		{leading{}, false, 0},
		{draining{}, false, wire.CodeShardUnavailable},
		{following{leader: "b"}, false, wire.CodeNotLeader},
		{fencing{}, true, 0},
		{waitingForDisk{}, true, 0},
		{damaged{}, false, wire.CodeShardUnavailable},
		{failed{}, false, wire.CodeStorage},
		{closed{}, false, wire.CodeShardUnavailable},
	} {
		code := wire.Code(0)
		if f := c.role.refusal(); f != nil {
			code = f.Code
		}
		if c.role.holds() != c.holds || code != c.code {
			t.Errorf("%s: holds %v, refuses with %s; want %v, %s", c.role.name(), c.role.holds(), code, c.holds, c.code)
		}
	}
}

// lead brings a core up that finds what is recovered.
func lead(c *Core, at At, g id.Generation, found Recovered) {
	c.Step(at, Open{Generation: g})
	c.Step(at, found)
	c.Step(at, Persisted{Seq: c.seq})
}

// sent is where a harness writes.
type sent struct {
	n   int
	log Log
}

// harness drives a core and checks what must be true whatever happens.
type harness struct {
	core     *Core
	at       At
	asked    int
	answered map[int]bool
	inFlight []Append
	readable [logCount]id.Offset
	lastDone [logCount]id.Offset
	next     [logCount]id.Offset // end of the last append that is not void
	lastSeq  uint64
	drained  bool
	blocking bool
	draining bool
	released id.Offset // the furthest that readers were said to have room
}

func newHarness(blocking bool) *harness {
	opts := DefaultOptions()
	opts.UnsyncedBytes, opts.HeldWrites, opts.Blocking = 20_000, 5, blocking
	return &harness{blocking: blocking, core: New(opts), at: At{Wall: time.UnixMilli(0)}, answered: map[int]bool{}}
}

func (h *harness) step(in Input) { h.core.Step(h.at, in) }

// take performs the effects of a turn against a log that keeps nothing, checking each.
func (h *harness) take(t *rapid.T) {
	effects := h.core.Take()
	for _, e := range effects {
		switch e := e.(type) {
		case Save:
			h.step(Persisted{Seq: e.Seq})
		case Append:
			if e.Seq <= h.lastSeq {
				t.Fatalf("append %d of log %d comes after %d", e.Seq, e.Log, h.lastSeq)
			}
			h.lastSeq = e.Seq
			for _, b := range e.Batches {
				if b.Base != h.next[e.Log] {
					t.Fatalf("append of %d at %d, log %d ends at %d", b.Count, b.Base, e.Log, h.next[e.Log])
				}
				h.next[e.Log] = b.End()
			}
			h.inFlight = append(h.inFlight, e)
		case Readable:
			if e.End < h.readable[e.Log] {
				t.Fatalf("the readable end of log %d fell from %d to %d", e.Log, h.readable[e.Log], e.End)
			}
			h.readable[e.Log] = e.End
		case *Answers:
			for _, a := range e.List {
				h.answer(t, a)
			}
		case Drained:
			if h.drained || len(h.inFlight) > 0 {
				t.Fatalf("drained again, or with %d appends in flight", len(h.inFlight))
			}
			h.drained = true
		}
	}
}

func (h *harness) answer(t *rapid.T, a Answer) {
	w := a.Reply.(sent)
	n, log := w.n, w.log
	if h.answered[n] {
		t.Fatalf("write %d was answered twice", n)
	}
	h.answered[n] = true
	if a.Refusal != nil {
		return
	}
	if a.Offset >= h.readable[log] {
		t.Fatalf("write %d was acknowledged at %d before it was readable (%d)", n, a.Offset, h.readable[log])
	}
	if log == LogMain && h.blocking && !h.draining && a.Offset >= h.released {
		t.Fatalf("write %d was acknowledged at %d, and readers have room up to %d", n, a.Offset, h.released)
	}
	if a.Offset < h.lastDone[log] {
		t.Fatalf("write %d was acknowledged at %d after one at %d", n, a.Offset, h.lastDone[log])
	}
	h.lastDone[log] = a.Offset
}

func TestEveryWriteIsAnsweredOnceInOrderAndNeverBeforeItIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(rapid.Bool().Draw(t, "blocking"))
		h.step(Open{Generation: 1})
		h.take(t)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				b := &batch.Batch{Count: rapid.Uint32Range(1, 5).Draw(t, "records"), Kind: batch.Records, Body: make([]byte, rapid.IntRange(0, 3000).Draw(t, "bytes"))}
				log := officeLogs[rapid.IntRange(0, 1).Draw(t, "log")]
				h.step(&Write{Reply: sent{h.asked, log}, Log: log, Batch: b})
				h.asked++
			},
			"take":      func(t *rapid.T) { h.take(t) },
			"recovered": func(t *rapid.T) { h.step(Recovered{}) },
			"persisted": func(t *rapid.T) {
				h.take(t)
				if len(h.inFlight) > 0 {
					i := rapid.IntRange(0, len(h.inFlight)-1).Draw(t, "which")
					h.step(Persisted{Log: h.inFlight[i].Log, Seq: h.inFlight[i].Seq})
					h.inFlight = append(h.inFlight[:i:i], h.inFlight[i+1:]...)
				}
			},
			"fail one": func(t *rapid.T) {
				h.take(t)
				if n := len(h.inFlight); n > 0 && rapid.IntRange(0, 3).Draw(t, "one in four") == 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "which")
					failed := h.inFlight[i]
					h.inFlight = slices.DeleteFunc(h.inFlight, func(a Append) bool { return a.Log == failed.Log && a.Seq >= failed.Seq })
					if len(failed.Batches) > 0 {
						h.next[failed.Log] = failed.Batches[0].Base
					}
					h.step(WriteFailed{Log: failed.Log, Seq: failed.Seq, Reason: "EIO"})
				}
			},
			"room": func(t *rapid.T) {
				end := id.Offset(rapid.Uint64Range(0, uint64(h.next[LogMain])+3).Draw(t, "released"))
				h.released = max(h.released, end)
				h.step(Released{End: end})
			},
			"stall": func(*rapid.T) { h.step(DiskStalled{}) },
			"back":  func(*rapid.T) { h.step(DiskBack{}) },
			"time": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond
				h.at = At{Wall: h.at.Wall.Add(d), Mono: h.at.Mono + d}
				h.step(Wake{})
			},
		})
		// Whatever was going on: drain, complete what is in flight, and nobody is left without an answer.
		h.draining = true
		h.step(Drain{})
		h.take(t)
		for len(h.inFlight) > 0 {
			h.step(Persisted{Log: h.inFlight[0].Log, Seq: h.inFlight[0].Seq})
			h.inFlight = h.inFlight[1:]
			h.take(t)
		}
		if !h.drained || len(h.answered) != h.asked {
			t.Fatalf("drained %v; %d of %d writes answered", h.drained, len(h.answered), h.asked)
		}
	})
}

func TestReopeningAnswersWhatWasClaimedAsUnknown(t *testing.T) {
	c := New(DefaultOptions())
	at := At{Wall: time.UnixMilli(0)}
	lead(c, at, 1, Recovered{})
	c.Step(at, &Write{Reply: "w", Batch: &batch.Batch{Count: 1, Kind: batch.Records}})
	c.Step(at, Open{Generation: 2})
	for _, e := range c.Take() {
		if a, ok := e.(*Answers); ok {
			if f := a.List[0].Refusal; f == nil || f.Retry != wire.RetryOutcomeUnknown {
				t.Fatalf("answered %v", f)
			}
			return
		}
	}
	t.Fatal("not answered")
}

func TestAJudgeFillsTheBatchAtTheClaimBeforeItGoesAnywhere(t *testing.T) {
	c := New(DefaultOptions())
	at := At{Wall: time.UnixMilli(5000)}
	tails := MainTail(7)
	tails[LogCounters] = 90
	lead(c, at, 3, Recovered{Tails: tails})
	b := &batch.Batch{Kind: batch.Records}
	c.Step(at, &Write{Reply: "w", Log: LogCounters, Batch: b, Judge: func(base id.Offset, now uint64) Verdict {
		if base != 90 || now != 5000 || b.Base != 0 {
			t.Errorf("judged with base %d at %d, the batch is %+v", base, now, b)
		}
		b.Body, b.Count = make([]byte, 30), 2
		return Verdict{Append: true}
	}})
	if b.Base != 90 || b.Generation != 3 || b.AppendMicros != 5_000_000 || c.Tail(LogCounters) != 92 || c.Tail(LogMain) != 7 {
		t.Fatalf("batch %+v; the logs end at %d and %d", b, c.Tail(LogMain), c.Tail(LogCounters))
	}
	if got := c.log(LogCounters).claimed; got != 30+batch.Overhead {
		t.Fatalf("%d bytes are on their way", got)
	}
}

func TestWhatIsTrimmedBesideTheMainLogTouchesNoProducer(t *testing.T) {
	c := New(DefaultOptions())
	p := NewProducers()
	note(p, 5, 0, 10)
	tails := MainTail(20)
	tails[LogCounters] = 30
	lead(c, At{}, 1, Recovered{Tails: tails, Producers: p})
	c.Step(At{}, Trimmed{Log: LogCounters, Base: 25})
	if c.producers.Len() != 1 || c.log(LogMain).base != 0 || c.log(LogCounters).base != 25 {
		t.Errorf("%d producers; the logs begin at %d and %d", c.producers.Len(), c.log(LogMain).base, c.log(LogCounters).base)
	}
	c.Step(At{}, Trimmed{Base: 15})
	if c.producers.Len() != 0 {
		t.Error("a producer is remembered whose batch was trimmed")
	}
}

// The lists of a turn are used again; what was in them must not be kept by that.
func TestFoldedBatchesAreLetGoAndTheRoomForThemIsBounded(t *testing.T) {
	opts := DefaultOptions()
	c := New(opts)
	lead(c, At{}, 1, Recovered{})
	c.Take()
	fold := func(n int) {
		for range n {
			c.Step(At{}, &Write{Fold: true, Batch: &batch.Batch{Count: 1, Kind: batch.Records}})
		}
		c.Take()
		c.Step(At{}, PersistedTo{Seq: c.seq})
		c.Take()
	}
	fold(10)
	c.Take()
	for _, x := range []*turnEffects{c.turn, c.spare} {
		for _, b := range x.folds[:cap(x.folds)] {
			if b != nil {
				t.Fatalf("the batch at %d is kept", b.Base)
			}
		}
	}
	fold(foldsKept + 1)
	c.Take()
	if cap(c.turn.folds) > foldsKept || cap(c.spare.folds) > foldsKept {
		t.Errorf("there is room for %d and %d batches", cap(c.turn.folds), cap(c.spare.folds))
	}
}

func TestWritesThatWaitedAreLetGo(t *testing.T) {
	c := New(DefaultOptions())
	lead(c, At{}, 1, Recovered{})
	for range 3 {
		c.Step(At{}, &Write{Batch: &batch.Batch{Count: 1, Kind: batch.Records}})
		c.Step(At{}, &Write{Batch: &batch.Batch{Kind: batch.Records}, Judge: func(base id.Offset, _ uint64) Verdict { return Verdict{Until: base} }})
	}
	c.Take()
	c.Step(At{}, Persisted{Seq: c.seq})
	l := c.log(LogMain)
	if len(l.waiting) > 0 || c.waitingLen != 0 || cap(c.due) < 3 {
		t.Fatalf("%d writes wait and keep %d bytes; there was room for %d", len(l.waiting), c.waitingLen, cap(c.due))
	}
	for _, x := range append(l.waiting[:cap(l.waiting)], c.due[:cap(c.due)]...) {
		if x.write != nil {
			t.Fatalf("a write that waited until %d is kept", x.until)
		}
	}
}

func TestBrokenInputsPanic(t *testing.T) {
	judged := func(v Verdict) Input {
		return &Write{Batch: &batch.Batch{Kind: batch.Records}, Judge: func(id.Offset, uint64) Verdict { return v }}
	}
	no := unavailable("no", "no")
	for name, in := range map[string]Input{
		"no records":                &Write{Batch: &batch.Batch{Kind: batch.Records}},
		"no kind":                   &Write{Batch: &batch.Batch{Count: 1}},
		"no such log":               &Write{Log: logCount, Batch: &batch.Batch{Count: 1, Kind: batch.Records}},
		"numbered, not main":        &Write{Log: LogCounters, Batch: &batch.Batch{Count: 1, Kind: batch.Records, ProducerID: 1}},
		"conditional, not main":     &Write{Log: LogCounters, Batch: &batch.Batch{Count: 1, Kind: batch.Records}, HasExpected: true},
		"numbered and judged":       &Write{Batch: &batch.Batch{Count: 1, Kind: batch.Records, ProducerID: 1}, Judge: func(id.Offset, uint64) Verdict { return Verdict{} }},
		"a judge fills in nothing":  judged(Verdict{Append: true}),
		"append and refuse":         judged(Verdict{Append: true, Refusal: no}),
		"append and give back":      judged(Verdict{Append: true, Again: true}),
		"give back and refuse":      judged(Verdict{Again: true, Refusal: no}),
		"wait for what never comes": judged(Verdict{Until: 1}),
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); text == "" || strings.Contains(text, "shardcore: after") {
					t.Errorf("%s: %q is not about the input", name, text)
				}
			}()
			c := New(DefaultOptions())
			lead(c, At{}, 1, Recovered{})
			c.Step(At{}, in)
		}()
	}
}

func TestLogStateNamesTheInvariantThatBroke(t *testing.T) {
	at := func(base id.Offset) []pendingWrite {
		return []pendingWrite{{batch: &batch.Batch{Base: base, Count: 1}}}
	}
	on := []appendState{{seq: 1, end: 4}}
	for _, l := range []logState{
		{base: 3, tail: 2, durable: 2, commit: 2},
		{tail: 4, durable: 2, commit: 2, appends: on, pending: at(1)},
		{tail: 4, durable: 2, commit: 2, appends: on, pending: at(4)},
		{tail: 4, durable: 2, commit: 2, appends: on, pending: at(3), waiting: []waitingWrite{{until: 2}}},
		{tail: 4, durable: 2, commit: 2, appends: on, pending: at(3), waiting: []waitingWrite{{until: 5}}},
		{tail: 4, durable: 2, commit: 2, appends: on, waiting: []waitingWrite{{until: 3}}},
		{tail: 5, durable: 2, commit: 2, claims: []*batch.Batch{{Base: 3, Count: 2}}},
		{tail: 1, durable: 2, commit: 0},
		{tail: 2, durable: 2, commit: 3},
		{tail: 5, durable: 2, commit: 2},
		{tail: 2, durable: 2, commit: 2, unsynced: 7},
	} {
		if err := l.check(LogMain, l.commit); err == nil {
			t.Errorf("%+v passes", l)
		}
	}
	sound := logState{base: 1, tail: 5, durable: 2, commit: 2, appends: on, claims: []*batch.Batch{{Base: 4, Count: 1}}, pending: at(3), waiting: []waitingWrite{{until: 5}}}
	if err := sound.check(LogMain, 2); err != nil {
		t.Error(err)
	}
}

func BenchmarkWriteTakePersist(b *testing.B) {
	c := New(DefaultOptions())
	at := At{Wall: time.UnixMilli(0)}
	lead(c, at, 1, Recovered{})
	c.Take()
	writes := make([]Write, 64)
	batches := make([]batch.Batch, 64)
	b.ReportAllocs()
	for b.Loop() {
		for i := range writes {
			batches[i] = batch.Batch{Count: 64, Kind: batch.Records, PayloadBytes: 64 * 256}
			writes[i] = Write{Batch: &batches[i]}
			c.Step(at, &writes[i])
		}
		for effects := c.Take(); len(effects) > 0; effects = c.Take() {
			for _, e := range effects {
				if a, ok := e.(Append); ok {
					c.Step(at, Persisted{Seq: a.Seq})
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/write")
}
