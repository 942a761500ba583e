package reading

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// compactorWorld is a shard with one log and a compactor, whose disk does what a test tells it.
type compactorWorld struct {
	*ledgerWorld
	cache   *KeyedCache
	c       *Compactor
	clock   time.Time
	durable id.Offset
	base    id.Offset    // of the log: what is below is removed
	pending keyed.Effect // handed out and not answered
	copies  *batch.Batch // of AppendMoved, claimed
	number  uint64
	free    time.Time // when all copies are paid for
	paid    time.Time // when those before the last ones were
	removed int
	failed  int
	stale   int // so many copies find something else at their place
}

const compactorRate = 1000 // bytes per second

func newCompactorWorld(inline int) *compactorWorld {
	cache := NewKeyedCache(keyedOptions(inline), 0)
	w := &compactorWorld{ledgerWorld: newLedgerWorld(cache), cache: cache, clock: time.UnixMilli(1000)}
	w.c = NewCompactor(CompactorOptions{
		Index: cache.Index(), Policy: keyed.Policy{Ratio: 2, Floor: 300}, Encode: EncodeMove, Poll: time.Millisecond,
		Pace: func(now time.Time, bytes int64) time.Time {
			if w.free.Before(now) {
				w.free = now
			}
			w.paid = w.free
			w.free = w.free.Add(time.Duration(bytes) * time.Second / compactorRate)
			return w.free
		},
	})
	return w
}

func (w *compactorWorld) bytes() (n int64) {
	for _, b := range w.log {
		if b.Base >= w.base && b.Base < w.folded {
			n += int64(len(b.Body)) + batch.Overhead
		}
	}
	return n
}

// step lets the compactor go on as far as it does.
func (w *compactorWorld) step() error {
	for range 1000 {
		e, again := w.c.Next(w.clock, LogLook{
			Bytes: w.bytes(), Durable: w.durable, Folded: w.folded, Turn: keyed.Turn{Tail: w.tail, Staged: w.ledger.Staged},
		})
		if e == nil {
			if !again.IsZero() && !again.After(w.clock) {
				return errors.New("it is to be called again at once, for nothing")
			}
			return nil
		}
		if _, flush := w.pending.(keyed.FlushLog); flush && w.durable >= w.pending.(keyed.FlushLog).Through {
			w.pending = nil
		}
		if _, paused := w.pending.(keyed.Pause); paused && w.folded >= w.pending.(keyed.Pause).Until {
			w.pending = nil
		}
		if w.pending != nil {
			return fmt.Errorf("%T is asked for while %T is under way", e, w.pending)
		}
		if err := w.perform(e); err != nil {
			return err
		}
	}
	return errors.New("it never rests")
}

func (w *compactorWorld) perform(e keyed.Effect) error {
	w.pending = e
	switch e := e.(type) {
	case keyed.SealLog:
		w.number++
		w.c.Sealing(w.number, w.tail)
	case keyed.AppendMoved:
		if w.clock.Before(w.paid) {
			return fmt.Errorf("copies at %v, and those before are paid for at %v", w.clock, w.paid)
		}
		if e.Base != w.tail || w.stale > 0 {
			w.stale = max(0, w.stale-1)
			w.pending = nil
			w.c.Answer(keyed.Stale{})
			return nil
		}
		w.copies = &batch.Batch{Kind: batch.Records, Base: e.Base, Count: e.Count, Generation: 1, Body: e.Body}
		w.log = append(w.log, w.copies)
		w.tail = w.copies.End()
		w.ledger.Claimed(w.copies)
	case keyed.RetainFrom:
		var err error
		for cursor := keyed.Cursor(0); ; {
			cursor = w.cache.Index().Scan(cursor, nil, func(x keyed.Entry) {
				if x.Offset < e.Offset {
					err = fmt.Errorf("%q stands at %s, and all below %s is to be removed", x.Key, x.Offset, e.Offset)
				} else if x.Offset >= w.durable {
					err = fmt.Errorf("%q at %s is not durable, up to %s is", x.Key, x.Offset, w.durable)
				}
			})
			if cursor.Done() {
				break
			}
		}
		return err
	case keyed.Finished:
		w.pending = nil
		if e.Result.Err != nil {
			w.failed++
		} else if e.Result.Cut > 0 {
			w.removed++
		}
	case keyed.Pause, keyed.FlushLog, keyed.ReadValues:
	}
	return nil
}

