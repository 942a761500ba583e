package storage

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// claimed returns a batch of n records of size bytes at base.
func claimed(base id.Offset, n uint32, size int) *batch.Batch {
	return &batch.Batch{Base: base, Count: n, Kind: batch.Records, Body: make([]byte, size)}
}

func readAll(l Reader, from id.Offset) (bases []id.Offset, next id.Offset, lost uint64) {
	for {
		page, err := l.Read(from, 7, 1<<20, nil)
		lost += page.Lost
		if err != nil || len(page.Batches) == 0 {
			return bases, page.Next, lost
		}
		for _, b := range page.Batches {
			bases = append(bases, b.Base)
		}
		from = page.Next
	}
}

func TestReadersSeeBatchesInOffsetOrderOnceAndOnlyWhatIsReadable(t *testing.T) {
	l := NewMemLog(0, MemLogOptions{MaxBatches: 100, MaxBytes: 1 << 20})
	l.Append([]*batch.Batch{claimed(0, 2, 10), claimed(2, 3, 10), claimed(5, 1, 10)})
	if got, _, _ := readAll(l, 0); len(got) != 0 {
		t.Fatalf("read %v before anything was readable", got)
	}
	l.SetReadable(5)
	if got, next, _ := readAll(l, 0); fmt.Sprint(got) != "[0 2]" || next != 5 {
		t.Fatalf("read %v up to %d, want [0 2] up to 5", got, next)
	}
	l.SetReadable(6)
	if got, _, _ := readAll(l, 5); fmt.Sprint(got) != "[5]" {
		t.Fatalf("read %v, want [5]", got)
	}
}

func TestWhatFallsOutOfTheRingIsCountedAsLost(t *testing.T) {
	l := NewMemLog(0, MemLogOptions{MaxBatches: 4, MaxBytes: 1 << 20})
	for i := range id.Offset(10) {
		l.Append([]*batch.Batch{claimed(i*3, 3, 10)})
		l.SetReadable((i + 1) * 3)
	}
	got, next, lost := readAll(l, 0)
	if fmt.Sprint(got) != "[18 21 24 27]" || next != 30 || lost != 18 {
		t.Fatalf("read %v up to %d, %d lost; want the last four batches and 18 lost", got, next, lost)
	}
	if oldest, end := l.Bounds(); oldest != 18 || end != 30 {
		t.Fatalf("bounds %d, %d; want 18, 30", oldest, end)
	}
}

func TestMemoryStaysInsideTheRingAndTheNodeBudget(t *testing.T) {
	const size = 1000
	budget := NewBudget(20 * (size + batch.Overhead))
	a := NewMemLog(0, MemLogOptions{MaxBatches: 1 << 20, MaxBytes: 15 * (size + batch.Overhead), Budget: budget})
	b := NewMemLog(0, MemLogOptions{MaxBatches: 1 << 20, MaxBytes: 15 * (size + batch.Overhead), Budget: budget})
	for i := range id.Offset(200) {
		for _, l := range []*MemLog{a, b} {
			l.Append([]*batch.Batch{claimed(i, 1, size)})
			l.SetReadable(i + 1)
			if l.Bytes() > l.opts.MaxBytes {
				t.Fatalf("a ring of %d bytes holds %d", l.opts.MaxBytes, l.Bytes())
			}
		}
		if budget.Used() > budget.Limit() {
			t.Fatalf("the node's budget of %d holds %d", budget.Limit(), budget.Used())
		}
	}
	a.Close(ClosedDeleted)
	b.Close(ClosedDeleted)
	if budget.Used() != 0 {
		t.Fatalf("%d bytes are still booked after both logs closed", budget.Used())
	}
}

func TestOneBatchIsKeptEvenIfItIsLargerThanEveryBound(t *testing.T) {
	l := NewMemLog(0, MemLogOptions{MaxBatches: 4, MaxBytes: 100, Budget: NewBudget(50)})
	l.Append([]*batch.Batch{claimed(0, 1, 10_000)})
	l.SetReadable(1)
	if got, _, _ := readAll(l, 0); len(got) != 1 {
		t.Fatalf("read %v, want the one batch", got)
	}
}

func TestALogForAFoldKeepsNothing(t *testing.T) {
	l := NewMemLog(1000, MemLogOptions{})
	l.Append([]*batch.Batch{claimed(1000, 1, 100)})
	l.SetReadable(1001)
	if oldest, end := l.Bounds(); oldest != 1001 || end != 1001 || l.Bytes() != 0 {
		t.Fatalf("bounds %d, %d with %d bytes; want nothing kept", oldest, end, l.Bytes())
	}
}

func TestAWaiterIsRungOnceWhenThereIsMore(t *testing.T) {
	l := NewMemLog(0, MemLogOptions{MaxBatches: 4, MaxBytes: 1 << 20})
	rung := 0
	w := &Waiter{Ring: func() { rung++ }}
	if !l.Arm(w, 0) {
		t.Fatal("nothing is readable, and Arm refused")
	}
	l.Append([]*batch.Batch{claimed(0, 1, 1)})
	if rung != 0 {
		t.Fatal("rung before anything was readable")
	}
	l.SetReadable(1)
	l.Append([]*batch.Batch{claimed(1, 1, 1)})
	l.SetReadable(2)
	if rung != 1 {
		t.Fatalf("rung %d times, want once", rung)
	}
	if l.Arm(w, 1) {
		t.Fatal("offset 1 is readable, and Arm registered a waiter for it")
	}
	if !l.Arm(w, 2) {
		t.Fatal("Arm refused at the end")
	}
	l.Disarm(w)
	l.Append([]*batch.Batch{claimed(2, 1, 1)})
	l.SetReadable(3)
	if rung != 1 {
		t.Fatal("rung after Disarm")
	}
}

