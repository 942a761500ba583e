package diskpool

import (
	"context"
	"errors"
	"testing"
)

func TestReadSlotsBoundReadersAndLetThemGiveUp(t *testing.T) {
	s := NewReadSlots(2)
	ctx := context.Background()
	for range 2 {
		if err := s.Acquire(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if s.Used() != 2 || s.Limit() != 2 || s.Waiting() != 0 {
		t.Fatal(s.Used(), s.Limit(), s.Waiting())
	}
	cancelled, cancel := context.WithCancelCause(ctx)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- s.Acquire(cancelled) }()
	until(t, "first waits", func() bool { return s.Waiting() == 1 })
	go func() { second <- s.Acquire(ctx) }()
	until(t, "both wait", func() bool { return s.Waiting() == 2 })
	cancel(errors.New("client left"))
	if err := await(t, "first gave up", first); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s.Release()
	if err := await(t, "second got it", second); err != nil {
		t.Fatal(err)
	}
	until(t, "nobody waits", func() bool { return s.Waiting() == 0 })
	if s.Used() != 2 {
		t.Fatal(s.Used())
	}
	if err := s.Acquire(cancelled); !errors.Is(err, context.Canceled) {
		t.Fatalf("a context that ended got a slot: %v", err)
	}
	s.Release()
	s.Release()
	if s.Used() != 0 {
		t.Fatal(s.Used())
	}
	if err := s.Acquire(cancelled); err == nil {
		t.Fatal("a context that ended got a free slot")
	}
}
