package keyed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

func newTestFold() *Fold { return NewFold(newTestIndex(0), decodeChange, 0) }

func get(t *testing.T, f *Fold, key string) (Entry, bool) {
	t.Helper()
	return f.Index().Get([]byte(key), 1000, nil)
}

// G1, G9, G10, G12: an expiry is a moment, and only a record ends a life for good.
func TestAnExpiryIsAMomentOfTheReadersClockAndADeleteIsForGood(t *testing.T) {
	f := newTestFold()
	apply(t, f, batchOf(0, Change{Kind: Put, Key: []byte("k"), Value: []byte("v"), ExpiresAtMillis: 500}))
	for _, c := range []struct {
		now  uint64
		want bool
	}{{499, true}, {500, false}, {3_600_500, false}, {499, true}, {0, true}} {
		if _, ok := f.Index().Get([]byte("k"), c.now, nil); ok != c.want {
			t.Errorf("at %d: %v, want %v", c.now, ok, c.want)
		}
	}
	apply(t, f, batchOf(1, Change{Kind: Put, Key: []byte("k"), Value: []byte("w"), ExpiresAtMillis: 900}))
	apply(t, f, batchOf(2, Change{Kind: Expire, Key: []byte("k"), Version: 0}))
	if e, ok := f.Index().Get([]byte("k"), 899, nil); !ok || string(e.Value) != "w" || e.Version != 1 {
		t.Fatalf("the expiry of an older version took the newer one: %+v %v", e, ok)
	}
	apply(t, f, batchOf(3, Change{Kind: Expire, Key: []byte("k"), Version: 1}))
	if _, ok := f.Index().Get([]byte("k"), 0, nil); ok {
		t.Fatal("a clock that was set back brought a deleted key back")
	}
}

// G2, G19, G22: a move says nothing new.
func TestAMoveKeepsVersionAndExpiryAndNeverWinsOverSomethingNewer(t *testing.T) {
	f := newTestFold()
	move := Change{Kind: Move, Key: []byte("k"), Value: []byte("v"), Version: 0, ExpiresAtMillis: 5000}
	apply(t, f, batchOf(0, Change{Kind: Put, Key: []byte("k"), Value: []byte("v"), ExpiresAtMillis: 5000}))
	apply(t, f, batchOf(1, move))
	if e, ok := get(t, f, "k"); !ok || e.Version != 0 || e.Offset != 1 || e.ExpiresAtMillis != 5000 || string(e.Value) != "v" {
		t.Fatalf("moved to %+v %v", e, ok)
	}
	apply(t, f, batchOf(2, put("k", "newer")))
	apply(t, f, batchOf(3, move))
	if e, _ := get(t, f, "k"); e.Version != 2 || e.Offset != 2 || string(e.Value) != "newer" {
		t.Fatalf("a move replaced a newer value: %+v", e)
	}
	// A log whose head is gone begins with the copy.
	late := NewFold(newTestIndex(0), decodeChange, 1)
	apply(t, late, batchOf(1, move))
	if e, ok := get(t, late, "k"); !ok || e.Version != 0 || e.Offset != 1 {
		t.Fatalf("folded from the copy: %+v %v", e, ok)
	}
	apply(t, late, batchOf(2, Change{Kind: Expire, Key: []byte("k"), Version: 0}))
	if _, ok := get(t, late, "k"); ok {
		t.Fatal("an expiry does not find the version that was moved")
	}
}

func TestEachRecordIsToldWithWhatWasThereBefore(t *testing.T) {
	f := newTestFold()
	var told []string
	each := func(a Applied) {
		s := a.At.String() + " " + string(a.Change.Key)
		if a.Existed {
			s += " was " + string(a.Before.Value)
		}
		if !a.Effect {
			s += ", nothing"
		}
		told = append(told, s)
	}
	changes := []Change{put("a", "1"), put("a", "2"), {Kind: Delete, Key: []byte("b")}, {Kind: Delete, Key: []byte("a")}, {Kind: None}, {Kind: Expire, Key: []byte("a"), Version: 1}}
	if err := f.Apply(batchOf(0, changes...), each); err != nil {
		t.Fatal(err)
	}
	want := []string{"0 a", "1 a was 1", "2 b, nothing", "3 a was 2", "5 a, nothing"}
	if !reflect.DeepEqual(told, want) {
		t.Fatalf("told %q, want %q", told, want)
	}
}

func TestOtherKindsOfBatchesCountAndChangeNothing(t *testing.T) {
	f := newTestFold()
	apply(t, f, &batch.Batch{Base: 0, Count: 1, Kind: batch.GenerationStart, Body: []byte{1}})
	apply(t, f, batchOf(1, put("a", "1")))
	apply(t, f, batchOf(1, put("a", "again"))) // folded before
	if e, ok := get(t, f, "a"); !ok || string(e.Value) != "1" || f.Next() != 2 {
		t.Fatalf("%+v %v, next %s", e, ok, f.Next())
	}
}

