package client

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

func TestStopFinishesWhatRunsAndGivesTheRestBack(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 10)
	release := make(chan struct{})
	k := consume(t, connect(t, b), func(context.Context, Message) error { <-release; return nil }, ConsumeOptions{Concurrency: 2, MaxInHand: 6})
	until(t, "full hands", func() bool { return k.Stats().Received == 6 && k.Stats().Running == 2 })
	stopped := make(chan error, 1)
	go func() { stopped <- k.Stop(within(t)) }()
	until(t, "return of what nobody began", func() bool { return k.Stats().GivenBack == 4 })
	select {
	case <-k.Done():
		t.Fatal("it did not wait for its handlers")
	default:
	}
	close(release)
	if err := await(t, "stop", stopped); err != nil {
		t.Fatal(err)
	}
	await(t, "end", k.Done())
	if v := b.Group("ns/s", 0, "g"); len(v.Held) != 0 || len(v.Owed) != 4 || v.Cursor != 2 {
		t.Fatalf("%+v", v)
	}
	if s := k.Stats(); s.Acked != 2 || s.InHand != 0 {
		t.Fatalf("%+v", s)
	}
	if err := k.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestStopEndsHandlersAndGivesBackWhatTheyDoNotSettleInTime(t *testing.T) {
	noLeaks(t)
	// An eighth of the time is for the handler that heeds its context, and another for giving the rest back.
	atSomeSpeed(t, 300*time.Millisecond, func(timeout time.Duration) bool {
		b := queue(t, 1, 2)
		release := make(chan struct{})
		left := make(chan struct{})
		k := consume(t, connect(t, b), func(ctx context.Context, m Message) error {
			if m.Offset == 0 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			defer close(left)
			<-release // heeds nothing
			return nil
		}, ConsumeOptions{StopTimeout: timeout, RetryDelay: soon})
		until(t, "full hands", func() bool { return k.Stats().Running == 2 })
		err := k.Stop(context.Background())
		close(release)
		await(t, "end of the handler", left)
		s := k.Stats()
		if err != nil || s.Nacked != 1 {
			return false
		}
		if v := b.Group("ns/s", 0, "g"); len(v.Held) != 0 || len(v.Owed) != 2 {
			t.Errorf("%+v", v)
		}
		if s.GivenBack != 1 || s.Acked != 0 {
			t.Errorf("%+v", s)
		}
		return true
	})
}

func TestStopTellsHowManyRecordsItCouldNotSettle(t *testing.T) {
	noLeaks(t)
	var silent atomic.Bool
	b := queue(t, 1, 3, func(o *testbroker.Options) {
		o.OnGroupAnswer = func(*testbroker.Stream, wire.Message, wire.Message) bool { return silent.Load() }
	})
	release := make(chan struct{})
	k := consume(t, connect(t, b), func(context.Context, Message) error { <-release; return nil }, ConsumeOptions{Concurrency: 3})
	until(t, "full hands", func() bool { return k.Stats().Running == 3 })
	silent.Store(true)
	close(release)
	err := k.Stop(short(t))
	wantIs(t, err, context.DeadlineExceeded)
	<-k.Done()
	if err = k.Stop(within(t)); err == nil || !strings.Contains(err.Error(), "3 records were not settled") {
		t.Fatal(err)
	}
	if s := k.Stats(); s.Acked != 0 || s.GivenBack != 0 { // nothing is reported done that was not answered
		t.Fatalf("%+v", s)
	}
}

func TestClosingTheClientStopsItsConsumers(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 4)
	c := connect(t, b)
	started := make(chan struct{}, 4)
	k := consume(t, c, func(context.Context, Message) error { started <- struct{}{}; return nil }, ConsumeOptions{})
	await(t, "start", started)
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	await(t, "end", k.Done())
	if v := b.Group("ns/s", 0, "g"); len(v.Held) != 0 {
		t.Fatalf("%+v", v)
	}
	_, err := c.Consume(within(t), "ns", "s", "g", func(context.Context, Message) error { return nil }, ConsumeOptions{})
	wantIs(t, err, ErrClosed)
}

