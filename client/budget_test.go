package client

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// waiters are calls of take under way, in a test that decides who is served.
type waiters struct {
	t    *testing.T
	b    *byteBudget
	done chan int64
}

// begin starts a take that has to wait, and returns when it is in a line.
func (w *waiters) begin(s *budgetShare, n int64) (cancel context.CancelFunc) {
	w.t.Helper()
	before := w.lines(s)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		held, err := w.b.take(ctx, s, n)
		if err != nil {
			held = -1
		}
		w.done <- held
	}()
	for w.lines(s) == before {
		runtime.Gosched()
	}
	return cancel
}

func (w *waiters) lines(s *budgetShare) int {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	return w.b.waiting.len() + s.waiting.len()
}

func take(t *testing.T, b *byteBudget, s *budgetShare, n int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it must not have to wait
	if held, err := b.take(ctx, s, n); err != nil || held != n {
		t.Fatalf("take %d: %d, %v", n, held, err)
	}
}

func TestAShardThatStandsStillLeavesHalfOfTheBudgetToOthers(t *testing.T) { // field case STR-03, decision 37
	b := newByteBudget(100)
	var stuck, other budgetShare
	w := &waiters{t, b, make(chan int64, 3)}
	take(t, b, &stuck, 30)
	take(t, b, &stuck, 20)
	give := w.begin(&stuck, 10)
	defer give()
	for range 5 { // as if nobody waited
		take(t, b, &other, 50)
		b.give(&other, 50)
	}
	b.give(&stuck, 20)
	if held := <-w.done; held != 10 {
		t.Fatalf("granted %d, want 10", held)
	}
}

func TestARequestLargerThanAShardsShareGoesWhenNothingOfTheShardIsUnderWay(t *testing.T) {
	b := newByteBudget(100)
	var s budgetShare
	take(t, b, &s, 80)
	w := &waiters{t, b, make(chan int64, 1)}
	cancel := w.begin(&s, 80)
	defer cancel()
	b.give(&s, 80)
	if held := <-w.done; held != 80 {
		t.Fatalf("granted %d, want 80", held)
	}
	b.give(&s, 80)
	if held, err := b.take(t.Context(), &s, 500); err != nil || held != 100 {
		t.Fatalf("a request larger than the whole holds %d, %v; want the whole", held, err)
	}
}

func TestARequestGivenUpInEitherLineLeavesNothingBehind(t *testing.T) {
	b := newByteBudget(100)
	var one, two budgetShare
	w := &waiters{t, b, make(chan int64, 4)}
	take(t, b, &one, 50)
	take(t, b, &two, 50)
	ownLine := w.begin(&one, 10) // beyond its share
	var three budgetShare
	common := w.begin(&three, 40)
	common()
	ownLine()
	for range 2 {
		if held := <-w.done; held != -1 {
			t.Fatalf("granted %d after it was given up", held)
		}
	}
	b.give(&one, 50)
	b.give(&two, 50)
	if b.used != 0 || one.claimed != 0 || two.claimed != 0 || three.claimed != 0 || b.waiting.len() != 0 || one.waiting.len() != 0 {
		t.Fatalf("left behind: %+v", b)
	}
}

func TestTheBudgetHoldsItsBoundsAndServesWhoCanBeServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newByteBudget(100)
		shares := make([]budgetShare, 3)
		type hold struct {
			share int
			bytes int64
		}
		var held []hold
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				share, n := rapid.IntRange(0, 2).Draw(t, "share"), rapid.Int64Range(1, 120).Draw(t, "bytes")
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				fits := shares[share].claimed == 0 || shares[share].claimed+min(n, 100) <= 50
				fits = fits && b.used+min(n, 100) <= 100
				got, err := b.take(ctx, &shares[share], n)
				if fits != (err == nil) || err != nil && !errors.Is(err, context.Canceled) {
					t.Fatalf("take %d: %v, though it fits: %v", n, err, fits)
				}
				if err == nil {
					held = append(held, hold{share, got})
				}
			},
			"give": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				b.give(&shares[held[i].share], held[i].bytes)
				held = append(held[:i], held[i+1:]...)
			},
			"": func(t *rapid.T) {
				var sum int64
				for _, h := range held {
					sum += h.bytes
				}
				if b.used != sum || b.used > b.total || b.waiting.len() > 0 {
					t.Fatalf("used %d of %d with %d held", b.used, b.total, sum)
				}
			},
		})
	})
}