func TestCloseWakesWaitersAndReadersGetWhatIsLeftFirst(t *testing.T) {
	l := NewMemLog(0, MemLogOptions{MaxBatches: 4, MaxBytes: 1 << 20})
	rung := false
	l.Append([]*batch.Batch{claimed(0, 1, 1)})
	l.SetReadable(1)
	l.Arm(&Waiter{Ring: func() { rung = true }}, 1)
	l.Close(ClosedDeleted)
	if !rung {
		t.Fatal("the waiter was not rung")
	}
	if page, err := l.Read(0, 10, 100, nil); err != nil || len(page.Batches) != 1 {
		t.Fatalf("read %v, %v; want what was readable", page, err)
	}
	var closed *ClosedError
	if _, err := l.Read(1, 10, 100, nil); !errors.As(err, &closed) || closed.Reason != ClosedDeleted {
		t.Fatalf("read: %v, want closed: deleted", err)
	}
	if l.Arm(&Waiter{}, 1) {
		t.Fatal("a closed log took a waiter")
	}
}

func TestAPageHoldsNoMoreThanAskedForButAtLeastOneBatch(t *testing.T) {
	l := NewMemLog(0, MemLogOptions{MaxBatches: 100, MaxBytes: 1 << 20})
	for i := range id.Offset(10) {
		l.Append([]*batch.Batch{claimed(i, 1, 1000)})
	}
	l.SetReadable(10)
	if page, _ := l.Read(0, 3, 1<<20, nil); len(page.Batches) != 3 || page.Next != 3 {
		t.Fatalf("%d batches up to %d, want 3", len(page.Batches), page.Next)
	}
	if page, _ := l.Read(0, 100, 2*(1000+batch.Overhead), nil); len(page.Batches) != 2 {
		t.Fatalf("%d batches for the bytes of two", len(page.Batches))
	}
	if page, _ := l.Read(0, 100, 1, nil); len(page.Batches) != 1 {
		t.Fatalf("%d batches, want the one that must come", len(page.Batches))
	}
}

func TestAnAppendThatDoesNotContinueTheLogPanics(t *testing.T) {
	l := NewMemLog(5, MemLogOptions{MaxBatches: 4, MaxBytes: 100})
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	l.Append([]*batch.Batch{claimed(6, 1, 1)})
}

// twinLog is the obviously right log: a slice and two numbers.
type twinLog struct {
	batches  []*batch.Batch
	readable id.Offset
	max      int
}

func (m *twinLog) read(from id.Offset) (bases []id.Offset) {
	for _, b := range m.batches[max(0, len(m.batches)-m.max):] {
		if b.End() > from && b.End() <= m.readable {
			bases = append(bases, b.Base)
		}
	}
	return bases
}

func TestMemLogBehavesLikeItsNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "ring")
		l := NewMemLog(0, MemLogOptions{MaxBatches: limit, MaxBytes: 1 << 30})
		twin := &twinLog{max: limit}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				b := claimed(l.Tail(), rapid.Uint32Range(1, 5).Draw(t, "records"), 1)
				l.Append([]*batch.Batch{b})
				l.SetReadable(b.End())
				twin.batches, twin.readable = append(twin.batches, b), b.End()
			},
			"read": func(t *rapid.T) {
				from := id.Offset(rapid.Uint64Range(0, uint64(l.Tail())).Draw(t, "from"))
				got, _, _ := readAll(l, from)
				if want := twin.read(from); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("from %d: read %v, want %v", from, got, want)
				}
			},
		})
	})
}

func TestConcurrentReadersEachSeeEveryRecordInOrder(t *testing.T) {
	const records, readers = 5000, 8
	l := NewMemLog(0, MemLogOptions{MaxBatches: records, MaxBytes: 1 << 30})
	var wg sync.WaitGroup
	for range readers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rang := make(chan struct{}, 1)
			w := &Waiter{Ring: func() { rang <- struct{}{} }}
			for next := id.Offset(0); next < records; {
				page, err := l.Read(next, 64, 1<<20, nil)
				if err != nil || page.Lost > 0 {
					t.Errorf("read at %d: %v, %d lost", next, err, page.Lost)
					return
				}
				for _, b := range page.Batches {
					if b.Base != next {
						t.Errorf("batch at %d where %d was next", b.Base, next)
						return
					}
					next = b.End()
				}
				if len(page.Batches) == 0 && l.Arm(w, next) {
					<-rang
				}
			}
		}()
	}
	for i := id.Offset(0); i < records; i++ {
		l.Append([]*batch.Batch{claimed(i, 1, 1)})
		l.SetReadable(i + 1)
	}
	wg.Wait()
}

func TestABudgetThatGivesMoreThanItTookPanics(t *testing.T) {
	b := NewBudget(10)
	if !b.Take(10) || b.Take(1) || !b.Over() {
		t.Fatal("a budget of 10 must hold 10 and say no to 11")
	}
	b.Give(11)
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	b.Give(1)
}

func BenchmarkMemLogAppendAndRead(b *testing.B) {
	l := NewMemLog(0, MemLogOptions{MaxBatches: 1024, MaxBytes: 1 << 30})
	one := make([]*batch.Batch, 1)
	var dst []*batch.Batch
	b.ReportAllocs()
	for i := range b.N {
		one[0] = claimed(id.Offset(i), 1, 0)
		l.Append(one)
		l.SetReadable(id.Offset(i + 1))
		page, _ := l.Read(id.Offset(i), 64, 1<<20, dst)
		dst = page.Batches
	}
}
