package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// gatherers is a client with two lanes of one connection, on each of which a get of "wait" is under way until the test ends. The test itself is
// about to write for the gathering of their connection. got is told the keys of all gets that reach the broker, and of
// puts with "put " before them.
func gatherers(t *testing.T) (c *Client, a, b *lane, got chan string) {
	got = make(chan string, 100)
	answers := make(chan func(), 10)
	broker := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if m, ok := f.Message().(*wire.CachePut); ok {
			got <- "put " + m.Key
		}
		m, ok := f.Message().(*wire.CacheGet)
		if !ok {
			return false
		}
		got <- m.Key
		if m.Key == "wait" {
			answers <- func() { s.Send(&wire.CacheValue{RequestID: m.RequestID}) }
		}
		return m.Key == "wait"
	}})
	c = connect(t, broker, func(o *Options) { o.CacheConns, o.CacheStreams = 1, 2 })
	var waiting sync.WaitGroup
	for range 2 { // on a lane each
		waiting.Go(func() { _, _, _ = c.CacheGet(within(t), "ns", "c", "wait") })
		if key := await(t, "request", got); key != "wait" {
			t.Fatalf("asked for %q", key)
		}
	}
	t.Cleanup(func() {
		over := make(chan struct{})
		go func() { waiting.Wait(); close(over) }()
		for { // they come again when their lane has failed
			select {
			case answer := <-answers:
				answer()
			case <-over:
				return
			}
		}
	})
	a, _ = c.entry.caches.places[0].current()
	b, _ = c.entry.caches.places[1].current()
	if a.control.link != b.control.link {
		t.Fatal("two connections")
	}
	if !a.control.link.gathering.Join(a) {
		t.Fatal("somebody writes although all has been written")
	}
	return c, a, b, got
}

// waits reports how many requests a lane has that are not written.
func (l *lane) waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.requests
}

func TestRequestsOfCallersThatGatherLeaveTogetherInTheirOrder(t *testing.T) {
	c, a, b, got := gatherers(t)
	ctx := within(t)
	var callers sync.WaitGroup
	for i := range 6 {
		callers.Go(func() {
			if _, found, err := c.CacheGet(ctx, "ns", "c", fmt.Sprint(i)); found || err != nil {
				t.Errorf("%d: %v, %v", i, found, err)
			}
		})
		until(t, "the request gathers", func() bool { return a.waits()+b.waits() == i+1 })
	}
	if len(got) != 0 {
		t.Errorf("%q was asked although nobody has written", <-got)
	}
	if n := a.control.link.gathering.Flush((*lane).writeGathered); n != 1+2 {
		t.Errorf("%d lanes were there, want the test's and two that have requests", n)
	}
	var order [2][]string
	for range 6 {
		key := await(t, "request", got)
		order[int(key[0]-'0')%2] = append(order[int(key[0]-'0')%2], key)
	}
	callers.Wait()
	for i, keys := range order { // callers take the lanes in turn
		if !slices.IsSorted(keys) {
			t.Errorf("lane %d: %q", i, keys)
		}
	}
}

// The stream breaks, or the caller gives up, while a request gathers: nothing of it is left with who writes later.
func TestARequestThatGathersEndsWithItsLaneOrItsCaller(t *testing.T) {
	c, a, b, got := gatherers(t)
	ctx, cancel := context.WithCancel(within(t))
	cut := &ConnectionLostError{Err: errors.New("cut")}
	for i, end := range []func(){cancel, func() { a.fail(cut); b.fail(cut) }} {
		ended := make(chan error, 1)
		go func() {
			err := c.CachePut(ctx, "ns", "c", "k", nil, 0)
			ended <- err
		}()
		until(t, "the request gathers", func() bool { return a.waits()+b.waits() == i+1 })
		end()
		err := await(t, "the end of the request", ended)
		if i == 0 {
			wantIs(t, err, context.Canceled)
			ctx = within(t)
		} else {
			wantIs(t, err, ErrConnectionLost)
		}
	}
	a.control.link.gathering.Flush((*lane).writeGathered)
	for len(got) > 0 {
		if key := <-got; key != "wait" { // those are repeated when their lane has failed
			t.Errorf("%q was asked", key)
		}
	}
}

func TestARequestIsWrittenAtOnceWhereNoOtherIsUnderWayAndWhenItIsLarge(t *testing.T) {
	c, a, _, _ := gatherers(t)
	if err := c.CachePut(within(t), "ns", "c", "k", make([]byte, writeNowMost), 0); err != nil {
		t.Error(err)
	}
	a.control.link.gathering.Flush((*lane).writeGathered)
	alone := connect(t, testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}}))
	for range 2 {
		if err := alone.CachePut(within(t), "ns", "c", "k", nil, time.Minute); err != nil {
			t.Error(err)
		}
		l, ok := alone.entry.caches.places[0].current()
		if !ok {
			t.Fatal("no lane")
		}
		l.control.link.gathering.Join(l) // whoever would gather from now on waits for ever
	}
}