// G28: what is not understood is an error and not a miss.
func TestARecordThatIsNotUnderstoodEndsTheFold(t *testing.T) {
	gap := newTestFold()
	var g *GapError
	if err := gap.Apply(batchOf(5, put("a", "1")), nil); !errors.As(err, &g) || g.Want != 0 || g.Got != 5 {
		t.Fatalf("a gap: %v", err)
	}
	apply(t, gap, batchOf(0, put("a", "1"))) // which did no harm

	tooLong := batchOf(1, put("b", "1"))
	tooLong.Body = append(tooLong.Body, 0)
	tooShort := batchOf(1, put("b", "1"))
	tooShort.Count = 2
	lying := batchOf(1, put("b", "1"))
	binary.BigEndian.PutUint32(lying.Body, math.MaxUint32)
	for name, b := range map[string]*batch.Batch{
		"a record without a key":            {Base: 1, Count: 1, Kind: batch.Records, Body: []byte{0, 0, 0, 1, 1}},
		"an unknown kind":                   batchOf(1, Change{Kind: 9, Key: []byte("b")}),
		"a version that is not there yet":   batchOf(1, Change{Kind: Move, Key: []byte("b"), Version: 1}),
		"an expiry of what is to come":      batchOf(1, Change{Kind: Expire, Key: []byte("b"), Version: 7}),
		"a key that is too long":            batchOf(1, Change{Kind: Put, Key: make([]byte, KeyMax+1)}),
		"bytes behind the last record":      tooLong,
		"fewer records than it says":        tooShort,
		"a record longer than what is left": lying,
	} {
		f := newTestFold()
		apply(t, f, batchOf(0, put("a", "1")))
		err := f.Apply(b, nil)
		var record *RecordError
		var body *BodyError
		if !errors.As(err, &record) && !errors.As(err, &body) {
			t.Errorf("%s: %v", name, err)
		}
		if again := f.Apply(batchOf(2, put("c", "1")), nil); again != err || f.Complete() || f.Next() != 1 {
			t.Errorf("%s: the fold went on to %s, complete %v, with %v", name, f.Next(), f.Complete(), again)
		}
	}
}

func TestARecordIsFoundInItsBatchByItsOffset(t *testing.T) {
	b := batchOf(7, put("a", "1"), put("b", "2"), put("c", "3"))
	for i, want := range []string{"a", "b", "c"} {
		p, err := RecordAt(b, id.Offset(7+i))
		if c, _ := decodeChange(p, 0, nil); err != nil || string(c.Key) != want {
			t.Errorf("record %d: %q, %v", i, c.Key, err)
		}
	}
	short := *b
	short.Body = b.Body[:len(b.Body)-1]
	other := *b
	other.Kind = batch.Checkpoint
	for name, found := range map[string]func() ([]byte, error){
		"before it":       func() ([]byte, error) { return RecordAt(b, 6) },
		"behind it":       func() ([]byte, error) { return RecordAt(b, 10) },
		"of another kind": func() ([]byte, error) { return RecordAt(&other, 7) },
		"cut off":         func() ([]byte, error) { return RecordAt(&short, 9) },
	} {
		var body *BodyError
		if p, err := found(); p != nil || !errors.As(err, &body) {
			t.Errorf("%s: %q, %v", name, p, err)
		}
	}
}

// counter decodes the records of counters: a delta (0) or a checkpoint (1), a value, a key. The state is the sum.
func counter() Decoder {
	var sum [8]byte
	return func(p []byte, _ id.Offset, old Lookup) (Change, error) {
		if len(p) < 9 {
			return Change{}, errors.New("too short")
		}
		n := int64(binary.BigEndian.Uint64(p[1:]))
		if v, ok := old(p[9:]); ok && p[0] == 0 {
			n += int64(binary.BigEndian.Uint64(v))
		}
		binary.BigEndian.PutUint64(sum[:], uint64(n))
		return Change{Kind: Put, Key: p[9:], Value: sum[:]}, nil
	}
}

// A snapshot that was written while the log was folded on shows values of records that its fold meets again. A decoder that adds to what
// was there before must not be told what came after.
func TestADecoderIsNotToldOfLaterRecordsThatASnapshotShows(t *testing.T) {
	f := newTestFold()
	apply(t, f, batchOf(0, put("k", "later")))
	f.index.asOf, f.until = 0, 1 // as after Load of a snapshot whose beginning was before the record
	var told []string
	f.decode = func(p []byte, at id.Offset, old Lookup) (Change, error) {
		c, err := decodeChange(p, at, old)
		v, ok := old(c.Key)
		told = append(told, fmt.Sprint(string(v), ok))
		return c, err
	}
	apply(t, f, batchOf(0, put("k", "later")))
	apply(t, f, batchOf(1, put("k", "newest")))
	if want := []string{"false", "latertrue"}; !reflect.DeepEqual(told, want) {
		t.Fatalf("told %q, want %q", told, want)
	}
	if e, ok := get(t, f, "k"); !ok || string(e.Value) != "newest" {
		t.Fatalf("%+v %v", e, ok)
	}
}

