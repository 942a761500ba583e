package keyed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// written is a whole snapshot.
func written(f *Fold) []byte {
	s := NewSnapshot(f)
	var out []byte
	for more := true; more; {
		out, more = s.Next(out)
	}
	return out
}

// journal is a log that remembers its batches.
type journal struct {
	base id.Offset
	list []*batch.Batch
}

func (j *journal) tail() id.Offset {
	if len(j.list) == 0 {
		return j.base
	}
	return j.list[len(j.list)-1].End()
}

func (j *journal) add(changes ...Change) *batch.Batch {
	b := batchOf(j.tail(), changes...)
	j.list = append(j.list, b)
	return b
}

func (j *journal) source() Source {
	return Source{Base: j.base, Tail: j.tail(), Batch: func(at id.Offset) (*batch.Batch, error) {
		for _, b := range j.list {
			if b.Base <= at && at < b.End() {
				return b, nil
			}
		}
		return nil, fmt.Errorf("no batch holds %s", at)
	}}
}

// some is a log and its fold: n keys, some cold, some that end.
func some(t testing.TB, n int) (*journal, *Fold) {
	j, f := &journal{}, NewFold(newTestIndex(16), decodeChange, 0)
	for i := range n {
		c := put(fmt.Sprintf("key-%d", i), string(bytes.Repeat([]byte{'v'}, i%32)))
		c.ExpiresAtMillis = uint64(i%3) * 1000
		apply(t, f, j.add(c, Change{Kind: Delete, Key: []byte("no such key")}))
	}
	return j, f
}

func load(j *journal, snap []byte) (*Fold, *Budget, error) {
	o := Options{Budget: NewBudget(1 << 40), Seed: 99, InlineMax: 16}
	f, err := Load(bytes.NewReader(snap), o, decodeChange, j.source())
	return f, o.Budget, err
}

func entriesOf(x *Index) twin {
	m := twin{}
	for c := Cursor(0); !c.Done(); {
		c = x.Scan(c, nil, func(e Entry) {
			e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
			m[string(e.Key)] = e
		})
	}
	return m
}

