package streams

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// shards is how many shards the wide stream has; the frozen one is that of the field case.
const (
	shards = 8
	frozen = 3
)

// field case STR-03: a client publishes to eight shards over one connection and one of them stands still. The others keep at
// least nine tenths of their rate and their p99, which is compared in neighbouring windows; what the frozen shard owes ends as unknown;
// and once it is healed it catches up, with nothing done twice.
func TestSTR03_AStuckShardDoesNotBlockHealthyShardsOfTheSameClient(t *testing.T) {
	ctx, stop := context.WithCancel(patient(t))
	defer stop()
	b := start(t, testkit.Setup{})
	got := collect(ctx, t, subscribe(t, b.Client(t), wide, client.SubscribeOptions{Shard: frozen}))
	o := newOffice(ctx, t, b.Client(t, patiently))
	o.window(length()) // connections and windows grow to their sizes
	var normal99, stuck99 []time.Duration
	var before, after time.Duration
	var rates contest
	rates.hold(t, "healthy shards beside a stuck one", 0.9, func() float64 {
		rate, p99 := o.window(length())
		normal99 = append(normal99, p99)
		return rate
	}, func() float64 {
		b.Fault(testkit.Fault{Do: "pause", Stream: wide, Shard: frozen, For: 10 * time.Minute})
		defer b.Fault(testkit.Fault{Do: "heal", Stream: wide, Shard: frozen})
		rate, p99 := o.window(length())
		stuck99 = append(stuck99, p99)
		return rate
	}, func() bool {
		before, after = testkit.Median(normal99), testkit.Median(stuck99)
		return after <= max(2*before, floor())
	})
	t.Logf("p99 of the healthy shards: %v normally, %v beside a stuck one", before, after)
	if after > max(2*before, floor()) {
		t.Errorf("p99 of the healthy shards is %v, normally %v", after, before)
	}

	b.Fault(testkit.Fault{Do: "pause", Stream: wide, Shard: frozen, For: 10 * time.Minute})
	hasty := b.Client(t, func(o *client.Options) { o.AckTimeout = 300 * time.Millisecond })
	o.clerks.Go(func() { o.work(ctx, hasty, frozen) })
	testkit.Eventually(t, "what the stuck shard owes ends as unknown", func() bool { return o.unknown() > 0 })
	b.Fault(testkit.Fault{Do: "heal", Stream: wide, Shard: frozen})
	healed := o.acknowledged()
	testkit.Eventually(t, "the healed shard acknowledges again", func() bool { return o.acknowledged() >= healed+10 })
	stop()
	o.clerks.Wait()
	if n := b.Metric("felix_client_connections_total"); n != 3 {
		t.Errorf("%v connections were made, want one for each publisher and one for the reader", n)
	}
	got.settle(t, o.done)
}

// patiently lets a client wait for its answers for as long as a shard may be stuck here.
func patiently(o *client.Options) { o.AckTimeout = 10 * testkit.Patience }

// field case STR-03: the same when somebody publishes to the stuck shard without waiting for answers, as much as the client takes. What the
// shard owes must not use up what the client may have under way to the others.
func TestSTR03_AFloodToAStuckShardDoesNotBlockHealthyShardsOfTheSameClient(t *testing.T) {
	ctx, stop := context.WithCancel(patient(t))
	defer stop()
	b := start(t, testkit.Setup{})
	publisher := b.Client(t, patiently)
	o := newOffice(ctx, t, publisher)
	o.window(length())
	var rates contest
	rates.hold(t, "healthy shards beside a stuck one that is flooded", 0.9, func() float64 {
		rate, _ := o.window(length())
		return rate
	}, func() float64 {
		b.Fault(testkit.Fault{Do: "pause", Stream: wide, Shard: frozen, For: 10 * time.Minute})
		flooded := flood(ctx, publisher)
		b.Counts("felix_publish_inflight_bytes", floodStands)
		rate, _ := o.window(length())
		b.Fault(testkit.Fault{Do: "heal", Stream: wide, Shard: frozen})
		if err := flooded(); err != nil {
			t.Fatalf("the flood: %v", err)
		}
		return rate
	})
	stop()
	o.clerks.Wait()
}

// floodStands is what the flood has under way once it stands still: the half of the client's bytes that one shard may have, less one publish.
// Until then it takes its share of the processors, and what is measured is not what it holds up.
const floodStands = client.DefaultPublishInflightBytes/2 - 2*floodBytes

// floodBytes is the payload of each of its publishes.
const floodBytes = 64 << 10

