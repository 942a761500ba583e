package storage

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// mission 218: a queue of 4, 10 published, then read: batches 1 to 4.
func TestUnderDropNewTheArrivingBatchIsLostAndWhatIsQueuedIsDelivered(t *testing.T) {
	r := readersOf()
	l := logOf(2, r) // far less than the window: the ring decides nothing
	slow, quick := register(l, StartLatest, 4), register(l, StartLatest, 4)
	for range 10 {
		l.publish(1, 10)
		if got, lost := all(quick); len(got) != 1 || lost != 0 {
			t.Fatalf("the quick reader got %v and lost %d", got, lost)
		}
	}
	if r.Dropped() != 6 { // counted when it happens, not when the reader hears of it
		t.Errorf("%d records were counted as dropped, want 6", r.Dropped())
	}
	if got, lost := all(slow); fmt.Sprint(got) != "[0 1 2 3]" || lost != 6 {
		t.Errorf("the slow reader got %v and lost %d; want the first four and 6", got, lost)
	}
	l.publish(1, 10)
	if got, lost := all(slow); fmt.Sprint(got) != "[10]" || lost != 0 {
		t.Errorf("afterwards it got %v and lost %d", got, lost)
	}
}

// mission 220: set 8, and drops begin at the ninth batch, also when the reader stands still with some of them in its hand.
func TestDropsBeginAtTheBatchBehindTheCapacity(t *testing.T) {
	for _, hand := range []int{0, 1, 4, 8} {
		r := readersOf()
		l := logOf(100, r)
		c := register(l, StartLatest, 8)
		l.publish(8, 10)
		if hand > 0 {
			if page, err := c.Take(context.Background(), hand, 1<<20, nil); err != nil || len(page.Batches) != hand {
				t.Fatalf("took %d, %v", len(page.Batches), err)
			}
		}
		if r.Dropped() != 0 {
			t.Errorf("%d in hand: %d records lost of the first eight", hand, r.Dropped())
		}
		if l.publish(1, 10); r.Dropped() != 1 {
			t.Errorf("%d in hand: the ninth batch was not dropped", hand)
		}
	}
}

func TestAWindowIsBoundedInBytesTooAndAnEmptyOneTakesAnyBatch(t *testing.T) {
	r := readersOf(func(o *ReaderOptions) { o.WindowBytes = 4 * (1000 + batch.Overhead) })
	l := logOf(100, r)
	c := register(l, StartLatest, 512)
	l.publish(6, 1000)
	if got, lost := all(c); len(got) != 4 || lost != 2 {
		t.Errorf("got %v, lost %d; want four batches of 1000 bytes", got, lost)
	}
	l.publish(1, 1<<20)
	l.publish(1, 0)
	if got, lost := all(c); len(got) != 1 || lost != 1 {
		t.Errorf("got %v, lost %d; want the large batch and not the one behind it", got, lost)
	}
}

// STR-04: history is the reader's, whatever its capacity; only what comes after the registration may be lost.
func TestAReaderFromTheStartGetsAllOfTheHistoryBeforeAnyHole(t *testing.T) {
	r := readersOf()
	l := logOf(200, r)
	l.publish(200, 10)
	c := register(l, StartEarliest, 8)
	l.publish(500, 10) // the ring has nothing of the history any more
	got, lost := all(c)
	if len(got) != 200 || got[199] != 199 || lost != 500 {
		t.Fatalf("got %d batches and lost %d; want the 200 that were there, and the 500 of later lost", len(got), lost)
	}
	l.publish(8, 10)
	if got, lost := all(c); len(got) != 8 || lost != 0 {
		t.Errorf("then got %v, lost %d", got, lost)
	}
}

// A reader of half the rate goes on at its own full rate, whatever the size of its window: it never finds its queue empty. The
// state of its losses stays four holes.
func TestAReaderOfHalfTheRateKeepsItsOwnRate(t *testing.T) {
	for _, capacity := range []int{2, 3, 4, 8, 64, 512} {
		r := readersOf()
		l := logOf(4, r)
		c := register(l, StartLatest, capacity)
		got, gaps, want := 0, 0, 6*capacity+100
		next := id.Offset(0)
		l.publish(2*capacity, 10)
		for i := range want {
			l.publish(2, 10) // while one is being written
			page, err := c.Take(context.Background(), 1, 1<<20, nil)
			if err != nil || len(page.Batches) != 1 {
				t.Fatalf("capacity %d: after %d of its steps the reader found %d batches, %v", capacity, i, len(page.Batches), err)
			}
			if page.Batches[0].Base != next {
				gaps++
			}
			next = page.Next
			got++
		}
		state := l.Cursors(0, 1)[0]
		if uint64(got)+state.Dropped+uint64(state.Queued)-1 != uint64(l.Tail()) { // one is in hand
			t.Errorf("capacity %d: %d taken, %d dropped, %d queued of %d", capacity, got, state.Dropped, state.Queued, l.Tail())
		}
		if capacity >= 64 && gaps > 40*got/capacity {
			t.Errorf("capacity %d: %d gaps in %d batches: they are not joined", capacity, gaps, got)
		}
	}
}

