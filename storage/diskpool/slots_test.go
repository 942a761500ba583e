package diskpool

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestReadSlotsBoundReadersAndLetThemGiveUp(t *testing.T) {
	s := NewReadSlots(2)
	ctx := context.Background()
	for owner := range 2 {
		if err := s.Acquire(ctx, owner); err != nil {
			t.Fatal(err)
		}
	}
	if s.Used() != 2 || s.Limit() != 2 || s.Waiting() != 0 {
		t.Fatal(s.Used(), s.Limit(), s.Waiting())
	}
	cancelled, cancel := context.WithCancelCause(ctx)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- s.Acquire(cancelled, 2) }()
	until(t, "first waits", func() bool { return s.Waiting() == 1 })
	go func() { second <- s.Acquire(ctx, 3) }()
	until(t, "both wait", func() bool { return s.Waiting() == 2 })
	cancel(errors.New("client left"))
	if err := await(t, "first gave up", first); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s.Release(0)
	if err := await(t, "second got it", second); err != nil {
		t.Fatal(err)
	}
	until(t, "nobody waits", func() bool { return s.Waiting() == 0 })
	if s.Used() != 2 {
		t.Fatal(s.Used())
	}
	if err := s.Acquire(cancelled, 2); !errors.Is(err, context.Canceled) {
		t.Fatalf("a context that ended got a slot: %v", err)
	}
	s.Release(1)
	s.Release(3)
	if s.Used() != 0 {
		t.Fatal(s.Used())
	}
	if err := s.Acquire(cancelled, 2); err == nil {
		t.Fatal("a context that ended got a free slot")
	}
}

func TestReadsOfALogThatDoNotComeBackLeaveSlotsToOthers(t *testing.T) {
	s := NewReadSlots(8)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := make(chan error, 8)
	for range 2 {
		if err := s.Acquire(ctx, "hangs"); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		go func() { got <- s.Acquire(ctx, "hangs") }()
	}
	until(t, "its further reads wait", func() bool { return s.Waiting() == 8 })
	for _, owner := range []string{"a", "b", "c"} {
		for range 2 {
			if err := s.Acquire(context.Background(), owner); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := make(chan error, 1)
	go func() { other <- s.Acquire(ctx, "d") }()
	until(t, "nothing is free", func() bool { return s.Waiting() == 9 })
	s.Release("a")
	if err := await(t, "the next that may have it gets it", other); err != nil || s.Waiting() != 8 {
		t.Fatal(err, s.Waiting())
	}
	s.Release("hangs")
	if err := await(t, "the first that waited", got); err != nil || s.Used() != 8 {
		t.Fatal(err, s.Used())
	}
	cancel()
	for range 7 {
		if err := await(t, "who gave up", got); err == nil {
			t.Fatal("it has a slot")
		}
	}
	for _, owner := range []string{"hangs", "hangs", "a", "b", "b", "c", "c", "d"} {
		s.Release(owner)
	}
	if s.Used() != 0 || s.Waiting() != 0 || len(s.owners) != 0 {
		t.Fatal(s.Used(), s.Waiting(), s.owners)
	}
}

// Slots are taken and given back by many at once, some of whom give up: there are never more than there may be, and in the end all are there.
func TestReadSlotsAreNeverMoreThanThereAreAndNoneIsLost(t *testing.T) {
	s := NewReadSlots(4)
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			owner := worker % 5
			for round := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if (worker+round)%3 == 0 {
					go cancel()
				}
				if s.Acquire(ctx, owner) == nil {
					if n := s.Used(); n > 4 {
						t.Errorf("%d slots of 4 are taken", n)
					}
					s.Release(owner)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if s.Used() != 0 || s.Waiting() != 0 {
		t.Fatal(s.Used(), s.Waiting())
	}
}
