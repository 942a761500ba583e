package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
)

// orphan is a client whose only broker died without a word: datagrams to it still leave, and nothing comes back.
func orphan(t *testing.T, changes ...change) *Client {
	t.Helper()
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b, append([]change{func(o *Options) { o.Attempts = 3 }}, changes...)...)
	l, err := c.entry.publishLinks.acquire(within(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the connection", l.conn.Context().Done())
	c.seeds.mu.Lock()
	c.seeds.configured = []string{deadAddress(t)}
	c.seeds.mu.Unlock()
	c.opts.DialTimeout = 100 * time.Millisecond // from here on nobody can answer, however slow this machine is
	return c
}

func TestCallToADeadBrokerFailsAfterItsTries(t *testing.T) {
	noLeaks(t)
	clock := newClock()
	c := orphan(t)
	c.sleep = clock.sleep
	began := time.Now()
	_, err := c.Publish(within(t), "ns", "s", []byte("x"))
	took := time.Since(began)
	wantIs(t, err, ErrUnreachable)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("nothing was sent: %v", err)
	}
	if g := wantAs[*GaveUpError](t, err); g.Tries != 3 {
		t.Fatalf("%d tries", g.Tries)
	}
	if n := len(clock.slept()); n != 2 {
		t.Fatalf("%d pauses", n)
	}
	if took < 300*time.Millisecond || took > 5*time.Second { // three dials of 100 ms
		t.Fatalf("it took %v", took)
	}
}

func TestManyCallsToADeadBrokerFailTogether(t *testing.T) {
	noLeaks(t)
	c := orphan(t, func(o *Options) { o.PublishStreams = 2 })
	began := time.Now()
	var callers sync.WaitGroup
	for range 60 { // one after the other they would take 18 s
		callers.Go(func() {
			_, err := c.Publish(within(t), "ns", "s", []byte("x"))
			wantIs(t, err, ErrUnreachable)
		})
		callers.Go(func() {
			_, err := c.Subscribe(within(t), "ns", "s", SubscribeOptions{})
			wantIs(t, err, ErrUnreachable)
		})
	}
	callers.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Fatalf("they took %v", took)
	}
}

func TestRetryDeadlineEndsRepetition(t *testing.T) {
	clock := newClock()
	c := orphan(t, func(o *Options) { o.Attempts, o.RetryDeadline = 100, 2*time.Second })
	c.now, c.sleep = clock.now, clock.sleep
	c.jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	_, err := c.StreamShards(within(t), "ns", "s")
	if g := wantAs[*GaveUpError](t, err); g.Tries != 4 { // pauses of 200, 400, 800 ms; 1.6 s more would be too long
		t.Fatalf("%d tries, pauses %v", g.Tries, clock.slept())
	}
}

func TestCanceledCallToADeadBrokerEndsAtOnce(t *testing.T) {
	noLeaks(t)
	c := orphan(t)
	c.opts.DialTimeout = time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := c.Publish(ctx, "ns", "s", []byte("x"))
	wantIs(t, err, context.DeadlineExceeded)
	if took := time.Since(began); took > 5*time.Second {
		t.Fatalf("it took %v", took)
	}
	if err := c.Close(within(t)); err != nil { // gives the dial up that goes on
		t.Fatal(err)
	}
}

func TestSecondAddressTakesOverWhenTheFirstBrokerDies(t *testing.T) {
	noLeaks(t)
	first := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	second := testbroker.New(t, testbroker.Options{Share: first})
	c := connect(t, first, func(o *Options) {
		o.Addrs = []string{first.Addr(), second.Addr()}
		o.DialTimeout = time.Second
	})
	ctx := within(t)
	if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	lane := laneOf(t, c)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the lane", lane.closed)
	if _, err := c.Publish(ctx, "ns", "s", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if second.Connections() != 1 {
		t.Fatalf("%d connections to the second broker", second.Connections())
	}
}
