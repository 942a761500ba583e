package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// soon lets a record that failed come again at once.
func soon(Message, error) time.Duration { return time.Millisecond }

func consume(t *testing.T, c *Client, handler Handler, o ConsumeOptions) *Consumer {
	t.Helper()
	k, err := c.Consume(within(t), "ns", "s", "g", handler, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func stop(t *testing.T, k *Consumer) {
	t.Helper()
	if err := k.Stop(within(t)); err != nil {
		t.Fatal(err)
	}
	if s := k.Stats(); s.InHand != 0 || s.InHandBytes != 0 || s.Running != 0 {
		t.Fatalf("stopped with %+v", s)
	}
}

// until waits for something that happens elsewhere.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	if !happens(is) {
		t.Fatalf("%s did not happen", what)
	}
}

func happens(is func() bool) bool {
	looks := time.NewTicker(time.Millisecond)
	defer looks.Stop()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-looks.C:
		case <-deadline:
			return false
		}
	}
	return true
}

// virtual is the client of a broker whose time stands still unless a test moves it, for consumers that prolong their claims by it. The
// broker's own goes on: a claim stands there for as long as the test takes.
func virtual(t *testing.T, b *testbroker.Broker) (*Client, *clock) {
	t.Helper()
	clock := newClock()
	return connectWith(t, b, func(c *Client) { c.now = clock.now }), clock
}

// later lets time pass for a consumer of such a client.
func later(k *Consumer, clock *clock, d time.Duration) {
	clock.move(d)
	select {
	case k.kick <- struct{}{}:
	default: // it is about to look at the clock anyway
	}
}

// drained says whether a group has finished every record of all shards of a stream.
func drained(b *testbroker.Broker, shards uint32) bool {
	for shard := range shards {
		v := b.Group("ns/s", shard, "g")
		if int(v.Cursor) != len(b.Payloads("ns/s", shard)) || len(v.Held)+len(v.Owed) > 0 {
			return false
		}
	}
	return true
}

// tally counts how often each record was handled.
type tally struct {
	mu    sync.Mutex
	times map[string]int
}

func (c *tally) add(m Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = make(map[string]int)
	}
	c.times[string(m.Payload)]++
	return c.times[string(m.Payload)]
}

func (c *tally) wantEach(t *testing.T, records, times int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.times) != records {
		t.Errorf("%d records were handled, want %d", len(c.times), records)
	}
	for record, n := range c.times {
		if n != times {
			t.Errorf("record %s was handled %d times, want %d", record, n, times)
		}
	}
}

func TestEachRecordOfAllShardsIsHandledAndFinished(t *testing.T) {
	noLeaks(t)
	b := queue(t, 3, 100)
	c := connect(t, b)
	var seen tally
	var running, most atomic.Int64
	type key struct{}
	k, err := c.Consume(context.WithValue(within(t), key{}, "value"), "ns", "s", "g", func(ctx context.Context, m Message) error {
		now := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		if want := fmt.Sprintf("%d-%d", m.Shard, m.Offset); string(m.Payload) != want || m.Attempts != 1 || m.Timestamp.IsZero() || ctx.Value(key{}) != "value" {
			t.Errorf("%+v", m)
		}
		seen.add(m)
		return nil
	}, ConsumeOptions{Concurrency: 4})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the queue", func() bool { return drained(b, 3) })
	fillShard(b, 1, 0)
	stop(t, k)
	seen.wantEach(t, 300, 1)
	if s := k.Stats(); s.Received != 300 || s.Acked != 300 || s.Polls == 0 || s.Nacked+s.Stale+s.Lapsed+s.Failed+s.Resent != 0 || most.Load() > 4 {
		t.Fatalf("%+v, %d at a time", s, most.Load())
	}
	if !strings.HasPrefix(k.Member(), "go-") || k.Err() != nil {
		t.Fatalf("%q, %v", k.Member(), k.Err())
	}
}

func TestClaimOfARunningHandlerIsProlonged(t *testing.T) {
	noLeaks(t)
	atSomeSpeed(t, 200*time.Millisecond, func(visibility time.Duration) bool { // on a slow machine claims may lapse before they are prolonged
		b := queue(t, 1, 2)
		c := connect(t, b)
		release := make(chan struct{})
		var seen tally
		handler := func(_ context.Context, m Message) error {
			seen.add(m)
			<-release
			return nil
		}
		o := ConsumeOptions{Concurrency: 1, MaxInHand: 4, Visibility: visibility}
		k := consume(t, c, handler, o) // one is worked on, one waits
		until(t, "both in hand", func() bool { return k.Stats().Received >= 2 })
		other := consume(t, c, handler, o)
		lapsed := func() bool { return k.Stats().Received > 2 || other.Stats().Received > 0 }
		until(t, "prolongation", func() bool { return k.Stats().Extended >= 10 || lapsed() }) // past the first visibility by far
		close(release)
		until(t, "the end of the queue", func() bool { return drained(b, 1) })
		stop(t, k)
		stop(t, other)
		if lapsed() {
			return false
		}
		seen.wantEach(t, 2, 1)
		return true
	})
}

