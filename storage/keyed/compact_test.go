package keyed

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

func nothingStaged([]byte) bool { return false }

// turnOf is a turn in which nothing is claimed that is not folded.
func turnOf(f *Fold) Turn { return Turn{Tail: f.Next(), Staged: nothingStaged} }

// folded returns a fold of n keys, each put twice, in one batch each.
func folded(t testing.TB, n, inline int) *Fold {
	f := NewFold(newTestIndex(inline), decodeChange, 0)
	for range 2 {
		for i := range n {
			apply(t, f, batchOf(f.Next(), put(fmt.Sprintf("key-%05d", i), "value")))
		}
	}
	return f
}

func TestACompactionIsDueByTheShareOfWhatIsLive(t *testing.T) {
	for _, c := range []struct {
		log, live int64
		want      bool
	}{{1 << 20, 0, false}, {1<<20 + 1, 0, true}, {100 << 20, 25 << 20, false}, {100<<20 + 4, 25 << 20, true}, {100 << 20, 24 << 20, true}} {
		if got := CachePolicy().Due(c.log, c.live); got != c.want {
			t.Errorf("%d bytes, %d live: %v, want %v", c.log, c.live, got, c.want)
		}
	}
	if !CounterPolicy().Due(65<<10, 1<<10) || CounterPolicy().Due(64<<10, 0) {
		t.Error("a counter's log is compacted above 64 KiB")
	}
}

func TestACompactionCopiesExactlyWhatIsLiveInBoundedBatches(t *testing.T) {
	const keys = 3000
	f := folded(t, keys, 0)
	cut := f.Next()
	copies := 0
	r := drive(t, f, NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved, Records: 50, Bytes: 1000}), func(e AppendMoved) {
		if e.Count > 50 || len(e.Body) > 1000 {
			t.Fatalf("a batch of %d records and %d bytes", e.Count, len(e.Body))
		}
		copies += int(e.Count)
		apply(t, f, &batch.Batch{Base: e.Base, Count: e.Count, Kind: batch.Records, Body: e.Body})
	}, cut)
	if r.Moved != keys || copies != keys || r.Cut != cut || r.Left != 0 || r.Err != nil {
		t.Fatalf("%d copies, %+v", copies, r)
	}
	f.Index().Scan(0, nil, func(e Entry) {
		if e.Offset < cut || e.Version >= cut {
			t.Fatalf("%q has version %s at %s", e.Key, e.Version, e.Offset)
		}
	})
}

func TestALargeIndexIsLookedAtInSteps(t *testing.T) {
	f := folded(t, 10_000, 0)
	c := NewCompaction(f.Index(), CompactionOptions{})
	c.Next(nil, turnOf(f))
	pauses := 0
	for e := c.Next(Sealed{Cut: 0}, turnOf(f)); ; e = c.Next(Resume{}, turnOf(f)) {
		if _, ok := e.(Pause); !ok {
			break
		}
		pauses++
	}
	if pauses < 2 {
		t.Fatalf("10,000 keys were looked at in %d steps", pauses+1)
	}
}

// G8: what is about to change is not copied, and nothing is removed while that is so.
func TestAKeyWithAChangeOnItsWayIsNotCopied(t *testing.T) {
	f := folded(t, 10, 0)
	c := NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved, Rounds: 3})
	staged := func(key []byte) bool { return strings.HasSuffix(string(key), "7") }
	c.Next(nil, Turn{Staged: staged})
	var in Input = Sealed{Cut: f.Next()}
	for {
		switch e := c.Next(in, Turn{Tail: f.Next(), Staged: staged}).(type) {
		case AppendMoved:
			apply(t, f, &batch.Batch{Base: e.Base, Count: e.Count, Kind: batch.Records, Body: e.Body})
			in = Moved{}
		case Finished:
			if e.Result.Left != 1 || e.Result.Moved != 9 || e.Result.Cut != 0 {
				t.Fatalf("%+v", e.Result)
			}
			if e, _ := get(t, f, "key-00007"); e.Offset != 17 {
				t.Fatalf("copied to %s", e.Offset)
			}
			return
		default:
			t.Fatalf("%#v with an entry below the cut", e)
		}
	}
}