// The hole behind a burst ends as soon as there is room: a trickle behind it loses nothing more.
func TestATrickleBehindABurstIsNotLost(t *testing.T) {
	r := readersOf()
	l := logOf(4, r)
	c := register(l, StartLatest, 100)
	l.publish(150, 10)
	burst := r.Dropped()
	for range 50 {
		if _, err := c.Take(context.Background(), 1, 1<<20, nil); err != nil {
			t.Fatal(err)
		}
		l.publish(1, 10)
	}
	if burst != 50 || r.Dropped() != 51 { // the first of the trickle came while all hundred were queued or in hand
		t.Errorf("%d were lost in the burst and %d in all", burst, r.Dropped())
	}
}

func TestHolesAreNotedWithWhereTheyLieAndWhoseTheyAre(t *testing.T) {
	var drops []Drop
	r := readersOf(func(o *ReaderOptions) { o.Dropped = func(d Drop) { drops = append(drops, d) } })
	l := logOf(100, r)
	c := must(l.Register(CursorOptions{Capacity: 1, Ring: func() {}, Owner: "alice"}))
	l.Append([]*batch.Batch{claimed(0, 2, 1), claimed(2, 3, 1), {Base: 5, Count: 7, Kind: batch.GenerationStart}})
	l.SetReadable(12)
	c.Drop(1)
	if want := []Drop{{"alice", 2, 5, 3, WindowFull}, {"alice", 5, 12, 0, WindowFull}, {"alice", 0, 0, 1, NotPassedOn}}; !slices.Equal(drops, want) {
		t.Errorf("heard of %v, want %v", drops, want)
	}
	page, err := c.Take(context.Background(), 9, 1000, nil)
	if err != nil || page.Lost != 0 || page.From != 0 || page.Next != 2 {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err = c.Take(context.Background(), 9, 1000, nil); err != nil || page.From != 2 || page.Next != 12 || page.Lost != 3 || len(page.Batches) != 0 {
		t.Errorf("a hole that nothing follows yet: %+v, %v; want it told at once", page, err)
	}
	if !c.Arm(1, 1) {
		t.Error("there is more behind the hole")
	}
	if s := l.Cursors(0, 9)[0]; s.Dropped != 4 || s.Owner != "alice" || !s.Waiting || s.Position != 12 {
		t.Errorf("%+v", s)
	}
}

func TestReadersAreListedInTheOrderTheyCameBoundedByTheLimit(t *testing.T) {
	l := logOf(100, readersOf())
	var list []Cursor
	for range 5 {
		list = append(list, register(l, StartLatest, 3))
	}
	list[1].Release()
	list[1].Release() // twice is once
	numbers := func(after uint64, limit int) (n []uint64) {
		for _, s := range l.Cursors(after, limit) {
			n = append(n, s.Number)
		}
		return n
	}
	if a, b, c := numbers(0, 2), numbers(3, 9), numbers(5, 9); fmt.Sprint(a, b, c) != "[1 3] [4 5] []" {
		t.Errorf("%v %v %v", a, b, c)
	}
	if s := register(l, StartLatest, 3); l.Cursors(5, 9)[0].Number != 6 {
		t.Error("a number was used again")
	} else {
		s.Release()
	}
}

// However batches of different sizes alternate, no more than four holes are noted ahead of a reader: the newest goes on until the reader
// has passed the oldest, and nothing of what was queued is lost for it.
func TestNoMoreThanFourHolesAreNotedAheadOfAReader(t *testing.T) {
	r := readersOf(func(o *ReaderOptions) { o.WindowBytes = 1 << 20 })
	l := logOf(4, r)
	c := register(l, StartLatest, 1000)
	for range 20 {
		l.publish(1, 10)
		l.publish(1, 1<<20) // never fits behind another
	}
	if got := l.Cursors(0, 1)[0].Queued; got != 4 {
		t.Fatalf("%d small batches are queued, want 4: one before each hole", got)
	}
	if page, err := c.Take(context.Background(), 9, 1<<20, nil); err != nil || len(page.Batches) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	l.publish(1, 10) // the reader has not passed the oldest hole yet
	page, err := c.Take(context.Background(), 9, 1<<20, nil)
	if err != nil || page.From != 1 || page.Lost != 1 || len(page.Batches) != 1 || page.Next != 3 {
		t.Fatalf("%+v, %v", page, err)
	}
	l.publish(1, 10) // now it has
	got, lost := all(c)
	if fmt.Sprint(got) != "[4 6 41]" || lost != 1+1+34 || r.Dropped() != 37 {
		t.Errorf("got %v, lost %d, dropped %d", got, lost, r.Dropped())
	}
}

func TestAReaderThatIsSetUpOrArmedWronglyPanics(t *testing.T) {
	l := logOf(4, readersOf())
	for name, f := range map[string]func(){
		"no capacity":       func() { register(l, StartLatest, 0) },
		"nothing to ring":   func() { _, _ = l.Register(CursorOptions{Capacity: 1}) },
		"a log for a fold":  func() { register(NewMemLog(0, MemLogOptions{}), StartLatest, 1) },
		"armed twice":       func() { c := register(l, StartLatest, 1); c.Arm(1, 1); c.Arm(1, 1) },
		"armed twice, more": func() { c := register(l, StartLatest, 9); c.Arm(5, 1); c.Arm(1, 1) },
		"no window":         func() { NewReaders(ReaderOptions{Budget: NewBudget(1)}) },
		"no budget":         func() { NewReaders(ReaderOptions{WindowBytes: 1}) },
	} {
		t.Run(name, func(t *testing.T) { panics(t, f) })
	}
}
