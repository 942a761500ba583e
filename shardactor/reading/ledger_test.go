package reading

import (
	"bytes"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// overTables runs a test of writes over both kinds of caches.
func overTables(t *testing.T, test func(t *testing.T, w *ledgerWorld)) {
	for name, build := range tables() {
		t.Run(name, func(t *testing.T) { test(t, newLedgerWorld(build())) })
	}
}

func (w *ledgerWorld) mustSettle(t *testing.T, n int) {
	t.Helper()
	if err := w.settle(n); err != nil {
		t.Fatal(err)
	}
}

// G20: the second of two racing puts knows the first, and its answer waits for it.
func TestOfTwoRacingPutsIfAbsentOneIsAppended(t *testing.T) {
	overTables(t, func(t *testing.T, w *ledgerWorld) {
		first := w.ledger.PutIf([]byte("k"), []byte("one"), 0, Condition{}, w.now)
		if !first.Append || !first.Applied {
			t.Fatalf("the first: %+v", first)
		}
		w.claim(first.Record)
		second := w.ledger.PutIf([]byte("k"), []byte("two"), 0, Condition{}, w.now)
		if second.Append || second.Applied || !second.HasVersion || second.Version != 0 || second.Until != 1 {
			t.Fatalf("the second: %+v", second)
		}
		w.void(1) // the first failed: the second is judged again, and wins
		if again := w.ledger.PutIf([]byte("k"), []byte("two"), 0, Condition{}, w.now); !again.Append {
			t.Fatalf("the second, after the first failed: %+v", again)
		}
	})
}

// mission 232
func TestAnEntryThatHasEndedCountsAsAbsentWhileItStandsInTheIndex(t *testing.T) {
	overTables(t, func(t *testing.T, w *ledgerWorld) {
		w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("v"), ExpiresAtMillis: w.now + 5})
		for _, folded := range []bool{false, true} {
			until := id.Offset(1)
			if folded {
				w.mustSettle(t, 1)
				until = 0
			}
			at, ended := w.now+4, w.now+5
			if d := w.ledger.PutIf([]byte("k"), nil, 0, Condition{}, at); d.Append || d.Until != until {
				t.Errorf("put if absent before the end: %+v", d)
			}
			if d := w.ledger.PutIf([]byte("k"), nil, 0, Condition{}, ended); !d.Append {
				t.Errorf("put if absent at the end: %+v", d)
			}
			if d := w.ledger.PutIf([]byte("k"), nil, 0, Condition{HasVersion: true}, ended); d.Append || d.HasVersion || d.Until != until {
				t.Errorf("put if its version at the end: %+v", d)
			}
			// Who is told that there is nothing does not find it again when the clock is set back.
			if d := w.ledger.Delete([]byte("k"), ended); !d.Append || d.Record.Op != OpExpire || d.Record.Version != 0 || d.Found {
				t.Errorf("delete at the end: %+v", d)
			}
			if d := w.ledger.DeleteIf([]byte("k"), 0, ended); d.Append || d.HasVersion || d.Until != until {
				t.Errorf("delete if its version at the end: %+v", d)
			}
			if d := w.ledger.Expire([]byte("k"), 0, at); d.Append {
				t.Errorf("its expiry before the end: %+v", d)
			}
			if d := w.ledger.Expire([]byte("k"), 0, ended); !d.Append || d.Record.Op != OpExpire {
				t.Errorf("its expiry at the end: %+v", d)
			}
		}
	})
}

// mission 230
func TestADeleteAnswersWhatItRemovesAndAppendsNothingForNothing(t *testing.T) {
	overTables(t, func(t *testing.T, w *ledgerWorld) {
		if d := w.ledger.Delete([]byte("k"), w.now); d.Append || d.Found || d.Until != 0 {
			t.Fatalf("of nothing: %+v", d)
		}
		w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("long value")})
		d := w.ledger.Delete([]byte("k"), w.now)
		if !d.Append || string(d.Value) != "long value" { // it is in the claimed batch
			t.Fatalf("of a claim: %+v", d)
		}
		w.claim(d.Record)
		if d := w.ledger.Delete([]byte("k"), w.now); d.Append || d.Found || d.Until != 2 {
			t.Fatalf("of what a claim deletes: %+v", d)
		}
	})
}

