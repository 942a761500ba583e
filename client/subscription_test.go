package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

func TestCloseStopsTheEventStreamAndWakesNext(t *testing.T) {
	opened := make(chan *testbroker.Events, 1)
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		opened <- e
	})
	s := subscribe(t, connect(t, b), SubscribeOptions{})
	result := make(chan error)
	go func() {
		_, err := s.Next(context.Background())
		result <- err
	}()
	s.Close()
	s.Close()
	wantIs(t, await(t, "end of Next", result), ErrClosed)
	await(t, "stop of the event stream", await(t, "subscription", opened).Stopped())
}

func TestClosingTheClientEndsItsSubscriptionsWithErrClosed(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 2}})
	c := connect(t, b)
	s := subscribe(t, c, SubscribeOptions{})
	m, err := c.SubscribeAll(within(t), "ns", "s", SubscribeAllOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Next(within(t))
	wantIs(t, err, ErrClosed)
	for err = nil; !errors.Is(err, ErrClosed); _, err = m.Next(within(t)) {
		if errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	m.Close()
}

func TestEventsIteratesAndGoesOnAfterABreak(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b)
	s := subscribe(t, c, SubscribeOptions{})
	for i := range 6 {
		if _, err := c.Publish(within(t), "ns", "s", fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	next := 0
	for next < 6 {
		for e, err := range s.Events(within(t)) {
			if err != nil || string(e.Payload) != fmt.Sprint(next) {
				t.Fatalf("event %d: %q, %v", next, e.Payload, err)
			}
			next++
			if next%2 == 0 {
				break
			}
		}
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range s.Events(canceled) {
		wantIs(t, err, context.Canceled)
	}
}

func TestAbandonedSubscribeLeavesNoEventStreamBehind(t *testing.T) {
	opened := make(chan *testbroker.Events, 1)
	late := make(chan struct{})
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		e := s.OpenEventsSilently()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		<-late
		e.Send(&wire.EventStreamHello{SubscriptionID: e.ID})
		opened <- e
	})
	c := connect(t, b)
	ctx, cancel := context.WithCancel(context.Background())
	given := make(chan error, 1)
	go func() { _, err := c.Subscribe(ctx, "ns", "s", SubscribeOptions{}); given <- err }()
	until(t, "acceptance", func() bool { return waitingFor(c) == 1 }) // the client waits for the event stream
	cancel()
	wantIs(t, await(t, "end of the subscribe", given), context.Canceled)
	close(late)
	await(t, "stop of the event stream", await(t, "subscription", opened).Stopped())
}

// waitingFor is how many event streams and subscriptions of a client's connection wait for each other.
func waitingFor(c *Client) int {
	r := c.life.open()[0].events
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.places)
}

func TestQueueCapacityIsAskedOnlyOfABrokerThatTakesIt(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	_, err := connect(t, b).Subscribe(within(t), "ns", "s", SubscribeOptions{QueueCapacity: 7})
	wantIs(t, err, ErrUnsupported)
	asked := make(chan uint32, 1)
	b = testbroker.New(t, testbroker.Options{
		Streams: map[string]uint32{"ns/s": 1}, Features: testbroker.DefaultFeatures | wire.FeatureSubscribeQueue,
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if m, ok := f.Message().(*wire.Subscribe); ok {
				asked <- m.QueueCapacity.V
			}
			return false
		},
	})
	subscribe(t, connect(t, b), SubscribeOptions{QueueCapacity: 7})
	if n := await(t, "subscribe", asked); n != 7 {
		t.Fatalf("asked for %d", n)
	}
}

func TestNextMayBeCalledFromSeveralGoroutines(t *testing.T) {
	const n = 400
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b)
	s := subscribe(t, c, SubscribeOptions{})
	ctx := within(t)
	seen := make(chan string, n)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range n / 4 {
				e, err := s.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				seen <- string(e.Payload)
			}
		})
	}
	for i := range n {
		if _, err := c.Publish(ctx, "ns", "s", fmt.Appendf(nil, "%d", i), WithAck(AckNone)); err != nil {
			t.Fatal(err)
		}
	}
	readers.Wait()
	close(seen)
	once := make(map[string]bool)
	for p := range seen {
		once[p] = true
	}
	if len(once) != n {
		t.Fatalf("%d different events, want %d", len(once), n)
	}
}
