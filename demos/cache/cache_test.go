package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestTheDemoMeasuresEverySizeAndEveryPromiseHolds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	samples := fmt.Sprintf("FELIX_CACHE_BENCH_SAMPLES=%d", effort.Size("cache_demo_samples"))
	code := run(ctx, nil, environment("FELIX_CACHE_BENCH_WARMUP=10", samples, "FELIX_CACHE_BENCH_CONCURRENCY=4", "FELIX_CACHE_BENCH_KEYS=64"), &out, &errs)
	if code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d, %s\n%s", code, &errs, &out)
	}
	for _, size := range []int{0, 256, 4096} {
		for _, op := range []string{"put", "get hit", "get miss"} {
			if want := fmt.Sprintf("%8d  %-9s", size, op); !strings.Contains(out.String(), want) {
				t.Errorf("no row of %q in\n%s", want, &out)
			}
		}
	}
	if n := strings.Count(out.String(), "\nok "); n != 4 {
		t.Errorf("%d promises held, want 4:\n%s", n, &out)
	}
}

func TestAWrongSettingIsNamedAndNothingIsStarted(t *testing.T) {
	for pair, want := range map[string]string{
		"FELIX_CACHE_BENCH_WARMUP=-1":         `FELIX_CACHE_BENCH_WARMUP: "-1"`,
		"FELIX_CACHE_BENCH_SAMPLES=0":         `FELIX_CACHE_BENCH_SAMPLES: "0"`,
		"FELIX_CACHE_BENCH_PAYLOADS=1,x":      `FELIX_CACHE_BENCH_PAYLOADS: "x"`,
		"FELIX_CACHE_BENCH_PAYLOADS=99999999": `FELIX_CACHE_BENCH_PAYLOADS: "99999999"`,
		"FELIX_CACHE_BENCH_CONCURRENCY=many":  `FELIX_CACHE_BENCH_CONCURRENCY: "many"`,
		"FELIX_CACHE_BENCH_KEYS=0":            `FELIX_CACHE_BENCH_KEYS: "0"`,
		"FELIX_CACHE_BENCH_KEYS=1000000":      "FELIX_CACHE_BENCH_KEYS: 1000000 keys of 4096 bytes",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), nil, environment(pair), &out, &errs); code != 2 || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, %q; want 2 and %s", pair, code, &out, &errs, want)
		}
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"fast"}, environment(), &out, &errs); code != 2 || !strings.Contains(errs.String(), `"fast"`) {
		t.Errorf("an argument: exit code %d, %q", code, &errs)
	}
	if code := run(t.Context(), []string{"--help"}, environment(), &out, &errs); code != 0 || !strings.Contains(errs.String(), "FELIX_CACHE_BENCH_KEYS") {
		t.Errorf("--help: exit code %d, %q", code, &errs)
	}
}

func TestTheFirstFailureEndsAMeasurementAndIsItsError(t *testing.T) {
	broken := errors.New("broken")
	var calls atomic.Int64
	op := operation{"op", func(ctx context.Context, n int) error {
		calls.Add(1)
		switch {
		case n == 3:
			return broken
		case n > 1000: // the one that fails may be late
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
		}
		return nil
	}}
	if _, _, err := perform(t.Context(), op, 1_000_000, 4); !errors.Is(err, broken) || calls.Load() > 2000 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestEveryOperationIsPerformedOnceAndTimed(t *testing.T) {
	done := make([]atomic.Int64, 50)
	took, _, err := perform(t.Context(), operation{"op", func(_ context.Context, n int) error { done[n].Add(1); return nil }}, 50, 7)
	if err != nil || len(took) != 50 {
		t.Fatalf("%d durations, %v", len(took), err)
	}
	for n := range done {
		if done[n].Load() != 1 {
			t.Errorf("operation %d was performed %d times", n, done[n].Load())
		}
	}
}

func TestAQuantileIsTheSmallestThatEnoughDoNotExceed(t *testing.T) {
	var sorted []time.Duration
	for i := 1; i <= 200; i++ {
		sorted = append(sorted, time.Duration(i))
	}
	for percent, want := range map[int]time.Duration{50: 100, 90: 180, 99: 198, 100: 200} {
		if got := quantile(sorted, percent); got != want {
			t.Errorf("p%d is %d, want %d", percent, got, want)
		}
	}
	if got := quantile(sorted[:1], 50); got != 1 {
		t.Errorf("p50 of one is %d", got)
	}
}

// wrongStore breaks one promise after the other.
type wrongStore struct {
	hit, value, removed string // "" is a miss; value is what a hit returns

}

func (w wrongStore) CachePut(context.Context, string, string, string, []byte, time.Duration) error {
	return nil
}

func (w wrongStore) CacheGet(_ context.Context, _, _, key string) ([]byte, bool, error) {
	return []byte(w.value), strings.Contains(w.hit, key), nil
}

func (w wrongStore) CacheDelete(context.Context, string, string, string) ([]byte, bool, error) {
	return []byte(w.removed), w.removed != "", nil
}

func TestABrokenPromiseIsSeenAndMakesTheDemoFail(t *testing.T) {
	for name, c := range map[string]struct {
		store wrongStore
		want  string
	}{
		"an empty value is a miss":     {wrongStore{hit: "short kept gone"}, "BROKEN  an empty value"},
		"a value never expires":        {wrongStore{hit: "short"}, "BROKEN  a value that lives"},
		"a value expires at once":      {wrongStore{}, "BROKEN  a value that lives"},
		"a time to live stays":         {wrongStore{hit: "kept", value: "first"}, "BROKEN  a put without"},
		"a delete says nothing":        {wrongStore{}, "BROKEN  a delete answers"},
		"a deleted key is still there": {wrongStore{hit: "gone", removed: "value"}, "BROKEN  a delete answers"},
	} {
		var out bytes.Buffer
		if err := check(t.Context(), c.store, &out); err == nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}