// disk answers what is under way, if the disk does that.
func (w *compactorWorld) disk() {
	switch e := w.pending.(type) {
	case keyed.SealLog:
		w.pending = nil
		w.c.Persisted(w.number)
	case keyed.Pause:
		w.c.Turned()
	case keyed.ReadValues:
		var in keyed.Values
		for _, p := range e.Places {
			in.List = append(in.List, w.valueIn(p.Offset))
		}
		w.pending = nil
		w.c.Answer(in)
	case keyed.RetainFrom:
		w.base, w.pending = e.Offset, nil
		w.c.Answer(keyed.Retained{})
	}
}

func (w *compactorWorld) valueIn(at id.Offset) []byte {
	for _, b := range w.log {
		if b.Base <= at && at < b.End() {
			payload, err := keyed.RecordAt(b, at)
			if err != nil {
				panic(err)
			}
			r, err := DecodeRecord(payload)
			if err != nil {
				panic(err)
			}
			return r.Value
		}
	}
	panic("no record there")
}

// foldSome folds claimed batches, and answers for copies among them.
func (w *compactorWorld) foldSome(n int) error {
	if err := w.settle(n); err != nil {
		return err
	}
	if w.copies != nil && w.folded >= w.copies.End() {
		w.copies, w.pending = nil, nil
		w.c.Answer(keyed.Moved{})
	}
	return nil
}

// fail voids what is claimed.
func (w *compactorWorld) fail() {
	w.void(len(w.log))
	err := errors.New("no space")
	if w.copies != nil {
		w.copies, w.pending = nil, nil
		w.c.Answer(keyed.Failed{Err: err})
	}
	switch w.pending.(type) {
	case keyed.SealLog, keyed.Pause:
		w.pending = nil
	}
	w.c.LogFailed(err)
}

// Whatever clients write, the disk does and time brings in between: one effect is under way at a time, copies keep their pace, the head is removed
// only when nothing stands there and its copies are durable, every compaction comes to its end, and what the keys hold is what was written.
func TestACompactionComesToItsEndWhateverHappensMeanwhile(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f"}
	removed, failed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newCompactorWorld(rapid.SampledFrom([]int{3, 100}).Draw(t, "inline"))
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(20, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0, 1, 2, 3:
				key := []byte(rapid.SampledFrom(keys).Draw(t, "key"))
				if _, there, _ := w.ledger.Newest(key, w.now); there && rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
					w.claim(Record{Op: OpDelete, Key: key})
				} else {
					w.claim(Record{Op: OpPut, Key: key, Value: make([]byte, rapid.IntRange(0, 60).Draw(t, "bytes"))})
				}
			case 4, 5:
				must(w.foldSome(rapid.IntRange(1, 5).Draw(t, "fold")))
			case 6:
				w.durable = w.folded
			case 7, 8:
				w.disk()
			case 9:
				w.clock = w.clock.Add(time.Duration(rapid.IntRange(1, 500).Draw(t, "ms")) * time.Millisecond)
			case 10:
				if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
					w.fail()
				}
			}
			must(w.step())
			must(w.check(keys))
		}
		for i := 0; w.c.Running(); i++ {
			if i == 1000 {
				t.Fatalf("it waits for ever, for %T", w.pending)
			}
			must(w.foldSome(100))
			w.durable = w.folded
			w.disk()
			w.clock = w.clock.Add(time.Second)
			must(w.step())
		}
		must(w.check(keys))
		removed += w.removed
		failed += w.failed
	})
	if removed == 0 || failed == 0 {
		t.Errorf("%d heads were removed, and %d compactions failed", removed, failed)
	}
}

// ending is a log of one key, and the compactor that looks at it.
type ending struct {
	*compactorWorld
	t *testing.T
}

func newEnding(t *testing.T) *ending {
	w := &ending{newCompactorWorld(100), t}
	w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("v")})
	w.mustSettle(t, 1)
	w.durable = w.folded
	return w
}

// at asks what is to be done with a log of so many bytes.
func (w *ending) at(bytes int64) (keyed.Effect, time.Time) {
	return w.c.Next(w.clock, LogLook{Bytes: bytes, Durable: w.durable, Folded: w.folded, Turn: keyed.Turn{Tail: w.tail, Staged: w.ledger.Staged}})
}

func (w *ending) begins(bytes int64) {
	w.t.Helper()
	e, _ := w.at(bytes)
	if _, ok := e.(keyed.SealLog); !ok {
		w.t.Fatalf("at %d bytes %T comes", bytes, e)
	}
	w.c.Sealing(1, 0)
}

// fails lets one begin and fail.
func (w *ending) fails(bytes int64) {
	w.t.Helper()
	w.begins(bytes)
	w.c.LogFailed(errors.New("no space"))
	if e, _ := w.at(bytes); e == nil || e.(keyed.Finished).Result.Err == nil || w.c.Running() {
		w.t.Fatalf("%+v", e)
	}
}