func TestADeleteOfAColdValueIsDecidedAtOnceAndSaysWhereTheValueIs(t *testing.T) {
	w := newLedgerWorld(tables()["keyed"]())
	w.claim(Record{Op: OpPut, Key: []byte("x"), Value: []byte("v")})
	w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("cold")})
	w.claim(Record{Op: OpMove, Key: []byte("k"), Value: []byte("cold"), Version: 1})
	w.mustSettle(t, 3)
	d := w.ledger.Delete([]byte("k"), w.now)
	if !d.Append || !d.Found || !d.Cold || len(d.Value) > 0 || d.ValueBytes != 4 || d.Version != 1 || d.Offset != 2 {
		t.Fatalf("%+v", d)
	}
	w.claim(d.Record)
	if d := w.ledger.Delete([]byte("k"), w.now); d.Append || d.Found || d.Until != 4 {
		t.Fatalf("of what a claim deletes: %+v", d)
	}
	w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("newer")})
	if d := w.ledger.Delete([]byte("k"), w.now); !d.Append || d.Cold || string(d.Value) != "newer" || d.Offset != 4 {
		t.Fatalf("put again: %+v", d)
	}
}

// G9
func TestAPutAfterItsEndWasFoundKeepsTheValue(t *testing.T) {
	overTables(t, func(t *testing.T, w *ledgerWorld) {
		w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("v"), ExpiresAtMillis: w.now})
		w.mustSettle(t, 1)
		w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("w"), ExpiresAtMillis: w.now + 100})
		if d := w.ledger.Expire([]byte("k"), 0, w.now); d.Append || d.Until != 2 {
			t.Fatalf("the expiry of the version before: %+v", d)
		}
		w.void(1)
		d := w.ledger.Expire([]byte("k"), 0, w.now)
		if !d.Append {
			t.Fatalf("the put failed: %+v", d)
		}
		w.claim(d.Record)
		if d := w.ledger.Expire([]byte("k"), 0, w.now); d.Append || d.Until != 2 {
			t.Fatalf("its expiry is claimed: %+v", d)
		}
	})
}

// No judge makes such records; a ledger is told of them all the same.
func TestClaimsWithoutEffectChangeNothing(t *testing.T) {
	overTables(t, func(t *testing.T, w *ledgerWorld) {
		w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("v")})
		w.claim(Record{Op: OpExpire, Key: []byte("k"), Version: 7}, Record{Op: OpExpire, Key: []byte("none"), Version: 7})
		w.claim(Record{Op: OpPut, Key: []byte("l"), Value: []byte("v")})
		w.claim(Record{Op: OpMove, Key: []byte("l"), Value: []byte("older"), Version: 2})
		for key, want := range map[string]id.Offset{"k": 1, "l": 4} {
			if l, ok, until := w.ledger.Newest([]byte(key), w.now); !ok || string(l.Value) != "v" || until != want {
				t.Errorf("%s: %+v %v until %s", key, l, ok, until)
			}
		}
		if _, ok, until := w.ledger.Newest([]byte("none"), w.now); ok || until != 0 || !w.ledger.Staged([]byte("none")) {
			t.Errorf("a key with an expiry of nothing: %v, until %s", ok, until)
		}
	})
}

// Compactions and expiry passes append several records at once: each has an offset of its own, and all become durable together.
func TestEachRecordOfABatchHasItsOwnOffsetAndTheEndOfTheBatch(t *testing.T) {
	overTables(t, func(t *testing.T, w *ledgerWorld) {
		w.claim(Record{Op: OpPut, Key: []byte("a"), Value: []byte("1")}, Record{Op: OpPut, Key: []byte("b"), Value: []byte("2")}, Record{Op: OpPut, Key: []byte("a"), Value: []byte("3")})
		for key, want := range map[string]id.Offset{"a": 2, "b": 1} {
			if l, ok, until := w.ledger.Newest([]byte(key), w.now); !ok || l.Version != want || until != 3 {
				t.Errorf("%s: %+v %v until %s", key, l, ok, until)
			}
		}
	})
}

