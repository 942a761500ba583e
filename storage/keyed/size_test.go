package keyed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

const keyBytes, valueBytes = 32, 100

// bigKeys is how many keys the tests of sizes have. Under the race detector, which makes each of them ten times as dear, the times that are judged
// have to hold too, on a machine that is slow.
func bigKeys() int {
	switch {
	case effort.Full():
		return 1_000_000
	case effort.Raced:
		return 20_000
	}
	return 100_000
}

// bigKey writes the name of key n, of keyBytes bytes, into buf.
func bigKey(buf []byte, n int) []byte {
	buf = append(buf[:0], "tenant/user/session/"...)
	return fmt.Appendf(buf, "%012d", n)
}

// fill folds n keys from a log of one batch for each 64 of them.
func fill(t testing.TB, f *Fold, n int, expires uint64) {
	value, key := bytes.Repeat([]byte{'v'}, valueBytes), []byte(nil)
	var body []byte
	for i := 0; i < n; {
		b := &batch.Batch{Base: f.Next(), Kind: batch.Records, Generation: 1}
		body = body[:0]
		for ; b.Count < 64 && i < n; i++ {
			key = bigKey(key, i)
			from := len(body)
			body = encodeChange(append(body, 0, 0, 0, 0), Change{Kind: Put, Key: key, Value: value, ExpiresAtMillis: expires * uint64(i)})
			binary.BigEndian.PutUint32(body[from:], uint32(len(body)-from-4))
			b.Count++
		}
		b.Body = body
		apply(t, f, b)
	}
}

func heapAfterGC() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// gcSeconds is the processor time of one collection, the least of some: of a few, and of as many more as it takes until it is no more than
// enough, since whatever else the machine does counts.
func gcSeconds(enough float64) float64 {
	read := func() float64 {
		s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
		metrics.Read(s)
		return s[0].Value.Float64()
	}
	least := 1e9
	for n := 0; n < 5 || least > enough && n < 50; n++ {
		runtime.GC()
		before := read()
		runtime.GC()
		least = min(least, read()-before)
	}
	return least
}

// An entry takes its key, its value and at most 200 bytes, and the collector looks at none of them.
func TestMemoryPerEntryAndCollectionsStaySmall(t *testing.T) {
	const mostGC = 0.020
	n := bigKeys()
	before := heapAfterGC()
	f := NewFold(newTestIndex(0), decodeChange, 0)
	fill(t, f, n, 1)
	after := heapAfterGC()
	each := float64(after-before) / float64(n)
	gc := gcSeconds(mostGC)
	s := f.Index().Stats()
	t.Logf("%d keys: %.1f bytes each above key and value, %d booked, %d of memory by its own account; a collection takes %.1f ms", n,
		each-keyBytes-valueBytes, s.Cost, s.Memory, gc*1000)
	if each > keyBytes+valueBytes+200 {
		t.Errorf("%.0f bytes for each entry", each)
	}
	if gc > mostGC {
		t.Errorf("a collection takes %.1f ms", gc*1000)
	}
	if over := int64(after-before) - s.Memory; over > 2<<20 {
		t.Errorf("%d bytes are not in the index's own account", over)
	}
	if s.Memory > s.Cost*5/4+chunkBytes {
		t.Errorf("%d bytes of memory for %d booked", s.Memory, s.Cost)
	}
	runtime.KeepAlive(f)
}

// A restart takes 3 s at most with a million keys.
func TestASnapshotOfManyKeysLoadsInTime(t *testing.T) {
	n := bigKeys()
	f := NewFold(newTestIndex(0), decodeChange, 0)
	fill(t, f, n, 0)
	began := time.Now()
	snap := written(f)
	wrote := time.Since(began)
	var back *Fold
	const most = 3 * time.Second
	loaded := time.Hour
	for tries := 0; loaded > most && tries < 3; tries++ { // the machine may have been busy with something else
		began = time.Now()
		var err error
		if back, err = Load(bytes.NewReader(snap), Options{Budget: NewBudget(1 << 40)}, decodeChange, Source{Base: 0, Tail: f.Next(), Batch: func(at id.Offset) (*batch.Batch, error) {
			return &batch.Batch{Base: at, Count: uint32(f.Next() - at), Generation: 1}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		loaded = min(loaded, time.Since(began))
	}
	t.Logf("%d keys: written in %v as %d bytes, loaded in %v", n, wrote, len(snap), loaded)
	if loaded > most {
		t.Errorf("loaded in %v, %v is the most", loaded, most)
	}
	if s := back.Index().Stats(); s.Entries != n {
		t.Errorf("%d of %d keys", s.Entries, n)
	}
}

func TestReadsAllocateNothingAndWritesOnlyMemoryThatStays(t *testing.T) {
	f := NewFold(newTestIndex(0), decodeChange, 0)
	fill(t, f, 5000, 1)
	x := f.Index()
	dst, key := make([]byte, 0, 256), bigKey(nil, 1234)
	if n := testing.AllocsPerRun(1000, func() {
		if e, ok := x.Get(key, 5, dst); !ok || len(e.Value) != valueBytes {
			t.Fatal("not there")
		}
	}); n != 0 {
		t.Errorf("a get allocates %v times", n)
	}
	b := batchOf(f.Next(), put(string(key), string(make([]byte, valueBytes))))
	if n := testing.AllocsPerRun(1000, func() {
		apply(t, f, b)
		b.Base++
	}); n != 0 {
		t.Errorf("folding a put over an entry allocates %v times", n)
	}
	sizes := []*batch.Batch{batchOf(0, put(string(key), "short")), batchOf(0, put(string(key), string(make([]byte, 3000))))}
	i := 0
	if n := testing.AllocsPerRun(10_000, func() {
		b := sizes[i%2]
		b.Base = f.Next()
		apply(t, f, b)
		i++
	}); n > 0.1 {
		t.Errorf("folding puts of other sizes allocates %v times", n)
	}
}