func TestConsumerEndsByItselfWhenItIsRefusedForGood(t *testing.T) {
	noLeaks(t)
	var forbidden atomic.Bool
	b := queue(t, 2, 1, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			if !forbidden.Load() || !isA[*wire.GroupPoll](f.Message()) {
				return false
			}
			s.Refuse(wire.Refuse(wire.CodeForbidden, "not any more"))
			return true
		}
	})
	reports := make(chan error, 100)
	k := consume(t, connect(t, b), func(context.Context, Message) error { return nil }, ConsumeOptions{OnError: func(_ *Message, err error) { reports <- err }})
	until(t, "the end of the queue", func() bool { return drained(b, 2) })
	forbidden.Store(true)
	b.Append("ns/s", 0, testbroker.Region("wake up"))
	await(t, "end", k.Done())
	wantIs(t, k.Err(), ErrForbidden)
	wantIs(t, await(t, "report", reports), ErrForbidden)
	if err := k.Stop(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestStreamThatIsGoneEndsTheConsumerAfterItsGrace(t *testing.T) {
	noLeaks(t)
	var gone atomic.Bool
	var began atomic.Pointer[time.Time]
	clock := newClock()
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			if !gone.Load() || !isA[*wire.GroupPoll](f.Message()) {
				return false
			}
			now := clock.now() // it stands still while the consumer waits for this answer
			began.CompareAndSwap(nil, &now)
			s.Refuse(wire.Refuse(wire.CodeNotFound, "deleted"))
			return true
		}
	})
	c := connectWith(t, b, func(c *Client) {
		c.now, c.sleep, c.jitter = clock.now, clock.sleep, func(d time.Duration) time.Duration { return d }
	})
	k := consume(t, c, func(context.Context, Message) error { return nil }, ConsumeOptions{PollWait: time.Millisecond})
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	gone.Store(true)
	await(t, "end", k.Done())
	wantIs(t, k.Err(), ErrNotFound)
	if took := clock.now().Sub(*began.Load()); took < notFoundGrace || took > notFoundGrace+longestPause {
		t.Errorf("it took %v", took)
	}
}

func TestAnswerOfAPollThatStopMeetsIsGivenBack(t *testing.T) {
	noLeaks(t)
	var consumer atomic.Pointer[Consumer]
	asked := make(chan struct{})
	b := queue(t, 1, 3, func(o *testbroker.Options) {
		o.OnGroupAnswer = func(_ *testbroker.Stream, request, answer wire.Message) bool {
			records, ok := answer.(*wire.GroupRecords)
			if ok && request.(*wire.GroupPoll).WaitMillis == 0 && len(records.Records) > 0 {
				close(asked)
				if !happens(func() bool { return consumer.Load() != nil && consumer.Load().polling.Err() != nil }) {
					t.Error("the consumer was not stopped")
				}
			}
			return false
		}
	})
	k := consume(t, connect(t, b), func(context.Context, Message) error { return nil }, ConsumeOptions{Concurrency: 1, MaxInHand: 3, Visibility: ConsumeVisibilityMax})
	k.latePoll = patience // it may take as long as it takes
	consumer.Store(k)
	await(t, "poll", asked)
	stop(t, k)
	if v := b.Group("ns/s", 0, "g"); len(v.Held) != 0 || len(v.Owed) == 0 || k.Stats().GivenBack == 0 {
		t.Fatalf("%+v, %+v", v, k.Stats())
	}
}

func TestStopDropsWhatIsNotOursAnyMore(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 2)
	release, left := make(chan struct{}), make(chan struct{})
	handler := func(context.Context, Message) error { defer close(left); <-release; return nil }
	c, clock := virtual(t, b)
	k := consume(t, c, handler, ConsumeOptions{Concurrency: 1, MaxInHand: 2, StopTimeout: 100 * time.Millisecond})
	until(t, "full hands", func() bool { return k.Stats().Received == 2 && k.Stats().Running == 1 })
	b.ForgetClaims("ns/s", 0, "g")
	later(k, clock, DefaultVisibility/3)
	until(t, "the broker's word", func() bool { return k.Stats().Stale == 2 })
	if err := k.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := k.Stats(); s.Lapsed != 2 || s.GivenBack != 0 || s.InHand != 0 {
		t.Fatalf("%+v", s)
	}
	close(release)
	await(t, "end of the handler", left)
}

func TestClosingTheClientDoesNotWaitForAConsumerThatEndsByItself(t *testing.T) {
	noLeaks(t)
	begun := make(chan struct{})
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			if m, ok := f.Message().(*wire.GroupPoll); !ok || m.WaitMillis > 0 {
				return false
			}
			select { // a record that no handler has begun is given back at the refusal
			case <-begun:
			case <-time.After(patience):
				t.Error("no handler began")
			}
			s.Refuse(wire.Refuse(wire.CodeForbidden, "not any more"))
			return true
		}
	})
	c, err := Connect(within(t), optionsFor(b))
	if err != nil {
		t.Fatal(err)
	}
	release, left := make(chan struct{}), make(chan struct{})
	k := consume(t, c, func(context.Context, Message) error { defer close(left); close(begun); <-release; return nil }, ConsumeOptions{
		Concurrency: 2, MaxInHand: 2, StopTimeout: time.Hour})
	until(t, "an end by itself", func() bool { return k.Err() != nil && k.polling.Err() != nil && k.Stats().Running == 1 })
	wantIs(t, c.Close(short(t)), context.DeadlineExceeded)
	await(t, "end", k.Done())
	close(release)
	await(t, "end of the handler", left)
}
