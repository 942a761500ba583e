package keyed

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire/id"
)

// twin is the obviously right index.
type twin map[string]Entry

func same(a, b Entry) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.Cold == b.Cold && a.ValueBytes == b.ValueBytes &&
		a.Version == b.Version && a.Offset == b.Offset && a.ExpiresAtMillis == b.ExpiresAtMillis && a.LogBytes == b.LogBytes
}

func (m twin) sorted(prefix string, now uint64) (list []Entry) {
	for _, e := range m {
		if bytes.HasPrefix(e.Key, []byte(prefix)) && !e.Expired(now) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return bytes.Compare(a.Key, b.Key) })
	return list
}

const twinInline = 40

// machine is an index and its twin, and what may be done to them.
type machine struct {
	x    *Index
	m    twin
	next id.Offset
	now  uint64

	steps int
}

func (w *machine) put(key, value []byte, expires uint64) {
	w.next++
	e := Entry{Key: key, Value: value, ValueBytes: len(value), Version: w.next / 2, Offset: w.next, ExpiresAtMillis: expires, LogBytes: len(key) + len(value)}
	if err := w.x.Put(e); err != nil {
		panic(err)
	}
	if len(value) > twinInline {
		e.Value, e.Cold = nil, true
	}
	w.m[string(key)] = e
}

func (w *machine) check(t *rapid.T) {
	if w.steps++; w.steps%4 != 0 && len(w.m) > 100 {
		return
	}
	if err := verify(w.x); err != nil {
		t.Fatal(err)
	}
	if got := w.x.Stats().Entries; got != len(w.m) {
		t.Fatalf("%d entries, want %d", got, len(w.m))
	}
}

func TestIndexIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &machine{x: newTestIndex(twinInline), m: twin{}, now: 1000}
		few := rapid.StringMatching(`[ab]{0,3}`)
		value := rapid.SliceOfN(rapid.Byte(), 0, 60)
		expires := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(1, 2000))
		t.Repeat(map[string]func(*rapid.T){
			"": w.check,
			"put": func(t *rapid.T) {
				w.put([]byte(few.Draw(t, "key")), value.Draw(t, "value"), expires.Draw(t, "expires"))
			},
			"put many": func(t *rapid.T) {
				n, from, step := rapid.IntRange(1, 1500).Draw(t, "n"), rapid.IntRange(0, 1500).Draw(t, "from"), rapid.Uint64Range(0, 3).Draw(t, "step")
				v := value.Draw(t, "value")
				for i := range n {
					w.put(fmt.Appendf(nil, "many-%06d", from+i), v, step*uint64(i))
				}
			},
			"delete": func(t *rapid.T) {
				key := few.Draw(t, "key")
				_, had := w.m[key]
				if got := w.x.Delete([]byte(key)); got != had {
					t.Fatalf("delete %q: %v, want %v", key, got, had)
				}
				delete(w.m, key)
			},
			"delete many": func(t *rapid.T) {
				n, from := rapid.IntRange(1, 3000).Draw(t, "n"), rapid.IntRange(0, 1500).Draw(t, "from")
				for i := range n {
					key := fmt.Sprintf("many-%06d", from+i)
					w.x.Delete([]byte(key))
					delete(w.m, key)
				}
			},
			"clock": func(t *rapid.T) { w.now = rapid.Uint64Range(0, 2200).Draw(t, "now") },
			"get":   func(t *rapid.T) { w.get(t, []byte(few.Draw(t, "key"))) },
			"get of many": func(t *rapid.T) {
				w.get(t, fmt.Appendf(nil, "many-%06d", rapid.IntRange(0, 6000).Draw(t, "n")))
			},
			"range": func(t *rapid.T) {
				prefix := rapid.SampledFrom([]string{"", "a", "ab", "many-0010", "z"}).Draw(t, "prefix")
				list, ok := w.x.Range([]byte(prefix), w.now, len(w.m), 1<<30)
				if want := w.m.sorted(prefix, w.now); !ok || !slices.EqualFunc(list, want, same) {
					t.Fatalf("range %q: %v\nwant %v", prefix, list, want)
				}
			},
			"due": w.due,
		})
	})
}

