package reading

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// counterWorld is a log of counters with its ledger. The naive twin adds up the deltas of all claims.
type counterWorld struct {
	counters *Counters
	ledger   *CounterLedger
	log      []*batch.Batch
	folded   id.Offset
	tail     id.Offset
}

func newCounterWorld() *counterWorld {
	c := NewCounters(keyedOptions(-1), 0)
	return &counterWorld{counters: c, ledger: NewCounterLedger(c)}
}

func (w *counterWorld) claim(records ...CounterRecord) {
	b := &batch.Batch{Kind: batch.Records, Base: w.tail, Count: uint32(len(records)), Generation: 1}
	for _, r := range records {
		b.Body = AppendCounterRecord(b.Body, r)
	}
	b.Summarize()
	w.log = append(w.log, b)
	w.tail = b.End()
	w.ledger.Claimed(b)
}

func (w *counterWorld) settle(n int) error {
	for _, b := range w.log {
		if b.Base < w.folded || n == 0 {
			continue
		}
		n--
		if err := w.counters.Apply(b); err != nil {
			return err
		}
		w.folded = b.End()
		w.ledger.Settle(w.folded)
	}
	return nil
}

func (w *counterWorld) void(n int) {
	for ; n > 0 && w.tail > w.folded; n-- {
		w.tail = w.log[len(w.log)-1].Base
		w.log = w.log[:len(w.log)-1]
	}
	w.ledger.Void(w.tail)
}

// add appends what the judge says.
func (w *counterWorld) add(key string, delta int64) CounterDecision {
	d := w.ledger.Add([]byte(key), delta)
	if d.Append {
		w.claim(d.Record)
	}
	return d
}

// naive is the sum of the deltas below an offset; rests is the end of the last add that is not folded.
func (w *counterWorld) naive(key string, below id.Offset) (sum int64, ok bool, version, rests id.Offset) {
	for _, b := range w.log {
		at := b.Base
		for body := b.Body; len(body) > 0; at = at.Add(1) {
			payload, more, _ := cutPayload(body)
			body = more
			r, err := DecodeCounterRecord(payload)
			if err != nil {
				panic(err)
			}
			if r.Op != CounterAdd || string(r.Key) != key || at >= below {
				continue
			}
			if sum, ok, version = sum+r.Delta, true, at; b.End() > w.folded {
				rests = b.End()
			}
		}
	}
	return sum, ok, version, rests
}

func (w *counterWorld) check(keys []string) error {
	for _, key := range keys {
		want, ok, _, rests := w.naive(key, w.tail)
		if got, found, until := w.ledger.Sum([]byte(key)); got != want || found != ok || until != rests {
			return fmt.Errorf("newest of %q: %d %v until %s, want %d %v %s", key, got, found, until, want, ok, rests)
		}
		want, ok, version, _ := w.naive(key, w.folded)
		if got, found := w.counters.Get(key); got != want || found != ok {
			return fmt.Errorf("get %q: %d %v, want %d %v", key, got, found, want, ok)
		}
		if l, found := w.counters.Stat([]byte(key), 0); found != ok || l.Version != version {
			return fmt.Errorf("%q: %+v %v, want version %s", key, l, found, version)
		}
	}
	return w.ledger.verify()
}

// moves are the checkpoints of what is not claimed at the moment.
func (w *counterWorld) moves(keys []string) (list []CounterRecord) {
	for _, key := range keys {
		if sum, ok, version, _ := w.naive(key, w.folded); ok && !w.ledger.Staged([]byte(key)) {
			list = append(list, CounterRecord{Op: CounterCheckpoint, Sum: sum, Version: version, Key: []byte(key)})
		}
	}
	return list
}

