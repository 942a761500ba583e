package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// claimed returns a batch of n records of size bytes at base.
func claimed(base id.Offset, n uint32, size int) *batch.Batch {
	return &batch.Batch{Base: base, Count: n, Kind: batch.Records, Body: make([]byte, size)}
}

// readersOf are the rules of a test: plenty of everything, unless change says otherwise.
func readersOf(change ...func(*ReaderOptions)) *Readers {
	o := ReaderOptions{WindowBytes: 1 << 40, Budget: NewBudget(1 << 40)}
	for _, f := range change {
		f(&o)
	}
	return NewReaders(o)
}

// logOf is a log with a ring of so many batches.
func logOf(ring int, r *Readers) *MemLog {
	return NewMemLog(0, MemLogOptions{MaxBatches: ring, MaxBytes: 1 << 40, Readers: r})
}

// publish appends batches of one record of size bytes each, and makes them readable at once.
func (l *MemLog) publish(n, size int) {
	var list []*batch.Batch
	for i := range id.Offset(n) {
		list = append(list, claimed(l.Tail()+i, 1, size))
	}
	l.Append(list)
	l.SetReadable(l.Tail())
}

func register(l *MemLog, start Start, capacity int) Cursor {
	return must(l.Register(CursorOptions{Start: start, Capacity: capacity, Ring: func() {}}))
}

// must is for a registration that cannot be refused.
func must(c Cursor, err error) Cursor {
	if err != nil {
		panic(err)
	}
	return c
}

// all takes everything that is queued.
func all(c Cursor) (bases []id.Offset, lost uint64) {
	for {
		page, err := c.Take(context.Background(), 7, 1<<20, nil)
		lost += page.Lost
		if err != nil || len(page.Batches) == 0 && page.Lost == 0 {
			return bases, lost
		}
		for _, b := range page.Batches {
			bases = append(bases, b.Base)
		}
	}
}

func earliest(l *MemLog) []id.Offset {
	c := register(l, StartEarliest, 1)
	defer c.Release()
	bases, _ := all(c)
	return bases
}

func TestReadersSeeBatchesInOffsetOrderOnceAndOnlyWhatIsReadable(t *testing.T) {
	l := logOf(100, readersOf())
	c := register(l, StartLatest, 100)
	l.Append([]*batch.Batch{claimed(0, 2, 10), claimed(2, 3, 10), claimed(5, 1, 10)})
	if got, _ := all(c); len(got) != 0 {
		t.Fatalf("read %v before anything was readable", got)
	}
	l.SetReadable(5)
	if got, _ := all(c); fmt.Sprint(got) != "[0 2]" {
		t.Fatalf("read %v, want [0 2]", got)
	}
	if got := earliest(l); fmt.Sprint(got) != "[0 2]" {
		t.Fatalf("a new reader was given %v, want [0 2]", got)
	}
	l.SetReadable(6)
	if got, _ := all(c); fmt.Sprint(got) != "[5]" {
		t.Fatalf("read %v, want [5]", got)
	}
}

func TestTheRingKeepsTheNewestAndWhatIsNotReadableYet(t *testing.T) {
	l := logOf(4, readersOf())
	for i := range id.Offset(10) {
		l.Append([]*batch.Batch{claimed(i*3, 3, 10)})
		if i < 8 {
			l.SetReadable((i + 1) * 3)
		}
	}
	if oldest, end := l.Bounds(); oldest != 12 || end != 24 {
		t.Fatalf("bounds %d, %d; want 12, 24: what is not readable yet drives nothing out", oldest, end)
	}
	l.SetReadable(30)
	if got := earliest(l); fmt.Sprint(got) != "[18 21 24 27]" {
		t.Fatalf("read %v; want the last four batches", got)
	}
}