func (w *machine) get(t *rapid.T, key []byte) {
	got, ok := w.x.Get(key, w.now, []byte("left over"))
	want, had := w.m[string(key)]
	if had = had && !want.Expired(w.now); ok != had || ok && !same(got, want) {
		t.Fatalf("get %q at %d: %+v %v\nwant %+v %v", key, w.now, got, ok, want, had)
	}
}

func (w *machine) due(t *rapid.T) {
	limit := rapid.IntRange(1, 5000).Draw(t, "limit")
	seen := map[string]bool{}
	w.x.Due(w.now, limit, func(e Entry) {
		if want := w.m[string(e.Key)]; !want.Expired(w.now) || seen[string(e.Key)] {
			t.Fatalf("%q is due at %d, want %+v", e.Key, w.now, want)
		}
		seen[string(e.Key)] = true
	})
	ended, first := 0, uint64(0)
	for _, e := range w.m {
		if e.Expired(w.now) {
			ended++
		}
		if e.ExpiresAtMillis != 0 && (first == 0 || e.ExpiresAtMillis < first) {
			first = e.ExpiresAtMillis
		}
	}
	if len(seen) != min(limit, ended) {
		t.Fatalf("%d of %d are due, limit %d", len(seen), ended, limit)
	}
	if next, ok := w.x.NextEnd(); next != first || ok != (first != 0) {
		t.Fatalf("the next ends at %d %v, want %d", next, ok, first)
	}
}

func TestScanMeetsEveryKeyThatStaysExactlyOnceWhileTheTableSplitsAndMerges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTestIndex(0)
		for i := range 2000 {
			x.Put(Entry{Key: fmt.Appendf(nil, "stays-%d", i)})
		}
		seen := map[string]int{}
		others := 0
		for c := Cursor(0); !c.Done(); {
			c = x.Scan(c, []byte("stays-"), func(e Entry) { seen[string(e.Key)]++ })
			if grow := rapid.IntRange(-4000, 6000).Draw(t, "grow"); grow > 0 {
				for range grow {
					x.Put(Entry{Key: fmt.Appendf(nil, "other-%d", others)})
					others++
				}
			} else {
				for ; grow < 0 && others > 0; grow++ {
					others--
					x.Delete(fmt.Appendf(nil, "other-%d", others))
				}
			}
			if others > 30_000 {
				t.Skip("the scan never ends if the table always grows ahead of it")
			}
		}
		for i := range 2000 {
			if n := seen[fmt.Sprintf("stays-%d", i)]; n != 1 {
				t.Fatalf("key %d was met %d times", i, n)
			}
		}
		if err := verify(x); err != nil {
			t.Fatal(err)
		}
	})
}

func TestKeysThatShareATagAreToldApart(t *testing.T) {
	var tb table
	for i := ref(1); i <= 3000; i++ { // all in one place: only a table that grows beyond a segment can hold them
		tb.insert(0x80000001, i)
	}
	for i := ref(1); i <= 3000; i++ {
		s := tb.of(0x80000001)
		at := s.find(0x80000001, i)
		if at < 0 {
			t.Fatalf("ref %d is lost", i)
		}
		tb.remove(s, at)
	}
	if tb.count != 0 || tb.bytes != 0 {
		t.Fatalf("%d refs and %d bytes are left", tb.count, tb.bytes)
	}
}

func TestEveryByteOfAKeyAndItsLengthMovesItsTag(t *testing.T) {
	h := newHasher(1)
	seen := map[uint32][]byte{}
	note := func(key []byte) {
		tag := h.tag(key)
		if other, ok := seen[tag]; ok && !bytes.Equal(other, key) {
			t.Fatalf("% x and % x have the tag %#x", other, key, tag)
		}
		seen[tag] = bytes.Clone(key)
	}
	for n := range 70 {
		key := make([]byte, n)
		note(key)
		for i := range key {
			key[i] = 1
			note(key)
			key[i] = 0
		}
	}
	if a, b := newHasher(1).tag([]byte("key")), newHasher(2).tag([]byte("key")); a == b {
		t.Fatal("the seed makes no difference")
	}
}

