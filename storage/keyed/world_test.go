package keyed

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// world is a log, what clients did to it, the index that is folded from it, and whatever runs beside: claims that are not folded yet, a
// compaction, a snapshot, a clock that is set. The truth is the naive fold of all that clients did since the beginning, which knows no
// compaction: what is in the index must always be the truth as of where the fold stands.
type world struct {
	inline int
	now    uint64

	base, durable, tail id.Offset
	batches             []*batch.Batch // from base on; those past fold.Next() are claimed and not folded
	bounds              []id.Offset    // where segments begin, the one that holds base first
	done                []clientOp     // all that clients did, by offset, never trimmed

	fold       *Fold
	compaction *Compaction
	effect     Effect
	movedEnd   id.Offset
	snapshot   *Snapshot
	parts      []byte
	saved      []byte // the last snapshot that was finished
	savedUntil id.Offset

	steps, compactions, loads, crashes, ignored int
}

type clientOp struct {
	at     id.Offset
	change Change
}

func newWorld(inline int) *world {
	w := &world{inline: inline, now: 1000, bounds: []id.Offset{0}}
	w.fold = NewFold(newTestIndex(inline), decodeChange, 0)
	return w
}

// truth is the state as of an offset.
func (w *world) truth(asOf id.Offset) map[string]Entry {
	m := map[string]Entry{}
	for _, o := range w.done {
		if o.at >= asOf {
			break
		}
		key := string(o.change.Key)
		switch o.change.Kind {
		case Put:
			m[key] = Entry{Key: o.change.Key, Value: o.change.Value, ValueBytes: len(o.change.Value), Version: o.at, ExpiresAtMillis: o.change.ExpiresAtMillis}
		case Delete:
			delete(m, key)
		case Expire:
			if e, ok := m[key]; ok && e.Version == o.change.Version {
				delete(m, key)
			}
		case None, Move:
		}
	}
	return m
}

func (w *world) claim(b *batch.Batch) {
	w.batches = append(w.batches, b)
	w.tail = b.End()
}

func (w *world) write(changes ...Change) {
	for i, c := range changes {
		w.done = append(w.done, clientOp{w.tail.Add(uint64(i)), c})
	}
	w.claim(batchOf(w.tail, changes...))
}

// foldOne folds what was claimed next, and reports whether there was anything.
func (w *world) foldOne(t *rapid.T) bool {
	next := w.fold.Next()
	for _, b := range w.batches {
		if b.Base == next {
			if err := w.fold.Apply(b, nil); err != nil {
				t.Fatal(err)
			}
			return true
		}
	}
	return false
}

func (w *world) staged(key []byte) bool {
	next := w.fold.Next()
	return slices.ContainsFunc(w.done, func(o clientOp) bool { return o.at >= next && bytes.Equal(o.change.Key, key) })
}

func (w *world) turn() Turn { return Turn{Tail: w.tail, Staged: w.staged} }

// find is the batch that holds an offset.
func (w *world) find(at id.Offset) (*batch.Batch, error) {
	for _, b := range w.batches {
		if b.Base <= at && at < b.End() {
			return b, nil
		}
	}
	return nil, fmt.Errorf("offset %s is not in the log from %s to %s", at, w.base, w.tail)
}

// value reads a cold value.
func (w *world) value(t *rapid.T, p Place) []byte {
	b, err := w.find(p.Offset)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := RecordAt(b, p.Offset)
	if err != nil {
		t.Fatal(err)
	}
	c, err := decodeChange(payload, p.Offset, nil)
	if err != nil || !bytes.Equal(c.Key, p.Key) {
		t.Fatalf("offset %s holds %+v %v, not key %q", p.Offset, c, err, p.Key)
	}
	return c.Value
}