func TestMemoryStaysInsideTheRingAndTheNodeBudget(t *testing.T) {
	const size = 1000
	budget := NewBudget(20 * (size + batch.Overhead))
	opts := MemLogOptions{MaxBatches: 1 << 20, MaxBytes: 15 * (size + batch.Overhead), Budget: budget, Readers: readersOf()}
	a, b := NewMemLog(0, opts), NewMemLog(0, opts)
	for range 200 {
		for _, l := range []*MemLog{a, b} {
			l.publish(1, size)
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
	l := NewMemLog(0, MemLogOptions{MaxBatches: 4, MaxBytes: 100, Budget: NewBudget(50), Readers: readersOf()})
	l.publish(1, 10_000)
	if got := earliest(l); len(got) != 1 {
		t.Fatalf("read %v, want the one batch", got)
	}
}

func TestALogForAFoldKeepsNothing(t *testing.T) {
	l := NewMemLog(1000, MemLogOptions{})
	l.Append([]*batch.Batch{claimed(1000, 1, 100)})
	l.SetReadable(1001)
	if oldest, end := l.Bounds(); oldest != 1001 || end != 1001 || l.Bytes() != 0 || l.Released() != 1001 {
		t.Fatalf("bounds %d, %d, released %d, with %d bytes; want nothing kept and nobody waiting", oldest, end, l.Released(), l.Bytes())
	}
}

func TestCloseWakesReadersWhichGetWhatWasQueuedFirst(t *testing.T) {
	budget := NewBudget(1 << 20)
	r := readersOf()
	l := NewMemLog(0, MemLogOptions{MaxBatches: 4, MaxBytes: 1 << 20, Budget: budget, Readers: r})
	rung := 0
	waits, reads := must(l.Register(CursorOptions{Capacity: 9, Ring: func() { rung++ }})), register(l, StartLatest, 9)
	l.publish(1, 1)
	all(waits)
	if !waits.Arm(1, 1) {
		t.Fatal("Arm refused at the end")
	}
	l.Close(ClosedDeleted)
	l.Close(ClosedFailed) // the first reason stands
	if rung != 1 {
		t.Fatalf("the reader that waits was rung %d times", rung)
	}
	if budget.Used() != 0 || r.Budget().Used() == 0 {
		t.Fatalf("%d bytes in the rings, %d for readers: what is owed to a reader is in its books", budget.Used(), r.Budget().Used())
	}
	l.Append([]*batch.Batch{claimed(1, 1, 1)}) // the shard may be in the middle of a turn
	l.SetReadable(2)
	if page, err := reads.Take(context.Background(), 9, 1000, nil); err != nil || len(page.Batches) != 1 || page.Next != 1 {
		t.Fatalf("read %+v, %v; want what was queued", page, err)
	}
	var closed *ClosedError
	for _, c := range []Cursor{reads, waits, register(l, StartEarliest, 1)} {
		if _, err := c.Take(context.Background(), 9, 1000, nil); !errors.As(err, &closed) || closed.Reason != ClosedDeleted || c.Arm(1, 1) {
			t.Fatalf("read: %v, want closed: deleted", err)
		}
		c.Release()
	}
	if r.Budget().Used() != 0 || r.Lagging() != 0 || l.Released() != 2 {
		t.Fatalf("%d bytes and %d readers are left, released %d", r.Budget().Used(), r.Lagging(), l.Released())
	}
}

func TestAPageHoldsNoMoreThanAskedForButAtLeastOneBatch(t *testing.T) {
	l := logOf(100, readersOf())
	l.publish(10, 1000)
	for _, q := range []struct{ batches, bytes, want int }{{3, 1 << 20, 3}, {100, 2 * (1000 + batch.Overhead), 2}, {100, 1, 1}} {
		c := register(l, StartEarliest, 1)
		if page, _ := c.Take(context.Background(), q.batches, q.bytes, nil); len(page.Batches) != q.want || page.Next != id.Offset(q.want) {
			t.Errorf("%d batches up to %d for %+v", len(page.Batches), page.Next, q)
		}
		c.Release()
	}
}

func TestAnAppendThatDoesNotContinueTheLogPanics(t *testing.T) {
	panics(t, func() {
		NewMemLog(5, MemLogOptions{MaxBatches: 4, MaxBytes: 100}).Append([]*batch.Batch{claimed(6, 1, 1)})
	})
}

func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

func TestConcurrentReadersEachSeeEveryRecordInOrder(t *testing.T) {
	const records, readers = 3000, 8
	l := logOf(16, readersOf(func(o *ReaderOptions) { o.Policy = Block }))
	var wg sync.WaitGroup
	for n := range readers {
		rang := make(chan struct{}, 1)
		c := must(l.Register(CursorOptions{Capacity: 1 + 7*n, Ring: func() { rang <- struct{}{} }}))
		wg.Go(func() {
			defer c.Release()
			for next := id.Offset(0); next < records; {
				page, err := c.Take(context.Background(), 64, 1<<20, nil)
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
				if len(page.Batches) == 0 && c.Arm(1, 1) {
					<-rang
				}
			}
		})
	}
	room := make(chan struct{}, 1)
	l.OnRoom(func() { room <- struct{}{} })
	for range records { // a publisher that waits for its acknowledgement
		l.publish(1, 1)
		for l.Released() < l.Tail() {
			<-room
		}
	}
	wg.Wait()
	if l.Kept() != 0 || l.opts.Readers.Lagging() != 0 {
		t.Errorf("%d bytes are kept, %d readers lag", l.Kept(), l.opts.Readers.Lagging())
	}
}

func TestABudgetThatGivesMoreThanItTookPanics(t *testing.T) {
	b := NewBudget(10)
	if !b.Take(10) || b.Take(1) || !b.Over() {
		t.Fatal("a budget of 10 must hold 10 and say no to 11")
	}
	b.Give(11)
	panics(t, func() { b.Give(1) })
}

func BenchmarkMemLogAppendAndRead(b *testing.B) {
	l := logOf(1024, readersOf())
	c := register(l, StartLatest, 512)
	one := make([]*batch.Batch, 1)
	var dst []*batch.Batch
	b.ReportAllocs()
	for i := range b.N {
		one[0] = claimed(id.Offset(i), 1, 0)
		l.Append(one)
		l.SetReadable(id.Offset(i + 1))
		page, _ := c.Take(context.Background(), 64, 1<<20, dst)
		dst = page.Batches
	}
}