func TestTagsSpreadEvenly(t *testing.T) {
	h := newHasher(3)
	const keys = 1 << 16
	for _, form := range []string{"%d", "user:%08d", "%032d", "a-long-common-prefix-of-a-key/%d/value"} {
		var high, low [256]int
		for i := range keys {
			tag := h.tag(fmt.Appendf(nil, form, i))
			high[tag>>24]++
			low[tag&255]++
		}
		// 256 on average, deviation 16: six of them are not met by chance
		if most := max(slices.MaxFunc(high[:], cmp.Compare[int]), slices.MaxFunc(low[:], cmp.Compare[int])); most > 256+6*16 {
			t.Errorf("%s: %d keys of %d share one of 256 places", form, most, keys)
		}
	}
}

// mission 194: memory is bounded, and what does not fit is refused by type.
func TestAFullBudgetRefusesAndEvictsNothing(t *testing.T) {
	budget := NewBudget(64 << 10)
	x, other := NewIndex(Options{Budget: budget}), NewIndex(Options{Budget: budget})
	n := 0
	for ; ; n++ {
		key, to := fmt.Appendf(nil, "key-%06d", n), x
		if n%2 == 1 {
			to = other
		}
		err := to.Admit(key, 100, true)
		if err != nil {
			var full *FullError
			if !errors.As(err, &full) || full.Limit != 64<<10 || full.Used+full.Needed <= full.Limit {
				t.Fatalf("refused by %v", err)
			}
			break
		}
		if err := to.Put(Entry{Key: key, Value: make([]byte, 100), ExpiresAtMillis: 9}); err != nil {
			t.Fatal(err)
		}
		if n > 10_000 {
			t.Fatal("never full")
		}
	}
	if x.Stats().Entries+other.Stats().Entries != n || budget.Used() > budget.Limit() {
		t.Fatalf("%d entries put, %d and %d there, %d bytes used", n, x.Stats().Entries, other.Stats().Entries, budget.Used())
	}
	if err := x.Admit([]byte("key-000000"), 50, false); err != nil {
		t.Fatalf("a smaller value: %v", err)
	}
	if !x.Delete([]byte("key-000000")) || x.Admit([]byte("key-next"), 100, true) != nil {
		t.Fatal("a delete makes no room")
	}
	x.Close()
	other.Close()
	if budget.Used() != 0 {
		t.Fatalf("%d bytes are still booked", budget.Used())
	}
}

func TestKeysAndValuesThatAreTooLongAreRefusedByType(t *testing.T) {
	x := newTestIndex(0)
	var key *KeyTooLongError
	if err := x.Admit(make([]byte, KeyMax+1), 0, false); !errors.As(err, &key) {
		t.Fatalf("admit: %v", err)
	}
	if err := x.Put(Entry{Key: make([]byte, KeyMax+1)}); !errors.As(err, &key) {
		t.Fatalf("put: %v", err)
	}
	var value *ValueTooLongError
	if err := x.Admit(nil, ValueMax+1, false); !errors.As(err, &value) {
		t.Fatalf("admit: %v", err)
	}
	if err := x.Put(Entry{Key: make([]byte, KeyMax), ValueBytes: ValueMax}); err != nil {
		t.Fatal(err)
	}
	if e, ok := x.Get(make([]byte, KeyMax), 0, nil); !ok || !e.Cold || e.ValueBytes != ValueMax {
		t.Fatalf("%v %v", e.ValueBytes, ok)
	}
}

