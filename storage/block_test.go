package storage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
)

func blocking() *Readers { return readersOf(func(o *ReaderOptions) { o.Policy = Block }) }

// mission 219
func TestUnderBlockNothingIsLostAndPublishersWaitForTheFullReaderAlone(t *testing.T) {
	r := blocking()
	l := logOf(2, r)
	rooms := 0
	l.OnRoom(func() { rooms++ })
	slow, quick := register(l, StartLatest, 4), register(l, StartLatest, 100)
	l.publish(10, 10)
	if got := l.Released(); got != 4 {
		t.Fatalf("released %d, want the four that the slow reader has room for", got)
	}
	if got, _ := all(quick); len(got) != 10 {
		t.Errorf("the quick reader got %v at once, want all ten", got)
	}
	if rooms != 0 {
		t.Error("the shard was told of room that the slow reader did not make")
	}
	page, _ := slow.Take(context.Background(), 2, 1<<20, nil)
	if l.Released() != 4 || len(page.Batches) != 2 {
		t.Errorf("released %d while %d batches are in hand", l.Released(), len(page.Batches))
	}
	if _, err := slow.Take(context.Background(), 1, 1<<20, nil); err != nil || l.Released() != 6 || rooms != 1 {
		t.Errorf("released %d after two were finished with, told %d times", l.Released(), rooms)
	}
	if got, lost := all(slow); len(got) != 7 || lost != 0 || l.Released() != 10 || r.Dropped() != 0 {
		t.Errorf("it got %v behind the first three, lost %d; released %d", got, lost, l.Released())
	}
}

func TestTheShardIsToldOfRoomOnceForEachTimeItWaits(t *testing.T) {
	l := logOf(2, blocking())
	rooms := 0
	l.OnRoom(func() { rooms++ })
	c := register(l, StartLatest, 2)
	l.publish(6, 10)
	l.Released()
	for range 4 {
		if _, err := c.Take(context.Background(), 1, 1<<20, nil); err != nil {
			t.Fatal(err)
		}
	}
	if rooms != 1 {
		t.Errorf("told %d times before it asked again", rooms)
	}
	l.Released()
	all(c)
	if rooms != 2 {
		t.Errorf("told %d times, want 2", rooms)
	}
	l.publish(2, 10)
	if l.Released() != 8 || rooms != 2 {
		t.Errorf("released %d, told %d times although nobody waits", l.Released(), rooms)
	}
}

func TestAFullReaderThatGoesAwayHoldsNobodyUpAnyMore(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := blocking()
		l := logOf(2, r)
		rooms := 0
		l.OnRoom(func() { rooms++ })
		first, second := register(l, StartLatest, 2), register(l, StartLatest, 4)
		l.publish(9, 10)
		if l.Released() != 2 {
			t.Fatalf("released %d", l.Released())
		}
		if closed {
			l.Close(ClosedDeleted)
			if l.Released() != 9 || rooms != 1 {
				t.Errorf("released %d after the log closed, told %d times", l.Released(), rooms)
			}
		}
		first.Release()
		if !closed && (l.Released() != 4 || rooms != 1) {
			t.Errorf("released %d after the fullest reader left, told %d times", l.Released(), rooms)
		}
		if got, _ := all(second); len(got) != 9 {
			t.Errorf("the other one got %v", got)
		}
		second.Release()
		if r.Budget().Used() != 0 || r.Lagging() != 0 || l.Released() != 9 {
			t.Errorf("%d bytes and %d readers are left, released %d", r.Budget().Used(), r.Lagging(), l.Released())
		}
	}
}

// Under Block a budget that is used up holds publishers up, and loses nothing.
func TestUnderBlockAUsedUpBudgetMakesPublishersWait(t *testing.T) {
	r := readersOf(func(o *ReaderOptions) { o.Policy, o.Budget = Block, NewBudget(1000) })
	l := logOf(4, r)
	c := register(l, StartLatest, 1000)
	l.publish(4, 1000)
	if l.Released() != 4 {
		t.Fatalf("released %d of four that the ring holds", l.Released())
	}
	l.publish(1, 1000) // drives the first out of the ring, and the budget over
	l.publish(3, 1000)
	if got := l.Released(); got != 5 {
		t.Errorf("released %d; want the fifth, which came while there was room, and none behind it", got)
	}
	if got, lost := all(c); len(got) != 8 || lost != 0 || l.Released() != 8 {
		t.Errorf("got %v, lost %d, released %d", got, lost, l.Released())
	}
	if r.Budget().Used() != 0 {
		t.Errorf("%d bytes are left", r.Budget().Used())
	}
}

func TestALogInMemoryDropsWhereADurableOneCatchesUp(t *testing.T) {
	if err := CatchUp.ForMemory(); err == nil || fmt.Sprint(err) != `overflow policy "catch_up": it needs a durable stream, and an ephemeral one has nothing to catch up from; use drop_new, block, drop_old` {
		t.Errorf("%v", err)
	}
	r := readersOf(func(o *ReaderOptions) { o.Policy = CatchUp })
	for _, durable := range []bool{false, true} {
		before := r.Dropped()
		l := NewMemLog(0, MemLogOptions{MaxBatches: 8, MaxBytes: 1 << 20, Readers: r, Durable: durable})
		c := must(l.Register(CursorOptions{Capacity: 1, Ring: func() {}}))
		l.Append([]*batch.Batch{claimed(0, 1, 1), claimed(1, 2, 1)})
		l.SetReadable(3)
		got, lost := all(c)
		if counted := r.Dropped() - before; len(got) != 1 || lost != 2 || counted != map[bool]uint64{false: 2, true: 0}[durable] {
			t.Errorf("durable %t: got %v, was told of %d lost, and %d were counted", durable, got, lost, counted)
		}
	}
	for _, p := range []Policy{DropNew, Block, DropOld} {
		if got, err := ParsePolicy(p.String()); got != p || err != nil || p.ForMemory() != nil {
			t.Errorf("%s: %v, %v", p, got, err)
		}
	}
	if p, err := ParsePolicy("Catch_Up"); p != CatchUp || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := ParsePolicy("newest"); err == nil || !strings.HasSuffix(err.Error(), "use drop_new, block, drop_old, catch_up") {
		t.Error("an unknown policy was taken")
	}
	if Policy(9).String() != "policy_9" {
		t.Error(Policy(9))
	}
}