// flood publishes to the frozen shard without waiting, as fast as the client takes it, until the function that it returns is called.
// That waits until all of it is answered, and returns what went wrong; that the shard is overloaded is no wonder.
func flood(ctx context.Context, c *client.Client) (end func() error) {
	const most = 1000 // publishes
	ctx, stop := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		var open []*client.PendingPublish
		payload, key := make([]byte, floodBytes), client.WithKey(keyOf(frozen, shards))
		for range most {
			p, err := c.PublishAsync(ctx, namespace, wide, payload, key)
			if err != nil {
				break // ctx has ended
			}
			open = append(open, p)
		}
		var wrong error
		for _, p := range open {
			if _, err := p.Wait(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, client.ErrOverloaded) {
				wrong = errors.Join(wrong, err)
			}
		}
		over <- wrong
	}()
	return func() error { stop(); return <-over }
}

// floor is how slow p99 may be in any case: below it, a difference says how busy the machine is.
func floor() time.Duration {
	switch {
	case testkit.Raced:
		return 500 * time.Millisecond
	case effort.Full():
		return 25 * time.Millisecond
	}
	return 100 * time.Millisecond // at a landing, other packages are tested on the same cores
}

// office publishes to all shards at once. Each shard has some clerks, and each clerk one publish under way.
type office struct {
	t      testing.TB
	clerks sync.WaitGroup

	mu     sync.Mutex
	times  []time.Duration // of publishes to the healthy shards, since the window began
	next   uint64          // number of the next record of the frozen shard
	done   []uint64        // its records that were acknowledged
	lost   int             // its publishes that ended as unknown
	failed error
}

const clerksEach = 2

func newOffice(ctx context.Context, t testing.TB, c *client.Client) *office {
	o := &office{t: t}
	for shard := range uint32(shards) {
		for range clerksEach {
			o.clerks.Go(func() { o.work(ctx, c, shard) })
		}
	}
	return o
}

func (o *office) work(ctx context.Context, c *client.Client, shard uint32) {
	key := client.WithKey(keyOf(shard, shards))
	for ctx.Err() == nil {
		o.mu.Lock()
		n := o.next
		if shard == frozen {
			o.next++
		}
		o.mu.Unlock()
		began := time.Now()
		_, err := c.Publish(ctx, namespace, wide, record(n, 1<<10), key)
		if ctx.Err() != nil {
			return
		}
		o.note(shard, n, time.Since(began), err)
	}
}

func (o *office) note(shard uint32, n uint64, took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case shard == frozen && errors.Is(err, client.ErrOutcomeUnknown):
		o.lost++
	case err != nil:
		o.failed = errors.Join(o.failed, err)
	case shard == frozen:
		o.done = append(o.done, n)
	case len(o.times) < 1<<20:
		o.times = append(o.times, took)
	}
}

// window measures the healthy shards for a while, and until something was done: publishes in a second, and p99 of how long they took.
func (o *office) window(lasting time.Duration) (rate float64, p99 time.Duration) {
	o.t.Helper()
	o.mu.Lock()
	o.times = o.times[:0]
	o.mu.Unlock()
	began := time.Now()
	testkit.After(lasting)
	var times []time.Duration
	var failed error
	testkit.Eventually(o.t, "healthy shards are served", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		times, failed = slices.Clone(o.times), o.failed
		return len(times) >= shards || failed != nil
	})
	if failed != nil {
		o.t.Fatalf("a publish failed: %v", failed)
	}
	return float64(len(times)) / time.Since(began).Seconds(), testkit.Percentile(times, 99)
}

func (o *office) unknown() int { o.mu.Lock(); defer o.mu.Unlock(); return o.lost }

func (o *office) acknowledged() int { o.mu.Lock(); defer o.mu.Unlock(); return len(o.done) }

// collection is what a subscription has delivered.
type collection struct {
	mu  sync.Mutex
	all []uint64
}

// collect reads a subscription until ctx ends.
func collect(ctx context.Context, t testing.TB, s *client.Subscription) *collection {
	c := &collection{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for e, err := range s.Events(context.WithoutCancel(ctx)) {
			if err != nil {
				return // the test has closed it
			}
			c.mu.Lock()
			c.all = append(c.all, numberOf(e.Payload))
			c.mu.Unlock()
		}
	})
	t.Cleanup(func() { s.Close(); reading.Wait() })
	return c
}

// settle waits until all that was acknowledged has come, and requires that nothing came twice.
func (c *collection) settle(t testing.TB, owed []uint64) {
	t.Helper()
	var missing uint64
	if !testkit.Eventually(t, "what was acknowledged is delivered", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		seen := map[uint64]bool{}
		for _, n := range c.all {
			if seen[n] {
				t.Fatalf("record %d was delivered twice", n)
			}
			seen[n] = true
		}
		for _, missing = range owed {
			if !seen[missing] {
				return false
			}
		}
		return true
	}) {
		t.Errorf("record %d of %d was acknowledged and did not come", missing, len(owed))
	}
}