func TestAnUnusedIndexAndOneThatWasEmptiedTakeLittle(t *testing.T) {
	x := newTestIndex(0)
	if m := x.Stats().Memory; m != 0 {
		t.Fatalf("an empty index takes %d bytes", m)
	}
	x.Put(Entry{Key: []byte("a"), Value: []byte("b"), ExpiresAtMillis: 1})
	if m := x.Stats().Memory; m > 8<<10 {
		t.Fatalf("an index of one key takes %d bytes", m)
	}
	for i := range 50_000 {
		x.Put(Entry{Key: fmt.Append(nil, i), Value: make([]byte, 100), ExpiresAtMillis: 5})
	}
	for i := range 50_000 {
		x.Delete(fmt.Append(nil, i))
	}
	if m := x.Stats().Memory; m > chunkBytes+64<<10 {
		t.Fatalf("an index that was emptied takes %d bytes", m)
	}
}

func TestGarbageIsTidiedUpInProportionToWrites(t *testing.T) {
	x := newTestIndex(0)
	value := make([]byte, 200)
	for round := range 30 {
		for i := range 5000 {
			x.Put(Entry{Key: fmt.Append(nil, i), Value: value[:50+(i*7+round*13)%150]})
		}
		if s := x.Stats(); s.GarbageBytes > s.Cost/3+2*chunkBytes || s.Memory > s.Cost*3/2+3*chunkBytes {
			t.Fatalf("round %d: %+v", round, s)
		}
	}
	one := newTestIndex(0)
	for i := range 100_000 {
		one.Put(Entry{Key: []byte("cursor"), Value: value[:i%200]})
	}
	if m := one.Stats().Memory; m > 16<<10 {
		t.Fatalf("an index of one key that is written for ever takes %d bytes", m)
	}
}

func TestReadersSeeWholeEntriesWhileTheWriterGoesOn(t *testing.T) {
	x := newTestIndex(0)
	const keys, writes = 200, 60_000
	valueOf := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n%300) }
	for k := range keys {
		x.Put(Entry{Key: fmt.Append(nil, k), Version: 0})
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for r := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var buf []byte
			var newest [keys]id.Offset
			for i := r; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				k := i % keys
				e, ok := x.Get(fmt.Append(nil, k), 0, buf)
				if !ok || e.Version < newest[k] || !bytes.Equal(e.Value, valueOf(int(e.Version))) {
					t.Errorf("key %d: version %d after %d, %d bytes, %v", k, e.Version, newest[k], len(e.Value), ok)
					return
				}
				newest[k], buf = e.Version, e.Value
			}
		}()
	}
	for n := 1; n <= writes; n++ {
		x.Put(Entry{Key: fmt.Append(nil, n*7%keys), Value: valueOf(n), Version: id.Offset(n)})
	}
	close(stop)
	wg.Wait()
	if err := verify(x); err != nil {
		t.Fatal(err)
	}
}

func TestLookAndStatAreGetWithoutWhatIsNotAskedFor(t *testing.T) {
	x := newTestIndex(8)
	for _, e := range []Entry{
		{Key: []byte("k"), Value: []byte("v"), Version: 3, Offset: 5, ExpiresAtMillis: 100}, {Key: []byte("cold"), Value: []byte("more than 8"), Version: 6, Offset: 6}, {Key: []byte("empty")},
	} {
		if err := x.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"k", "cold", "empty", "none"} {
		for _, now := range []uint64{0, 99, 100} {
			want, ok := x.Get([]byte(key), now, []byte{})
			want.Key = nil
			if got, found := x.Look([]byte(key), now, []byte{}); found != ok || !reflect.DeepEqual(got, want) {
				t.Errorf("look for %s at %d: %+v %v, want %+v %v", key, now, got, found, want, ok)
			}
			want.Value = nil
			if got, found := x.Stat([]byte(key), now); found != ok || !reflect.DeepEqual(got, want) {
				t.Errorf("stat of %s at %d: %+v %v, want %+v %v", key, now, got, found, want, ok)
			}
		}
	}
	key := bytes.Repeat([]byte("k"), 100)
	if n := testing.AllocsPerRun(100, func() { x.Stat(key, 0) }); n != 0 {
		t.Errorf("%v allocations for a stat", n)
	}
}
