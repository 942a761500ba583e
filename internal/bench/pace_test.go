package bench

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

// virtual is a clock that stands still until somebody sleeps or works.
type virtual struct{ now, sloppy time.Duration }

func (v *virtual) Now() time.Duration { return v.now }

func (v *virtual) SleepUntil(ctx context.Context, at time.Duration) error {
	v.now = max(v.now, at) + v.sloppy
	return ctx.Err()
}

func TestScheduleKeepsItsRateWithoutDrift(t *testing.T) {
	for _, rate := range []float64{0.3, 7, 5000, 333_333} {
		clock := &virtual{now: time.Hour, sloppy: 60 * time.Microsecond}
		s := NewSchedule(clock, rate)
		n := 200_000
		for i := range n {
			due, _, err := s.Next(t.Context(), nil)
			want := time.Hour + time.Duration(float64(i)/rate*1e9)
			if err != nil || math.Abs(float64(due-want)) > 2 {
				t.Fatalf("at %v per second, thing %d is due at %v, %v; want %v", rate, i, due, err, want)
			}
		}
	}
}

func TestAStallCountsForEverythingThatBecameDueInIt(t *testing.T) {
	clock := &virtual{}
	s := NewSchedule(clock, 1000)
	latencies := NewLatencies()
	const stalled, stall = 500, time.Second
	var longest time.Duration
	for i := range 4000 {
		due, late, err := s.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == stalled {
			clock.now += stall // the server stops answering, and the generator cannot send
		}
		latencies.Record(clock.now - due)
		longest = max(longest, late)
	}
	// About 1000 requests were due in the stall; they waited 1 s, 999 ms, ... A generator that counts from when it sends sees one.
	over := latencies.h.TotalCount() - countUpTo(latencies, stall/2)
	if over < 495 || over > 505 {
		t.Fatalf("%d requests count as over half the stall, want about 500", over)
	}
	if longest < 990*time.Millisecond {
		t.Fatalf("the generator was at most %v late, and says so; it was late by the stall", longest)
	}
}

func countUpTo(l *Latencies, d time.Duration) int64 {
	var n int64
	for _, b := range l.h.Distribution() {
		if b.To <= int64(d) {
			n += b.Count
		}
	}
	return n
}

func TestScheduleIsIdleOnlyBeforeAWait(t *testing.T) {
	clock := &virtual{}
	s := NewSchedule(clock, 10)
	idled := 0
	idle := func() error { idled++; return nil }
	for range 3 { // the first is due at once
		if _, _, err := s.Next(t.Context(), idle); err != nil {
			t.Fatal(err)
		}
	}
	if idled != 2 {
		t.Fatalf("idle %d times, want 2", idled)
	}
	clock.now += time.Second
	if _, late, err := s.Next(t.Context(), idle); err != nil || idled != 2 || late != 900*time.Millisecond {
		t.Fatalf("something due 0.9 s ago: late %v, idle %d times, %v", late, idled, err)
	}
	broken := errors.New("broken")
	for range 20 {
		if _, _, err := s.Next(t.Context(), func() error { return broken }); errors.Is(err, broken) {
			return
		}
	}
	t.Fatal("the failure of idle was lost")
}

func TestScheduleEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr := newTrial(context.Background(), Timing{}, nil)
	s := NewSchedule(tr, 0.01)
	if _, _, err := s.Next(ctx, nil); err != nil {
		t.Fatalf("the first is due at once: %v", err)
	}
	if _, _, err := s.Next(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