func TestABatchThatIsNoneAndOneOutOfOrderPanic(t *testing.T) {
	put := AppendRecord(nil, Record{Op: OpPut, Key: []byte("k"), Value: []byte("v")})
	for name, b := range map[string]*batch.Batch{
		"cut off":        {Kind: batch.Records, Base: 1, Count: 1, Body: put[:len(put)-1]},
		"not a record":   {Kind: batch.Records, Base: 1, Count: 1, Body: []byte{0, 0, 0, 1, 9}},
		"another number": {Kind: batch.Records, Base: 1, Count: 2, Body: put},
		"out of order":   {Kind: batch.Records, Base: 0, Count: 1, Body: put},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "reading: ") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			w := newLedgerWorld(tables()["keyed"]())
			w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("v")})
			w.ledger.Claimed(b)
		}()
	}
	w := newLedgerWorld(tables()["keyed"]())
	w.ledger.Claimed(&batch.Batch{Kind: batch.GenerationStart, Base: 0, Count: 1, Body: []byte("not a record")})
	if w.ledger.Len() != 0 {
		t.Error("a batch that has no records changes a key")
	}
}

// A ledger keeps nothing of what is settled or void, and no more room than the next claims need.
func TestALedgerIsEmptyOnceAllIsSettledOrVoid(t *testing.T) {
	w := newLedgerWorld(tables()["in memory"]())
	for round := range 3 {
		for range 2 * spareChanges {
			w.claim(Record{Op: OpPut, Key: []byte{byte(round)}, Value: []byte("v")})
		}
		w.mustSettle(t, spareChanges)
		if n := w.ledger.Len(); n != spareChanges || len(w.ledger.changes) != n || len(w.ledger.newest) != 1 {
			t.Fatalf("half of it is settled: %d records, %d places, %d keys", n, len(w.ledger.changes), len(w.ledger.newest))
		}
		for _, x := range w.ledger.changes[:cap(w.ledger.changes)][w.ledger.Len():] {
			if x.key != nil {
				t.Fatal("a place that is free holds on to a batch")
			}
		}
		w.void(spareChanges / 2)
		w.mustSettle(t, spareChanges)
		if w.ledger.Len() != 0 || len(w.ledger.newest) != 0 || cap(w.ledger.changes) > spareChanges {
			t.Fatalf("%d records, %d keys, room for %d", w.ledger.Len(), len(w.ledger.newest), cap(w.ledger.changes))
		}
	}
	w.claim(Record{Op: OpPut, Key: []byte("k"), Value: []byte("v")})
	w.mustSettle(t, 1)
	for _, x := range w.ledger.changes[:cap(w.ledger.changes)] {
		if x.key != nil || x.live.Value != nil {
			t.Fatal("it holds on to a batch that is settled")
		}
	}
}

// A put costs the ledger the key in its table, and the fold nothing.
func TestAPutThatIsJudgedAndFoldedAllocatesNoMoreThanItsKey(t *testing.T) {
	cache := NewKeyedCache(keyedOptions(0), 0)
	l := NewLedger(cache)
	key, value := bytes.Repeat([]byte("k"), 32), bytes.Repeat([]byte("v"), 100)
	b := &batch.Batch{Kind: batch.Records, Count: 1}
	step := func() {
		d := l.Put(key, value, 5000)
		b.Body = AppendRecord(b.Body[:0], d.Record)
		l.Claimed(b)
		if err := cache.Apply(b, nil); err != nil {
			t.Fatal(err)
		}
		l.Settle(b.End())
		b.Base = b.End()
	}
	step()
	if n := testing.AllocsPerRun(1000, step); n > 1 {
		t.Errorf("%v allocations per put", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		l.PutIf(key, value, 0, Condition{}, 1)
		l.DeleteIf(key, 0, 1)
		l.Expire(key, 0, 1)
		l.Staged(key)
	}); n != 0 {
		t.Errorf("%v allocations for judging writes that need no value", n)
	}
}