func TestFailedRecordComesAgainAfterAPause(t *testing.T) {
	noLeaks(t)
	nacks := make(chan *wire.GroupNack, 10)
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnFrame = func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if m, ok := f.Message().(*wire.GroupNack); ok {
				nacks <- m
			}
			return false
		}
	})
	var reported atomic.Int64
	failure := errors.New("not today")
	k := consume(t, connect(t, b), func(_ context.Context, m Message) error {
		switch m.Attempts {
		case 1:
			return RetryAfter(20*time.Millisecond, failure)
		case 2:
			return failure
		}
		return nil
	}, ConsumeOptions{RetryDelay: soon, OnError: func(m *Message, err error) {
		if m == nil || m.Offset != 0 || !errors.Is(err, failure) {
			t.Errorf("%v, %v", m, err)
		}
		reported.Add(1)
	}})
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	for i, want := range []uint64{20, 1} {
		if m := <-nacks; m.DelayMillis != want || m.Attempts != uint32(i+1) {
			t.Errorf("%+v", m)
		}
	}
	if s := k.Stats(); s.Failed != 2 || s.Nacked != 2 || s.Acked != 1 || s.Redelivered != 2 || reported.Load() != 2 {
		t.Fatalf("%+v, %d reported", s, reported.Load())
	}
}

func TestPauseOfAFailedRecordDoublesUpToAMinute(t *testing.T) {
	var o ConsumeOptions
	for attempts, want := range map[uint32]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1 << 31: time.Minute} {
		if got := o.delayOf(Message{Attempts: attempts}, ErrClosed); got != want {
			t.Errorf("attempt %d: %v, want %v", attempts, got, want)
		}
	}
	if got := o.delayOf(Message{}, fmt.Errorf("around: %w", RetryAfter(time.Hour, ErrClosed))); got != time.Hour {
		t.Error(got)
	}
}

func TestPanicOfAHandlerIsANackAndReported(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	mistake := errors.New("mistake")
	reports := make(chan error, 10)
	k := consume(t, connect(t, b), func(_ context.Context, m Message) error {
		switch m.Attempts {
		case 1:
			panic(mistake)
		case 2:
			runtime.Goexit()
		}
		return nil
	}, ConsumeOptions{Concurrency: 1, OnError: func(_ *Message, err error) { reports <- err }, RetryDelay: func(m Message, _ error) time.Duration {
		if m.Attempts == 2 {
			return time.Millisecond
		}
		return -1
	}})
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	err := await(t, "report", reports)
	if e := wantAs[*PanicError](t, err); !errors.Is(err, mistake) || !strings.Contains(string(e.Stack), "consume_test.go") {
		t.Fatalf("%v, %s", err, e.Stack)
	}
	if e := wantAs[*PanicError](t, await(t, "report", reports)); e.Value != nil {
		t.Fatalf("%v", e.Value)
	}
	if s := k.Stats(); s.Panics != 2 || s.Failed != 2 || s.Nacked != 2 || s.Acked != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestPanicWhileThePauseIsChosenIsReportedToo(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1, func(o *testbroker.Options) { o.GroupMaxAttempts = 1 })
	reports := make(chan error, 10)
	k := consume(t, connect(t, b), func(context.Context, Message) error { return ErrClosed }, ConsumeOptions{
		OnError: func(_ *Message, err error) { reports <- err }, RetryDelay: func(Message, error) time.Duration { panic("no idea") }})
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	wantAs[*PanicError](t, await(t, "report", reports))
}

func TestRecordThatAHandlerGivesUpIsADeadLetterAtOnce(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3)
	k := consume(t, connect(t, b), func(_ context.Context, m Message) error {
		if m.Offset == 1 {
			return fmt.Errorf("handle: %w", DeadLetter(errors.New("nonsense")))
		}
		return nil
	}, ConsumeOptions{})
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	if v := b.Group("ns/s", 0, "g"); !slices.Equal(v.DeadLetters, []id.Offset{1}) {
		t.Fatalf("%+v", v)
	}
	if s := k.Stats(); s.DeadLettered != 1 || s.Acked != 2 || s.Nacked != 0 {
		t.Fatalf("%+v", s)
	}
	if DeadLetter(nil) != ErrDeadLetter {
		t.Error("a dead letter without a cause is not ErrDeadLetter")
	}
}