// H2, H3, H7: counters are a fold of the same kind, whose records add to what is there.
func TestACounterIsAFoldWhoseDecoderReadsTheValueBefore(t *testing.T) {
	record := func(kind byte, n int64, key string) []byte {
		p := append(binary.BigEndian.AppendUint64([]byte{kind}, uint64(n)), key...)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)
	}
	var log []*batch.Batch
	add := func(kind byte, n int64, key string) {
		log = append(log, &batch.Batch{Base: id.Offset(len(log)), Count: 1, Kind: batch.Records, Body: record(kind, n, key)})
	}
	for i := range 100 {
		add(0, int64(i), "a")
		add(0, -1, "b")
	}
	full := NewFold(newTestIndex(0), counter(), 0)
	for _, b := range log {
		apply(t, full, b)
	}
	sum := func(f *Fold, key string) int64 {
		e, ok := f.Index().Get([]byte(key), 0, nil)
		if !ok {
			t.Fatalf("%s is not there", key)
		}
		return int64(binary.BigEndian.Uint64(e.Value))
	}
	if sum(full, "a") != 4950 || sum(full, "b") != -100 {
		t.Fatalf("a is %d, b is %d", sum(full, "a"), sum(full, "b"))
	}
	// Compacted by checkpoints, the head removed.
	cut := id.Offset(len(log))
	c := NewCompaction(full.Index(), CompactionOptions{Encode: func(dst []byte, e Entry) []byte {
		return append(append(append(dst, 1), e.Value...), e.Key...)
	}})
	drive(t, full, c, func(e AppendMoved) {
		b := &batch.Batch{Base: id.Offset(len(log)), Count: 1, Kind: batch.Records, Body: e.Body}
		for b.Count = e.Count; id.Offset(len(log)) < b.End(); log = append(log, b) {
		}
		apply(t, full, b)
	}, cut)
	add(0, 5, "a")
	short := NewFold(newTestIndex(0), counter(), cut)
	for _, b := range log[cut:] {
		apply(t, short, b)
	}
	if sum(short, "a") != 4955 || sum(short, "b") != -100 {
		t.Fatalf("after the checkpoints a is %d, b is %d", sum(short, "a"), sum(short, "b"))
	}
}

// A delta that an entry of the snapshot has already in it is not added again.
func TestASnapshotOfCountersThatIsWrittenWhileTheyGoOnCountsNothingTwice(t *testing.T) {
	var log []*batch.Batch
	f := NewFold(newTestIndex(0), counter(), 0)
	add := func(key int) {
		p := fmt.Append(binary.BigEndian.AppendUint64([]byte{0}, 1), "counter-", key)
		b := &batch.Batch{Base: f.Next(), Count: 1, Kind: batch.Records, Body: append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)}
		log = append(log, b)
		apply(t, f, b)
	}
	const counters = 12_000
	for i := range counters {
		add(i)
	}
	s := NewSnapshot(f)
	var snap []byte
	steps := 0
	for more := true; more; steps++ {
		for i := range 1000 {
			add((steps*331 + i*7) % counters)
		}
		snap, more = s.Next(snap)
	}
	back, err := Load(bytes.NewReader(snap), Options{Budget: NewBudget(1 << 30)}, counter(), Source{Base: 0, Tail: f.Next(), Batch: func(at id.Offset) (*batch.Batch, error) {
		return log[at], nil
	}})
	if err != nil || steps < 2 {
		t.Fatalf("%v, written in %d steps", err, steps)
	}
	for _, b := range log[back.Next():] {
		apply(t, back, b)
	}
	requireSame(t, back, f)
}

// drive runs a compaction to its end.
func drive(t *testing.T, f *Fold, c *Compaction, moved func(AppendMoved), cut id.Offset) Result {
	t.Helper()
	var in Input
	for range 1_000_000 {
		switch e := c.Next(in, turnOf(f)).(type) {
		case SealLog:
			in = Sealed{Cut: cut}
		case Pause:
			in = Resume{}
		case AppendMoved:
			moved(e)
			in = Moved{}
		case FlushLog:
			in = Flushed{}
		case RetainFrom:
			in = Retained{}
		case ReadValues:
			t.Fatal("a value is not at hand")
		case Finished:
			return e.Result
		}
	}
	t.Fatal("a compaction that never ends")
	return Result{}
}