func TestNothingIsRemovedBeforeWhatIsBelowTheCutIsFolded(t *testing.T) {
	f := newTestFold()
	c := NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved})
	c.Next(nil, turnOf(f))
	e := c.Next(Sealed{Cut: 1}, turnOf(f)) // a put was claimed at 0
	for range 3 {
		if p, ok := e.(Pause); !ok || p.Until != 1 {
			t.Fatalf("%#v", e)
		}
		e = c.Next(Resume{}, turnOf(f))
	}
	apply(t, f, batchOf(0, put("late", "v")))
	if m, ok := c.Next(Resume{}, turnOf(f)).(AppendMoved); !ok || m.Count != 1 {
		t.Fatal("the record that was folded late is not copied")
	}
}

// G26: a pass is given up at any step.
func TestACompactionEndsAtAnyStepThatFails(t *testing.T) {
	broken := errors.New("no")
	for steps := 1; ; steps++ {
		f := folded(t, 100, -1)
		c := NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved, Records: 40})
		e := c.Next(nil, turnOf(f))
		for range steps - 1 {
			switch x := e.(type) {
			case SealLog:
				e = c.Next(Sealed{Cut: f.Next()}, turnOf(f))
			case ReadValues:
				list := make([][]byte, len(x.Places))
				for i := range list {
					list[i] = []byte("value")
				}
				e = c.Next(Values{List: list}, turnOf(f))
			case AppendMoved:
				apply(t, f, &batch.Batch{Base: x.Base, Count: x.Count, Kind: batch.Records, Body: x.Body})
				e = c.Next(Moved{}, turnOf(f))
			case FlushLog:
				e = c.Next(Flushed{}, turnOf(f))
			case RetainFrom:
				e = c.Next(Retained{}, turnOf(f))
			}
		}
		if end, ok := e.(Finished); ok {
			if steps < 8 || end.Result.Moved != 100 {
				t.Fatalf("%d steps: %+v", steps, end.Result)
			}
			return
		}
		end, ok := c.Next(Failed{Err: broken}, turnOf(f)).(Finished)
		if !ok || end.Result.Err != broken || end.Result.Cut != 0 {
			t.Fatalf("after %d steps: %+v", steps, end.Result)
		}
		if n := f.Index().Stats().Entries; n != 100 {
			t.Fatalf("%d entries are left", n)
		}
	}
}

func TestAFollowerRemovesTheHeadOnlyOnceNoEntryStandsThere(t *testing.T) {
	f := folded(t, 10, 0)
	cut := f.Next()
	noCopies := func(AppendMoved) { t.Fatal("a follower appended") }
	if r := drive(t, f, NewCompaction(f.Index(), CompactionOptions{}), noCopies, cut); r.Left != 10 || r.Cut != 0 {
		t.Fatalf("with entries below the cut: %+v", r)
	}
	for i := range 10 {
		apply(t, f, batchOf(f.Next(), Change{Kind: Move, Key: fmt.Appendf(nil, "key-%05d", i), Value: []byte("value"), Version: id.Offset(10 + i)}))
	}
	if r := drive(t, f, NewCompaction(f.Index(), CompactionOptions{}), noCopies, cut); r.Left != 0 || r.Cut != cut {
		t.Fatalf("without: %+v", r)
	}
}

// A delete that is claimed between the choice and the append would be undone by the copy: the copy is not appended then.
func TestACopyIsClaimedWhereItWasChosenOrNotAtAll(t *testing.T) {
	f := folded(t, 3, 0)
	c := NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved, Records: 1, Rounds: 9})
	tail := f.Next()
	c.Next(nil, turnOf(f))
	e := c.Next(Sealed{Cut: tail}, turnOf(f)).(AppendMoved)
	if e.Base != tail {
		t.Fatalf("to be claimed at %s, the tail is %s", e.Base, tail)
	}
	for _, key := range []string{"key-00000", "key-00001", "key-00002"} {
		apply(t, f, batchOf(f.Next(), Change{Kind: Delete, Key: []byte(key)}))
	}
	if next, ok := c.Next(Stale{}, turnOf(f)).(Pause); !ok {
		t.Fatalf("%#v, and others are to have a turn", next)
	}
	if next, ok := c.Next(Resume{}, turnOf(f)).(FlushLog); !ok || next.Through != f.Next() {
		t.Fatalf("%#v, and nothing is left to copy", next)
	}
}

