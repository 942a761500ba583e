package reading

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// written is a snapshot of a fold as a whole.
func written(f *keyed.Fold) []byte {
	s := keyed.NewSnapshot(f)
	var out []byte
	for more := true; more; {
		out, more = s.Next(out)
	}
	return out
}

// sourceOf is a log from base on.
func sourceOf(log []*batch.Batch, base id.Offset) keyed.Source {
	tail := base
	if len(log) > 0 {
		tail = log[len(log)-1].End()
	}
	return keyed.Source{Base: base, Tail: tail, Batch: func(at id.Offset) (*batch.Batch, error) {
		for _, b := range log {
			if b.Base <= at && at < b.End() {
				return b, nil
			}
		}
		return nil, errors.New("it is not there")
	}}
}

func puts(t *testing.T, w *ledgerWorld, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		w.claim(Record{Op: OpPut, Key: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	w.mustSettle(t, len(pairs))
}

func TestAValueOfAKeyedCacheIsTheReadersAndAColdOneIsInTheLog(t *testing.T) {
	c := NewKeyedCache(keyedOptions(3), 0)
	w := newLedgerWorld(c)
	puts(t, w, "k", "abc", "cold", "abcd", "empty", "")
	l, ok := c.Get("k", 0)
	if !ok || string(l.Value) != "abc" || l.Cold {
		t.Fatalf("%+v %v", l, ok)
	}
	clear(l.Value)
	if l, _ := c.Get("k", 0); string(l.Value) != "abc" {
		t.Fatal("a reader changed the cache")
	}
	if l, ok := c.Get("empty", 0); !ok || l.Value == nil || len(l.Value) != 0 { // mission 80
		t.Fatalf("an empty value: %+v %v", l, ok)
	}
	l, ok = c.Get("cold", 0)
	if !ok || !l.Cold || l.Version != 1 || l.Offset != 1 {
		t.Fatalf("%+v %v", l, ok)
	}
	payload, err := keyed.RecordAt(w.log[1], l.Offset)
	if r, failed := DecodeRecord(payload); err != nil || failed != nil || string(r.Value) != "abcd" {
		t.Fatalf("the record that has it: %+v, %v, %v", r, err, failed)
	}
	if l, ok := c.Stat([]byte("k"), 0); !ok || l.Value != nil || l.Version != 0 {
		t.Fatalf("without the value: %+v %v", l, ok)
	}
	long := strings.Repeat("k", 3*shortKey)
	puts(t, w, long, "v")
	if l, ok := c.Get(long, 0); !ok || string(l.Value) != "v" {
		t.Fatalf("a long key: %+v %v", l, ok)
	}
}

func TestAGetOfAKeyedCacheAllocatesItsValueAlone(t *testing.T) {
	c := NewKeyedCache(keyedOptions(0), 0)
	key := strings.Repeat("k", 100)
	w := newLedgerWorld(c)
	puts(t, w, key, "value")
	if n := testing.AllocsPerRun(1000, func() { c.Get(key, 0) }); n != 1 {
		t.Errorf("%v allocations for a hit", n)
	}
	if n := testing.AllocsPerRun(1000, func() { c.Get("not there", 0) }); n != 0 {
		t.Errorf("%v allocations for a miss", n)
	}
}

func TestWhatHasEndedIsNamedByVersionAndItsKeyIsACopy(t *testing.T) {
	c := NewKeyedCache(keyedOptions(0), 0)
	w := newLedgerWorld(c)
	if _, ok := c.NextEnd(); ok {
		t.Error("something ends in an empty cache")
	}
	for i := range 10 {
		w.claim(Record{Op: OpPut, Key: fmt.Appendf(nil, "key-%d", i), Value: []byte("v"), ExpiresAtMillis: uint64(100 * (i + 1))})
	}
	w.mustSettle(t, 10)
	if next, ok := c.NextEnd(); !ok || next != 100 {
		t.Errorf("the next end is %d, %v", next, ok)
	}
	if list := c.Due(99, 100); list != nil {
		t.Errorf("%v have ended early", list)
	}
	if list := c.Due(450, 3); len(list) != 3 {
		t.Errorf("%d of at most 3", len(list))
	}
	list := c.Due(450, 100)
	if len(list) != 4 {
		t.Fatalf("%d have ended, want 4", len(list))
	}
	w.claim(list...)
	w.mustSettle(t, 1)
	for _, r := range list {
		if want := fmt.Sprintf("key-%d", r.Version); r.Op != OpExpire || string(r.Key) != want {
			t.Errorf("%+v, want the key %s", r, want)
		}
		clear(r.Key)
	}
	if list, ok := c.Current([]byte("key-"), 550, 100, 1000); !ok || len(list) != 5 || string(list[0].Key) != "key-5" {
		t.Errorf("%d are left, %v", len(list), ok)
	}
	if _, ok := c.Current(nil, 0, 100, 10); ok {
		t.Error("more bytes than were asked for")
	}
}

// G18: a snapshot and the records behind it are the whole log.
func TestASnapshotOfACacheIsGoneOnFrom(t *testing.T) {
	c := NewKeyedCache(keyedOptions(3), 0)
	w := newLedgerWorld(c)
	puts(t, w, "a", "1", "b", "long value")
	snapshot := written(c.Fold())
	puts(t, w, "a", "2")
	again, err := LoadKeyedCache(bytes.NewReader(snapshot), keyedOptions(3), sourceOf(w.log, 0))
	if err != nil || again.AsOf() != 2 || !again.Fold().Complete() {
		t.Fatal(err)
	}
	if err := again.Apply(w.log[2], nil); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		one, _ := c.Get(key, 0)
		two, ok := again.Get(key, 0)
		if !ok || fmt.Sprint(one) != fmt.Sprint(two) {
			t.Errorf("%s is %+v, and was %+v", key, two, one)
		}
	}
	snapshot[len(snapshot)-1]++
	var broken *keyed.SnapshotError
	if c, err := LoadKeyedCache(bytes.NewReader(snapshot), keyedOptions(3), sourceOf(w.log, 0)); c != nil || !errors.As(err, &broken) {
		t.Errorf("a damaged one: %v", err)
	}
}

func TestAFullBudgetRefusesAndNothingIsEvicted(t *testing.T) {
	o := keyedOptions(0)
	o.Budget = keyed.NewBudget(300)
	c := NewKeyedCache(o, 0)
	w := newLedgerWorld(c)
	puts(t, w, "a", "0123456789", "b", "0123456789")
	var full *keyed.FullError
	if err := c.Admit([]byte("c"), 200, true); !errors.As(err, &full) {
		t.Errorf("a third: %v", err)
	}
	if err := c.Admit([]byte("a"), 10, false); err != nil {
		t.Errorf("one in place of the first: %v", err)
	}
	if c.Index().Stats().Entries != 2 {
		t.Errorf("%d entries", c.Index().Stats().Entries)
	}
	c.Close()
	if _, ok := c.Get("a", 0); ok || o.Budget.Used() != 0 {
		t.Errorf("%d bytes are booked for a cache that is closed", o.Budget.Used())
	}
}

func BenchmarkKeyedCacheGet(b *testing.B) {
	c := NewKeyedCache(keyedOptions(0), 0)
	body := AppendRecord(nil, Record{Op: OpPut, Key: []byte("key"), Value: []byte("value")})
	if err := c.Apply(&batch.Batch{Kind: batch.Records, Count: 1, Body: body}, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Get("key", 1)
	}
}