func requireSame(t *testing.T, have, want *Fold) {
	t.Helper()
	a, b := entriesOf(have.Index()), entriesOf(want.Index())
	if len(a) != len(b) || have.Next() != want.Next() {
		t.Fatalf("%d entries as of %s, want %d as of %s", len(a), have.Next(), len(b), want.Next())
	}
	for key, e := range b {
		if !same(a[key], e) {
			t.Fatalf("%q is %+v, want %+v", key, a[key], e)
		}
	}
	if err := verify(have.Index()); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotIsTheIndex(t *testing.T) {
	for _, n := range []int{0, 1, 5000} {
		j, f := some(t, n)
		back, _, err := load(j, written(f))
		if err != nil {
			t.Fatalf("%d keys: %v", n, err)
		}
		requireSame(t, back, f)
		if !back.Complete() {
			t.Fatalf("%d keys: not complete", n)
		}
	}
}

// G18: only what follows a snapshot is folded.
func TestWhatFollowsASnapshotIsFoldedOntoIt(t *testing.T) {
	j, f := some(t, 100)
	snap := written(f)
	for i := range 10 {
		apply(t, f, j.add(put(fmt.Sprintf("key-%d", i), "after")))
	}
	back, _, err := load(j, snap)
	if err != nil || back.Next() != 200 {
		t.Fatalf("%v, from %s", err, back.Next())
	}
	for _, b := range j.list {
		apply(t, back, b)
	}
	requireSame(t, back, f)
}

func TestASnapshotThatIsWrittenWhileTheLogGoesOnIsRightOnceTheLogIsFoldedOn(t *testing.T) {
	j, f := some(t, 20_000)
	from := f.Next()
	s := NewSnapshot(f)
	var snap []byte
	steps := 0
	for more := true; more; steps++ {
		snap, more = s.Next(snap)
		for i := range 300 {
			key := (steps*7919 + i*31) % 21_000
			c := Change{Kind: Delete, Key: fmt.Appendf(nil, "key-%d", key)}
			if i%3 > 0 {
				c = put(string(c.Key), fmt.Sprint("later ", steps))
			}
			apply(t, f, j.add(c))
		}
	}
	if steps < 3 {
		t.Fatalf("written in %d steps: nothing came between", steps)
	}
	back, _, err := load(j, snap)
	if err != nil {
		t.Fatal(err)
	}
	if back.Next() != from || back.Complete() {
		t.Fatalf("stands at %s, complete %v", back.Next(), back.Complete())
	}
	for _, b := range j.list {
		if complete := back.Next() >= s.Until(); back.Complete() != complete {
			t.Fatalf("at %s of %s it is complete: %v", back.Next(), s.Until(), back.Complete())
		}
		apply(t, back, b)
	}
	requireSame(t, back, f)
}

func TestASnapshotAndReadersRunOnOtherGoroutinesThanTheFold(t *testing.T) {
	j, f := some(t, 10_000)
	s := NewSnapshot(f)
	var snap []byte
	done := make(chan struct{})
	go func() {
		defer close(done)
		x := f.Index()
		for more := true; more; {
			snap, more = s.Next(snap)
			x.Range([]byte("key-12"), 500, 10_000, 1<<20)
			x.Due(1500, 100, func(e Entry) {
				if !e.Expired(1500) {
					t.Errorf("%q is not due", e.Key)
				}
			})
			x.NextEnd()
			x.Stats()
			x.AsOf()
			if err := x.Admit([]byte("key-1"), 10, true); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range 20_000 {
		c := Change{Kind: Delete, Key: fmt.Appendf(nil, "key-%d", i*17%11_000)}
		if i%3 > 0 {
			c = put(string(c.Key), fmt.Sprint("later ", i))
		}
		apply(t, f, j.add(c))
	}
	<-done
	back, _, err := load(j, snap)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range j.list[5000:] { // the earlier ones are folded already
		apply(t, back, b)
	}
	requireSame(t, back, f)
}

// G14 to G17: what can't be used is refused by type, books nothing, and says why.
func TestASnapshotThatCannotBeUsedIsRefusedByType(t *testing.T) {
	j, f := some(t, 300)
	good := written(f)
	refused := func(name string, j *journal, snap []byte) {
		t.Helper()
		_, budget, err := load(j, snap)
		var s *SnapshotError
		if !errors.As(err, &s) || budget.Used() != 0 {
			t.Errorf("%s: %v, %d bytes booked", name, err, budget.Used())
		}
	}
	for n := range len(good) {
		if n < 200 || n > len(good)-200 || n%37 == 0 {
			refused(fmt.Sprintf("cut at %d", n), j, good[:n])
			flipped := bytes.Clone(good)
			flipped[n] ^= 1 << (n % 8)
			refused(fmt.Sprintf("bit flipped at %d", n), j, flipped)
		}
	}
	refused("bytes behind it", j, append(bytes.Clone(good), 0))
	refused("two in a row", j, append(bytes.Clone(good), good...))

	shorter := &journal{list: j.list[:299]}
	refused("a log that is shorter", shorter, good)
	trimmed := &journal{base: j.tail().Add(1)}
	refused("a log that begins later", trimmed, good)
	moved := &journal{base: 2, list: j.list[1:]}
	refused("an entry below the log's base", moved, good)
	refilled := &journal{list: append([]*batch.Batch(nil), shorter.list...)}
	refilled.add(put("other", "content"), Change{Kind: Delete, Key: []byte("no such key")})
	refused("a log that was cut and filled to the same length", refilled, good)
	gone := j.source()
	gone.Batch = func(id.Offset) (*batch.Batch, error) { return nil, io.ErrUnexpectedEOF }
	var s *SnapshotError
	if _, err := Load(bytes.NewReader(good), Options{Budget: NewBudget(1)}, decodeChange, gone); !errors.As(err, &s) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a log that can't be read: %v", err)
	}
}

// What whoever writes a checksum could still get wrong.
func TestASnapshotThatContradictsItselfIsRefusedThoughItsChecksumsFit(t *testing.T) {
	j, f := some(t, 20)
	good := written(f)
	apply(t, f, j.add(put("later", "v"))) // the log goes on behind the snapshot
	entry := partHeader + headBytes + partHeader
	second := entry + entryHeader + int(be.Uint32(good[entry:])) + int(be.Uint32(good[entry+4:])&^coldBit)
	tail := len(good) - tailBytes
	if back, _, err := load(j, resummed(good)); err != nil || back.Next() != 40 {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(b []byte){
		"another magic":                       func(b []byte) { b[partHeader]++ },
		"another version":                     func(b []byte) { b[partHeader+5]++ },
		"a reserved byte":                     func(b []byte) { b[partHeader+7]++ },
		"no head":                             func(b []byte) { b[0] = partEntries },
		"a part of unknown kind":              func(b []byte) { b[partHeader+headBytes] = 9 },
		"a start behind the log":              func(b []byte) { be.PutUint64(b[partHeader+8:], 42) },
		"a start behind its end":              func(b []byte) { be.PutUint64(b[partHeader+8:], 41) },
		"an entry at its end":                 func(b []byte) { be.PutUint64(b[entry+16:], 40) },
		"an entry behind the log":             func(b []byte) { be.PutUint64(b[entry+16:], 41) },
		"a version behind its offset":         func(b []byte) { be.PutUint64(b[entry+8:], be.Uint64(b[entry+16:])+1) },
		"a key longer than the part":          func(b []byte) { be.PutUint32(b[entry:], 5000) },
		"a key longer than any":               func(b []byte) { be.PutUint32(b[entry:], KeyMax+1) },
		"a value longer than any":             func(b []byte) { be.PutUint32(b[entry+4:], ValueMax+1|coldBit) },
		"an entry that is cut off":            func(b []byte) { b[entry+3]-- },
		"a cold value of no bytes":            func(b []byte) { be.PutUint32(b[entry+4:], coldBit) },
		"a key that is there twice":           func(b []byte) { copy(b[second+entryHeader:], b[entry+entryHeader:][:be.Uint32(b[entry:])]) },
		"another number of entries":           func(b []byte) { b[tail+15]++ },
		"an end behind the log":               func(b []byte) { be.PutUint64(b[tail:], 42) },
		"an end that is not its last batch's": func(b []byte) { be.PutUint64(b[tail:], 41) },
		"no last batch":                       func(b []byte) { be.PutUint32(b[tail+24:], 0) },
		"a last batch of another count":       func(b []byte) { be.PutUint32(b[tail+24:], 1) },
		"a last batch of another generation":  func(b []byte) { b[tail+35]++ },
		"a last batch of another sum":         func(b []byte) { b[tail+39]++ },
		"an end before its start":             func(b []byte) { be.PutUint64(b[tail:], 1) },
	} {
		bad := bytes.Clone(good)
		edit(bad)
		_, budget, err := load(j, resummed(bad))
		var s *SnapshotError
		if !errors.As(err, &s) || budget.Used() != 0 {
			t.Errorf("%s: %v, %d bytes booked", name, err, budget.Used())
		}
	}
}

func TestASnapshotsReaderTakesNoMoreMemoryThanAPart(t *testing.T) {
	huge := be.AppendUint32([]byte{partHead}, partMax+1)
	huge = append(huge, make([]byte, 100)...)
	allocs := testing.AllocsPerRun(10, func() {
		if _, _, err := load(&journal{}, huge); err == nil {
			t.Fatal("a part longer than any was taken")
		}
	})
	if allocs > 20 {
		t.Errorf("%.0f allocations", allocs)
	}
}

// FuzzLoad: whatever is read, it is refused by type or it is an index that holds its invariants; nothing panics. resum has the checksums
// made right, so that what is behind them is reached.
func FuzzLoad(f *testing.F) {
	j, fold := some(f, 6)
	good := written(fold)
	f.Add(good, false)
	f.Add(good, true)
	f.Add(good[:30], true)
	empty := NewFold(newTestIndex(0), decodeChange, 0)
	f.Add(written(empty), true)
	f.Fuzz(func(t *testing.T, snap []byte, resum bool) {
		if resum {
			snap = resummed(snap)
		}
		back, budget, err := load(j, snap)
		if err != nil {
			var s *SnapshotError
			if !errors.As(err, &s) || s.What == "" || budget.Used() != 0 {
				t.Fatalf("%v, %d bytes booked", err, budget.Used())
			}
			return
		}
		if err := verify(back.Index()); err != nil {
			t.Fatal(err)
		}
		for _, b := range j.list {
			if err := back.Apply(b, nil); err != nil {
				t.Fatal(err)
			}
		}
		if !back.Complete() {
			t.Fatal("the whole log was folded, and it is not complete")
		}
	})
}

// resummed makes lengths and checksums fit, as far as there are parts.
func resummed(snap []byte) []byte {
	out := bytes.Clone(snap)
	sum := uint32(0)
	for rest := out; len(rest) >= partHeader; {
		n := min(int(be.Uint32(rest[1:])), len(rest)-partHeader)
		be.PutUint32(rest[1:], uint32(n))
		sum = extend(extend(sum, rest[:5]), rest[partHeader:partHeader+n])
		be.PutUint32(rest[5:], sum)
		rest = rest[partHeader+n:]
	}
	return out
}