// ends lets one begin and do what it wants.
func (w *ending) ends(bytes int64) {
	w.t.Helper()
	w.begins(bytes)
	w.c.Persisted(1)
	for {
		switch e, _ := w.at(bytes); e := e.(type) {
		case keyed.FlushLog:
		case keyed.RetainFrom:
			w.c.Answer(keyed.Retained{})
		case keyed.Finished:
			if e.Result.Err != nil || w.c.Running() {
				w.t.Fatalf("%+v", e.Result)
			}
			return
		default:
			w.t.Fatalf("%T", e)
		}
	}
}

// After one that ended well the next begins when the log has grown by a quarter and by the floor.
func TestACompactionIsNotBegunAgainAtOnce(t *testing.T) {
	w := newEnding(t)
	none := func(bytes int64, why string) {
		t.Helper()
		if e, again := w.at(bytes); e != nil || !again.IsZero() {
			t.Fatalf("it begins %s: %T %v", why, e, again)
		}
	}
	none(300, "at the floor")
	w.ends(400)
	none(700, "again before the log has grown by its floor")
	w.ends(4000)
	w.clock = w.clock.Add(24 * time.Hour)
	none(5000, "again before the log has grown by a quarter")
	w.ends(5001)
}

// After one that failed the next begins by time, the first one after a minute, although the log has not grown: on a full disk none does. One that
// ended well ends that.
func TestACompactionThatFailedIsTriedAgainByTime(t *testing.T) {
	w := newEnding(t)
	pause := CompactionRetry
	for range 10 {
		w.fails(400)
		for _, before := range []time.Duration{pause, 1} {
			if e, again := w.at(400); e != nil || again.Sub(w.clock) != before {
				t.Fatalf("%T comes, and it is to be asked again in %v, want %v", e, again.Sub(w.clock), before)
			}
			w.clock = w.clock.Add(pause - 1)
		}
		w.clock = w.clock.Add(2 - pause)
		pause = min(2*pause, CompactionRetryMost)
	}
	if pause != CompactionRetryMost {
		t.Fatalf("the longest pause is %v", pause)
	}
	w.fails(5000) // it has grown meanwhile
	w.clock = w.clock.Add(CompactionRetryMost)
	w.ends(5000)
	w.fails(10_000)
	if e, again := w.at(10_000); e != nil || again.Sub(w.clock) != CompactionRetry {
		t.Fatalf("%T, and again in %v", e, again.Sub(w.clock))
	}
}

// Copies are claimed where they were made, before any write can come between: a log that is written to all the time is compacted at whatever pace.
func TestCopiesDoNotWaitForTheirPaceOnceTheyAreMade(t *testing.T) {
	w := newCompactorWorld(100)
	for i := range 300 { // a few batches of copies
		w.claim(Record{Op: OpPut, Key: fmt.Append(nil, "key", i), Value: make([]byte, 200)})
	}
	for range 900 {
		w.claim(Record{Op: OpPut, Key: []byte("hot"), Value: make([]byte, 200)})
	}
	w.mustSettle(t, 1200)
	w.durable = w.folded
	for i := 0; w.removed == 0; i++ {
		if i == 10_000 {
			t.Fatalf("a log of %d bytes, a put each 100 ms: it does not come to its end; it waits for %T", w.bytes(), w.pending)
		}
		for _, err := range []error{w.step(), w.foldSome(100), w.step()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		w.durable = w.folded
		w.disk()
		w.claim(Record{Op: OpPut, Key: []byte("hot"), Value: make([]byte, 200)})
		w.clock = w.clock.Add(100 * time.Millisecond)
	}
	if w.failed > 0 {
		t.Fatalf("%d failed on the way", w.failed)
	}
}

// Copies that found something else at their place are made again.
func TestCopiesThatCameTooLateAreMadeAgain(t *testing.T) {
	for _, inline := range []int{3, 100} {
		w := newCompactorWorld(inline)
		for i := range 100 {
			w.claim(Record{Op: OpPut, Key: fmt.Append(nil, "key", i), Value: []byte("value")})
		}
		for range 300 {
			w.claim(Record{Op: OpPut, Key: []byte("hot"), Value: []byte("v")})
		}
		w.mustSettle(t, 400)
		w.durable, w.stale = w.folded, 20
		for i := 0; w.removed == 0; i++ {
			if i == 1000 {
				t.Fatalf("inline %d: it does not come to its end with %d late copies to go; it waits for %T", inline, w.stale, w.pending)
			}
			for _, err := range []error{w.step(), w.foldSome(100), w.step()} {
				if err != nil {
					t.Fatal(err)
				}
			}
			w.durable = w.folded
			w.disk()
			w.clock = w.clock.Add(time.Minute)
		}
	}
}
