package shardcore

import (
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

// harness drives a core and checks what must be true whatever happens.
type harness struct {
	core     *Core
	at       At
	asked    int
	answered map[int]bool
	inFlight []Append
	readable id.Offset
	lastDone id.Offset
	next     id.Offset // end of the last append that is not void
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
			for _, b := range e.Batches {
				if b.Base != h.next {
					t.Fatalf("append of %d at %d, the log ends at %d", b.Count, b.Base, h.next)
				}
				h.next = b.End()
			}
			h.inFlight = append(h.inFlight, e)
		case Readable:
			if e.End < h.readable {
				t.Fatalf("the readable end fell from %d to %d", h.readable, e.End)
			}
			h.readable = e.End
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
	n := a.Reply.(int)
	if h.answered[n] {
		t.Fatalf("write %d was answered twice", n)
	}
	h.answered[n] = true
	if a.Refusal != nil {
		return
	}
	if a.Offset >= h.readable {
		t.Fatalf("write %d was acknowledged at %d before it was readable (%d)", n, a.Offset, h.readable)
	}
	if h.blocking && !h.draining && a.Offset >= h.released {
		t.Fatalf("write %d was acknowledged at %d, and readers have room up to %d", n, a.Offset, h.released)
	}
	if a.Offset < h.lastDone {
		t.Fatalf("write %d was acknowledged at %d after one at %d", n, a.Offset, h.lastDone)
	}
	h.lastDone = a.Offset
}

func TestEveryWriteIsAnsweredOnceInOrderAndNeverBeforeItIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(rapid.Bool().Draw(t, "blocking"))
		h.step(Open{Generation: 1})
		h.take(t)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				b := &batch.Batch{Count: rapid.Uint32Range(1, 5).Draw(t, "records"), Kind: batch.Records, Body: make([]byte, rapid.IntRange(0, 3000).Draw(t, "bytes"))}
				h.step(&Write{Reply: h.asked, Batch: b})
				h.asked++
			},
			"take":      func(t *rapid.T) { h.take(t) },
			"recovered": func(t *rapid.T) { h.step(Recovered{}) },
			"persisted": func(t *rapid.T) {
				h.take(t)
				if len(h.inFlight) > 0 {
					i := rapid.IntRange(0, len(h.inFlight)-1).Draw(t, "which")
					h.step(Persisted{Seq: h.inFlight[i].Seq})
					h.inFlight = append(h.inFlight[:i:i], h.inFlight[i+1:]...)
				}
			},
			"fail one": func(t *rapid.T) {
				h.take(t)
				if n := len(h.inFlight); n > 0 && rapid.IntRange(0, 3).Draw(t, "one in four") == 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "which")
					failed := h.inFlight[i]
					h.inFlight = h.inFlight[:i]
					if len(failed.Batches) > 0 {
						h.next = failed.Batches[0].Base
					}
					h.step(WriteFailed{Seq: failed.Seq, Reason: "EIO"})
				}
			},
			"room": func(t *rapid.T) {
				end := id.Offset(rapid.Uint64Range(0, uint64(h.next)+3).Draw(t, "released"))
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
			h.step(Persisted{Seq: h.inFlight[0].Seq})
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

func TestStampRunsAtTheClaimBeforeTheBatchGoesAnywhere(t *testing.T) {
	c := New(DefaultOptions())
	at := At{Wall: time.UnixMilli(5000)}
	lead(c, at, 3, Recovered{Tails: MainTail(7)})
	b := &batch.Batch{Count: 1, Kind: batch.Records}
	stamped := uint64(0)
	c.Step(at, &Write{Reply: "w", Batch: b, Stamp: func(_ *batch.Batch, now uint64) { stamped = now }})
	if stamped != 5000 || b.Base != 7 || b.Generation != 3 || b.AppendMicros != 5_000_000 {
		t.Fatalf("stamped %d, batch %+v", stamped, b)
	}
}

func TestBrokenInputsPanic(t *testing.T) {
	for name, in := range map[string]Input{"no records": &Write{Batch: &batch.Batch{Kind: batch.Records}}, "no kind": &Write{Batch: &batch.Batch{Count: 1}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			New(DefaultOptions()).Step(At{}, in)
		}()
	}
}

func TestLogStateNamesTheInvariantThatBroke(t *testing.T) {
	for _, l := range []logState{
		{tail: 1, durable: 2, commit: 0},
		{tail: 2, durable: 2, commit: 3},
		{tail: 5, durable: 2, commit: 2},
		{tail: 2, durable: 2, commit: 2, unsynced: 7},
	} {
		if err := l.check(LogMain, false); err == nil {
			t.Errorf("%+v passes", l)
		}
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