// The sums are those of all deltas that did not fail, whatever is claimed, folded, void and copied in between, and no sum overflows. A
// log whose head was removed says the same. H2, H3, H4, H5, H7
func TestSumsAreThoseOfAllDeltas(t *testing.T) {
	keys := []string{"", "a", "b"}
	deltas := []int64{0, 1, -1, 5, math.MaxInt64, math.MinInt64, math.MaxInt64 / 2, math.MinInt64 / 2}
	rapid.Check(t, func(t *rapid.T) {
		w := newCounterWorld()
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key, delta := rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom(deltas).Draw(t, "delta")
				sum, _, _, rests := w.naive(key, w.tail)
				after := sum + delta
				fits := (after > sum) == (delta > 0) || delta == 0
				d := w.add(key, delta)
				if d.Append != fits || fits && (d.Sum != after || d.Until != 0) || !fits && (d.Sum != sum || d.Until != rests) {
					t.Fatalf("%d more than %d: %+v", delta, sum, d)
				}
			},
			"settle": func(t *rapid.T) {
				if err := w.settle(rapid.IntRange(1, 3).Draw(t, "batches")); err != nil {
					t.Fatal(err)
				}
			},
			"void": func(t *rapid.T) { w.void(rapid.IntRange(1, 3).Draw(t, "batches")) },
			"compaction": func(t *rapid.T) {
				if list := w.moves(keys); len(list) > 0 {
					w.claim(list...)
				}
			},
			"remove the head": func(t *rapid.T) {
				if err := w.settle(len(w.log)); err != nil {
					t.Fatal(err)
				}
				list := w.moves(keys)
				if len(list) == 0 {
					return
				}
				w.claim(list...)
				short := NewCounters(keyedOptions(0), w.folded)
				if err := errors.Join(short.Apply(w.log[len(w.log)-1]), w.settle(1)); err != nil {
					t.Fatal(err)
				}
				w.counters.Close()
				w.counters, w.ledger = short, NewCounterLedger(short)
			},
			"": func(t *rapid.T) {
				if err := w.check(keys); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// H6
func TestACounterThatWasNeverWrittenIsNotOneOfZero(t *testing.T) {
	w := newCounterWorld()
	if sum, ok := w.counters.Get("k"); ok || sum != 0 {
		t.Errorf("never written: %d %v", sum, ok)
	}
	for _, delta := range []int64{3, -3} {
		w.add("k", delta)
	}
	if sum, ok := w.counters.Get("k"); ok { // H4: what may still fail does not show
		t.Errorf("claimed: %d", sum)
	}
	if err := w.settle(2); err != nil {
		t.Fatal(err)
	}
	if sum, ok := w.counters.Get("k"); !ok || sum != 0 {
		t.Errorf("summed to 0: %d %v", sum, ok)
	}
}

// H5: what the next sum is rests on what is claimed.
func TestAnOverflowIsRefusedAndRestsOnWhatIsClaimed(t *testing.T) {
	w := newCounterWorld()
	w.add("k", math.MaxInt64)
	if d := w.add("k", 1); d.Append || d.Sum != math.MaxInt64 || d.Until != 1 || w.tail != 1 {
		t.Fatalf("%+v, the log ends at %s", d, w.tail)
	}
	w.void(1)
	if d := w.add("k", 1); !d.Append || d.Sum != 1 {
		t.Fatalf("the first add failed: %+v", d)
	}
	if err := w.settle(1); err != nil {
		t.Fatal(err)
	}
	if d := w.ledger.Add([]byte("k"), math.MaxInt64); d.Append || d.Until != 0 {
		t.Fatalf("over what is folded: %+v", d)
	}
}

// A sum that does not follow is never served.
func TestASumThatDoesNotFollowFromTheLogEndsTheFold(t *testing.T) {
	for name, r := range map[string]CounterRecord{
		"another sum":   {Op: CounterAdd, Delta: 2, Sum: 8, Key: []byte("k")},
		"one too large": {Op: CounterAdd, Delta: math.MaxInt64, Sum: math.MinInt64 + 4, Key: []byte("k")},
	} {
		w := newCounterWorld()
		w.add("k", 5)
		w.claim(r)
		var record *keyed.RecordError
		var counter *CounterRecordError
		if err := w.settle(2); !errors.As(err, &record) || !errors.As(err, &counter) || record.At != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// G18: a snapshot that is written while adds go on shows some of them already; folding on from where it began meets them again.
func TestASnapshotThatIsAheadOfItsBeginningIsFoldedOn(t *testing.T) {
	w := newCounterWorld()
	const keys = 3000 // several steps of a snapshot
	name := func(i int) string { return fmt.Sprintf("%0200d", i) }
	for i := range keys {
		w.add(name(i), 1)
	}
	if err := w.settle(keys); err != nil {
		t.Fatal(err)
	}
	s := keyed.NewSnapshot(w.counters.Fold())
	var out []byte
	for more := true; more; {
		out, more = s.Next(out)
		for i := 0; i < keys; i += 7 {
			w.add(name(i), 10)
		}
		if err := w.settle(keys); err != nil {
			t.Fatal(err)
		}
	}
	again, err := LoadCounters(bytes.NewReader(out), keyedOptions(-1), sourceOf(w.log, 0))
	if err != nil {
		t.Fatal(err)
	}
	if again.AsOf() != keys || again.Fold().Complete() {
		t.Fatalf("loaded as of %s, complete %v: it is not written while the log grew", again.AsOf(), again.Fold().Complete())
	}
	for _, b := range w.log[keys:] {
		if err := again.Apply(b); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keys {
		want, _ := w.counters.Get(name(i))
		if got, ok := again.Get(name(i)); !ok || got != want {
			t.Fatalf("%d is %d, want %d", i, got, want)
		}
	}
	if !again.Fold().Complete() || again.Index().Stats().Entries != keys {
		t.Error("it is not complete at the end of the log")
	}
}

func TestASnapshotOfACacheIsNoneOfCounters(t *testing.T) {
	budget := keyed.NewBudget(1 << 20)
	w := newLedgerWorld(NewKeyedCache(keyedOptions(0), 0))
	puts(t, w, "k", "not a sum")
	var wrong *keyed.SnapshotError
	c, err := LoadCounters(bytes.NewReader(written(w.table.(*KeyedCache).Fold())), keyed.Options{Budget: budget}, sourceOf(w.log, 0))
	if c != nil || !errors.As(err, &wrong) || budget.Used() != 0 {
		t.Errorf("%v, %v, %d bytes are booked", c, err, budget.Used())
	}
	if c, err := LoadCounters(bytes.NewReader(nil), keyed.Options{Budget: budget}, sourceOf(nil, 0)); c != nil || !errors.As(err, &wrong) {
		t.Errorf("an empty one: %v, %v", c, err)
	}
}

func TestCountersAreAdmittedWithinTheBudgetAndReadWithoutAllocating(t *testing.T) {
	o := keyed.Options{Budget: keyed.NewBudget(100)}
	c := NewCounters(o, 0)
	l := NewCounterLedger(c)
	if err := c.Admit([]byte("k")); err != nil {
		t.Fatal(err)
	}
	d := l.Add([]byte("k"), -7)
	if err := c.Apply(&batch.Batch{Kind: batch.Records, Count: 1, Body: AppendCounterRecord(nil, d.Record)}); err != nil {
		t.Fatal(err)
	}
	var full *keyed.FullError
	if err := c.Admit([]byte("l")); !errors.As(err, &full) {
		t.Errorf("a second: %v", err)
	}
	if n := testing.AllocsPerRun(1000, func() { c.Get("k") }); n != 0 {
		t.Errorf("%v allocations per read", n)
	}
	if sum, ok := c.Get("k"); !ok || sum != -7 {
		t.Errorf("%d %v", sum, ok)
	}
	c.Close()
	if _, ok := c.Get("k"); ok || o.Budget.Used() != 0 {
		t.Errorf("%d bytes are booked for counters that are closed", o.Budget.Used())
	}
}