// Copies that were not appended are asked for again, in the same round: values that were read, and entries that are in memory.
func TestCopiesThatWereNotAppendedAreAskedForAgain(t *testing.T) {
	for _, inline := range []int{-1, 100} {
		f := folded(t, 7, inline)
		c := NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved, Records: 3, Rounds: 2})
		c.Next(nil, turnOf(f))
		e := c.Next(Sealed{Cut: f.Next()}, turnOf(f))
		for late := false; ; late = !late {
			switch x := e.(type) {
			case Pause:
				e = c.Next(Resume{}, turnOf(f))
				late = !late
				continue
			case ReadValues:
				list := make([][]byte, len(x.Places))
				for i := range list {
					list[i] = []byte("value")
				}
				e = c.Next(Values{List: list}, turnOf(f))
				late = !late
				continue
			case AppendMoved:
				if !late {
					e = c.Next(Stale{}, turnOf(f))
					continue
				}
				apply(t, f, &batch.Batch{Base: x.Base, Count: x.Count, Kind: batch.Records, Body: x.Body})
				e = c.Next(Moved{}, turnOf(f))
				continue
			case FlushLog:
			default:
				t.Fatalf("inline %d: %#v", inline, e)
			}
			break
		}
		if c.round != 2 || c.result.Moved != 7 {
			t.Fatalf("inline %d: %d copies, in round %d", inline, c.result.Moved, c.round)
		}
	}
}

// A key that is about to change is looked at again when it has: the next round waits for what is claimed, however often it is told to go on.
func TestTheNextRoundBeginsWhenWhatIsClaimedIsFolded(t *testing.T) {
	f := folded(t, 10, 0)
	c := NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved, Rounds: 2})
	staged := func(key []byte) bool { return strings.HasSuffix(string(key), "7") }
	tail := f.Next()
	c.Next(nil, turnOf(f))
	copies := c.Next(Sealed{Cut: tail}, Turn{Tail: tail + 1, Staged: staged}).(AppendMoved) // behind a delete of that key, which is claimed
	apply(t, f, batchOf(tail, put("key-other", "v")))                                       // and of which nothing came
	apply(t, f, &batch.Batch{Base: copies.Base, Count: copies.Count, Kind: batch.Records, Body: copies.Body})
	later := Turn{Tail: f.Next() + 1, Staged: staged}
	e := c.Next(Moved{}, later)
	for range 3 {
		if p, ok := e.(Pause); !ok || p.Until != later.Tail {
			t.Fatalf("%#v, and a change at %s is not folded", e, f.Next())
		}
		e = c.Next(Resume{}, later)
	}
	apply(t, f, batchOf(f.Next(), put("key-00007", "v")))
	if e := c.Next(Resume{}, turnOf(f)); e != (FlushLog{Through: f.Next()}) {
		t.Fatalf("%#v", e)
	}
}

func TestACompactionRefusesAnswersToWhatItDidNotAsk(t *testing.T) {
	for name, do := range map[string]func(c *Compaction, f *Fold){
		"another answer":    func(c *Compaction, f *Fold) { c.Next(nil, turnOf(f)); c.Next(Moved{}, turnOf(f)) },
		"stale, of nothing": func(c *Compaction, f *Fold) { c.Next(nil, turnOf(f)); c.Next(Stale{}, turnOf(f)) },
		"an early answer":   func(c *Compaction, f *Fold) { c.Next(Flushed{}, turnOf(f)) },
		"an early failure":  func(c *Compaction, f *Fold) { c.Next(Failed{}, turnOf(f)) },
		"a late answer": func(c *Compaction, f *Fold) {
			c.Next(nil, turnOf(f))
			c.Next(Failed{}, turnOf(f))
			c.Next(Resume{}, turnOf(f))
		},
		"moved, and not folded": func(c *Compaction, f *Fold) {
			c.Next(nil, turnOf(f))
			c.Next(Sealed{Cut: f.Next()}, turnOf(f))
			c.Next(Moved{}, turnOf(f))
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", name)
				}
			}()
			f := folded(t, 3, 0)
			do(NewCompaction(f.Index(), CompactionOptions{Encode: encodeMoved}), f)
		}()
	}
}
