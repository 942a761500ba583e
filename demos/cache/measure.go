package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
)

// operation is one kind of call; do performs the n-th and fails when the outcome is not the right one.
type operation struct {
	name string
	do   func(ctx context.Context, n int) error
}

// operations are what is measured for one payload size. Hits need the puts before them.
func operations(c *client.Client, size, keys int) []operation {
	value := bytes.Repeat([]byte{'v'}, size)
	key := func(n int) string { return fmt.Sprintf("key-%d-%d", size, n%keys) }
	return []operation{
		{"put", func(ctx context.Context, n int) error {
			return c.CachePut(ctx, local.Namespace, cacheName, key(n), value, 0)
		}},
		{"get hit", func(ctx context.Context, n int) error {
			got, found, err := c.CacheGet(ctx, local.Namespace, cacheName, key(n))
			if err == nil && (!found || !bytes.Equal(got, value)) {
				return fmt.Errorf("%s: found %v with %d bytes, want %d", key(n), found, len(got), size)
			}
			return err
		}},
		{"get miss", func(ctx context.Context, n int) error {
			missing := fmt.Sprintf("missing-%d-%d", size, n%keys)
			_, found, err := c.CacheGet(ctx, local.Namespace, cacheName, missing)
			if err == nil && found {
				return fmt.Errorf("%s: found, and nobody wrote it", missing)
			}
			return err
		}},
	}
}

// measure runs all operations and prints a row for each.
func measure(ctx context.Context, c *client.Client, s settings, out io.Writer) error {
	fmt.Fprintf(out, "%8s  %-9s %9s %9s %9s %9s %9s\n", "payload", "operation", "per s", "p50", "p90", "p99", "max")
	for _, size := range s.payloads {
		for i, op := range operations(c, size, s.keys) {
			if i == 0 { // every key is there before it is read, however few samples there are
				if _, _, err := perform(ctx, op, s.keys, s.concurrency); err != nil {
					return fmt.Errorf("fill the cache: %w", err)
				}
			}
			if _, _, err := perform(ctx, op, s.warmup, s.concurrency); err != nil {
				return fmt.Errorf("warm up %s: %w", op.name, err)
			}
			took, elapsed, err := perform(ctx, op, s.samples, s.concurrency)
			if err != nil {
				return fmt.Errorf("measure %s: %w", op.name, err)
			}
			fmt.Fprintln(out, row(size, op.name, took, elapsed))
		}
	}
	return nil
}

// perform does n operations, concurrency at a time, and returns how long each took, shortest first. The first failure ends it.
func perform(ctx context.Context, op operation, n, concurrency int) (took []time.Duration, elapsed time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took = make([]time.Duration, n)
	var next atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for range min(concurrency, n) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				start := time.Now()
				if err := op.do(ctx, int(i)); err != nil {
					cancel(err) // the first cause stays
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	workers.Wait()
	elapsed = time.Since(began)
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	slices.Sort(took)
	return took, elapsed, nil
}

func row(size int, name string, took []time.Duration, elapsed time.Duration) string {
	return fmt.Sprintf("%8d  %-9s %9.0f %9s %9s %9s %9s", size, name, float64(len(took))/elapsed.Seconds(),
		short(quantile(took, 50)), short(quantile(took, 90)), short(quantile(took, 99)), short(took[len(took)-1]))
}

// quantile is the smallest of the sorted durations that at least percent of them do not exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// short rounds to what is worth reading: three digits or microseconds.
func short(d time.Duration) string {
	if d >= 100*time.Millisecond {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}