// compact answers the pending effect of the compaction, or begins one.
func (w *world) compact(t *rapid.T) {
	if w.compaction == nil {
		if !w.fold.Complete() {
			return
		}
		w.compaction = NewCompaction(w.fold.Index(), CompactionOptions{Encode: encodeMoved, Records: rapid.IntRange(1, 5).Draw(t, "records"), Bytes: 200})
		w.effect = w.compaction.Next(nil, w.turn())
		return
	}
	var in Input
	switch e := w.effect.(type) {
	case SealLog:
		if w.bounds[len(w.bounds)-1] < w.tail {
			w.bounds = append(w.bounds, w.tail)
		}
		in = Sealed{Cut: w.tail}
	case Pause:
		if w.fold.Next() < e.Until && rapid.Bool().Draw(t, "patient") {
			return
		}
		in = Resume{}
	case ReadValues:
		var list [][]byte
		for _, p := range e.Places {
			list = append(list, w.value(t, p))
		}
		in = Values{List: list}
	case AppendMoved:
		switch {
		case w.movedEnd == 0:
			in = Stale{}
		case w.movedEnd > w.fold.Next():
			return // not folded yet
		default:
			in = Moved{}
		}
	case FlushLog:
		w.durable = max(w.durable, e.Through)
		in = Flushed{}
	case RetainFrom:
		for n := rapid.IntRange(0, len(w.bounds)).Draw(t, "segments"); n > 0 && len(w.bounds) > 1 && w.bounds[1] <= e.Offset; n-- {
			w.trim(w.bounds[1])
		}
		in = Retained{}
	case Finished:
		if e.Result.Err == nil && e.Result.Left == 0 {
			w.compactions++
		}
		w.compaction, w.effect = nil, nil
		return
	}
	w.effect = w.compaction.Next(in, w.turn())
	if e, ok := w.effect.(AppendMoved); ok {
		if rapid.IntRange(0, 4).Draw(t, "somebody is faster") == 0 {
			w.write(Change{Kind: Delete, Key: []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"))})
		}
		if w.movedEnd = 0; e.Base != w.tail {
			return
		}
		b := &batch.Batch{Base: w.tail, Count: e.Count, Kind: batch.Records, Generation: 1, Body: e.Body}
		b.Summarize()
		w.claim(b)
		w.movedEnd = b.End()
	}
}

func (w *world) trim(to id.Offset) {
	w.base, w.bounds = to, w.bounds[1:]
	w.batches = slices.DeleteFunc(w.batches, func(b *batch.Batch) bool { return b.End() <= to })
}

// crash leaves some prefix of the log that holds all that is durable, and starts anew on it.
func (w *world) crash(t *rapid.T) {
	ends := []id.Offset{w.durable}
	for _, b := range w.batches {
		if b.End() > w.durable {
			ends = append(ends, b.End())
		}
	}
	w.tail = rapid.SampledFrom(ends).Draw(t, "tail")
	w.durable = w.tail
	w.batches = slices.DeleteFunc(w.batches, func(b *batch.Batch) bool { return b.Base >= w.tail })
	w.done = slices.DeleteFunc(w.done, func(o clientOp) bool { return o.at >= w.tail })
	for len(w.bounds) > 1 && w.bounds[len(w.bounds)-1] > w.tail {
		w.bounds = w.bounds[:len(w.bounds)-1]
	}
	w.compaction, w.effect, w.movedEnd, w.snapshot, w.parts = nil, nil, 0, nil, nil
	if w.savedUntil > w.tail {
		w.saved = nil // opening a log drops snapshots of records that it does not have
	}
	w.crashes++
	w.open(t)
}

func (w *world) open(t *rapid.T) {
	w.fold.Index().Close()
	w.fold = nil
	if w.saved != nil && rapid.Bool().Draw(t, "the snapshot is there") {
		o := Options{Budget: NewBudget(1 << 40), Seed: rapid.Uint64().Draw(t, "seed"), InlineMax: w.inline}
		f, err := Load(bytes.NewReader(w.saved), o, decodeChange, Source{Base: w.base, Tail: w.tail, Batch: w.find})
		if err != nil {
			w.ignored++
			if o.Budget.Used() != 0 {
				t.Fatalf("%d bytes are booked for a snapshot that was ignored", o.Budget.Used())
			}
		} else {
			w.fold = f
			w.loads++
		}
	}
	if w.fold == nil {
		w.fold = NewFold(newTestIndex(w.inline), decodeChange, w.base)
	}
	for w.foldOne(t) {
	}
	if !w.fold.Complete() || w.fold.Next() != w.tail {
		t.Fatalf("opened as of %s of %s", w.fold.Next(), w.tail)
	}
}

// snap takes one step of a snapshot.
func (w *world) snap() {
	if w.snapshot == nil {
		w.snapshot, w.parts = NewSnapshot(w.fold), nil
	}
	more := false
	if w.parts, more = w.snapshot.Next(w.parts); !more {
		w.saved, w.savedUntil, w.snapshot = w.parts, w.snapshot.Until(), nil
	}
}

// check compares the index with the truth.
func (w *world) check(t *rapid.T) {
	x := w.fold.Index()
	if w.steps++; x.Stats().Entries > 100 && w.steps%6 != 0 {
		return
	}
	if err := verify(x); err != nil {
		t.Fatal(err)
	}
	want := w.truth(w.fold.Next())
	have := map[string]Entry{}
	for c := Cursor(0); !c.Done(); {
		c = x.Scan(c, nil, func(e Entry) {
			e.Key = bytes.Clone(e.Key)
			if e.Cold {
				e.Value = w.value(t, Place{Key: e.Key, Offset: e.Offset})
			}
			if e.Offset < w.base || e.Version > e.Offset {
				t.Fatalf("%q has version %s at %s, and the log begins at %s", e.Key, e.Version, e.Offset, w.base)
			}
			e.Value, e.Offset, e.LogBytes, e.Cold = bytes.Clone(e.Value), 0, 0, false
			have[string(e.Key)] = e
		})
	}
	if !maps.EqualFunc(have, want, same) {
		t.Fatalf("as of %s of %s to %s: %v\nwant %v", w.fold.Next(), w.base, w.tail, have, want)
	}
	for key, e := range want {
		if _, ok := x.Get([]byte(key), w.now, nil); ok == e.Expired(w.now) {
			t.Fatalf("at %d a key that ends at %d is there: %v", w.now, e.ExpiresAtMillis, ok)
		}
	}
}

// spread makes sure that the table has several segments, so that snapshots and compactions take several steps.
func (w *world) spread(t *rapid.T, n int) {
	var list []Change
	for i := range n {
		list = append(list, put("spread-"+strconv.Itoa(i), "v"))
	}
	w.write(list...)
	w.foldOne(t)
}

// CAC-10, G6: any interleaving of writes, expiries, compaction, snapshots, clocks and crashes.
func TestEntriesVersionsAndExpiriesSurviveCompactionSnapshotsAndCrashesAtAnyStep(t *testing.T) {
	var compactions, loads, crashes, ignored int
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.SampledFrom([]int{-1, 6, 100}).Draw(t, "inline"))
		keys := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		value := rapid.StringN(0, 12, 12)
		if rapid.IntRange(0, 19).Draw(t, "large") == 0 {
			w.spread(t, 1200)
		}
		change := func(t *rapid.T) Change {
			c := Change{Kind: rapid.SampledFrom([]Kind{Put, Put, Put, Delete, Expire}).Draw(t, "kind"), Key: []byte(keys.Draw(t, "key"))}
			switch c.Kind {
			case Put:
				c.Value, c.ExpiresAtMillis = []byte(value.Draw(t, "value")), rapid.SampledFrom([]uint64{0, 0, 900, 1000, 1100}).Draw(t, "expires")
			case Expire:
				// of a version that may have been replaced meanwhile, as the leader's expiry pass writes them
				if e, ok := w.truth(w.fold.Next())[string(c.Key)]; ok {
					c.Version = e.Version
				} else {
					c.Kind = Delete
				}
			}
			return c
		}
		steps := map[string]func(*rapid.T){
			"":       w.check,
			"write":  func(t *rapid.T) { w.write(change(t)) },
			"batch":  func(t *rapid.T) { w.write(change(t), change(t), change(t)) },
			"fold":   func(t *rapid.T) { w.foldOne(t) },
			"fold 2": func(t *rapid.T) { w.foldOne(t) },
			"clock":  func(t *rapid.T) { w.now = rapid.SampledFrom([]uint64{899, 900, 999, 1000, 1101, 0}).Draw(t, "now") },
			"sync":   func(t *rapid.T) { w.durable = max(w.durable, w.fold.Next()) },
			"snap":   func(t *rapid.T) { w.snap() },
			"crash":  w.crash,
		}
		for i := range 6 {
			steps["compact "+strconv.Itoa(i)] = func(t *rapid.T) { w.compact(t); w.foldOne(t) }
		}
		t.Repeat(steps)
		compactions, loads, crashes, ignored = compactions+w.compactions, loads+w.loads, crashes+w.crashes, ignored+w.ignored
	})
	t.Logf("%d compactions to the end, %d crashes, %d snapshots loaded and %d ignored", compactions, crashes, loads, ignored)
	if !testing.Short() && (compactions == 0 || loads == 0 || crashes == 0) { // with -short there are too few cases to expect all of it
		t.Error("the campaign met too little")
	}
}
