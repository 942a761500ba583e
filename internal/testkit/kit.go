package testkit

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
)

// Patience is how long a test waits for what must come: so long that only what never comes is missed on a busy machine.
const Patience = 60 * time.Second

// By how much the machine of a landing may be slower than the one that a figure is for: it has few processors, of which other tests take
// their share; and by how much the race detector slows down what is measured.
const (
	landingSlower = 10
	racedSlower   = 4
)

// Figure is the most that something may take whose promise is d on a machine that does nothing else: d at full effort, ten times as much at a
// landing, and four times as much again under the race detector.
func Figure(d time.Duration) time.Duration {
	if !effort.Full() {
		d *= landingSlower
	}
	if Raced {
		d *= racedSlower
	}
	return d
}

// Shared is how many records a sync must be shared by, where full of them are on a machine that does nothing else. Who has no processor has
// nothing under way: at a landing four will do, and under the race detector more than one. Without sharing it is one.
func Shared(full float64) float64 {
	switch {
	case effort.Full():
		return full
	case Raced:
		return 1.1
	}
	return 4
}

// SyncsJudged is how many syncs there are at least before it is judged how many records share one.
const SyncsJudged = 5

// Within is a context for what must come.
func Within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Patience)
}

// Must returns v, or fails the test that it is then given: Must(f())(t).
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Eventually looks until cond holds, and fails the test if it never does. It is for effects that announce themselves nowhere.
func Eventually(t testing.TB, what string, cond func() bool) bool {
	t.Helper()
	timeout, look := time.NewTimer(Patience), time.NewTicker(20*time.Millisecond)
	defer timeout.Stop()
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-timeout.C:
			t.Errorf("it never happened: %s", what)
			return false
		}
	}
	return true
}

// After waits for time to pass, where what is measured is a quantity over time.
func After(d time.Duration) { <-time.After(d) }

// Size is how much of a campaign to run: effort.Size.
func Size(name string) int { return effort.Size(name) }

// Percentile is the value below which so many of a hundred times lie; 0 when there are none. It sorts its argument.
func Percentile(times []time.Duration, p int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(len(times)-1, len(times)*p/100)]
}

// Median is the middle one of times, which it sorts.
func Median(times []time.Duration) time.Duration { return Percentile(times, 50) }

// Tail keeps what a process complains about, up to 64 KiB. It is safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer. What exceeds the bound is passed over.
func (b *Tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text.Len() < 64<<10 {
		b.text.Write(p)
	}
	return len(p), nil
}

// String is what was kept.
func (b *Tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
