package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// inside is a place from which a consumer may be told to stop, and be waiting for whoever says so.
type inside struct {
	consumer chan *Consumer
	once     sync.Once
	stopped  chan error // what Stop returned there
}

func newInside() *inside {
	return &inside{consumer: make(chan *Consumer, 1), stopped: make(chan error, 1)}
}

// stop stops the consumer, the first time that it is called.
func (i *inside) stop(ctx context.Context) {
	i.once.Do(func() {
		k := <-i.consumer
		i.stopped <- k.Stop(ctx)
	})
}

// wantEnd checks that the consumer ends in order once whoever called Stop has gone on.
func (i *inside) wantEnd(t *testing.T, k *Consumer, b *testbroker.Broker) {
	t.Helper()
	await(t, "end of the consumer", k.Done())
	stop(t, k)
	if v := b.Group("ns/s", 0, "g"); len(v.Held) != 0 {
		t.Errorf("still claimed: %+v", v)
	}
}

func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestStopFromOnErrorOfAPollEndsWithItsContextAndTheConsumerInOrder(t *testing.T) {
	noLeaks(t)
	for _, code := range []wire.Code{wire.CodeOverloaded, wire.CodeForbidden} { // the consumer would go on, and ends by itself
		var refuses atomic.Bool
		b := queue(t, 1, 3, func(o *testbroker.Options) {
			o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
				refused := refuses.Load() && isA[*wire.GroupPoll](f.Message())
				if refused {
					s.Refuse(wire.Refuse(code, "not now"))
				}
				return refused
			}
		})
		in := newInside()
		k := consume(t, connect(t, b), func(context.Context, Message) error { return nil }, ConsumeOptions{
			PollWait: time.Millisecond, OnError: func(m *Message, _ error) { in.stop(short(t)) }})
		until(t, "the end of the queue", func() bool { return drained(b, 1) })
		in.consumer <- k
		refuses.Store(true)
		wantIs(t, await(t, "end of the stop", in.stopped), context.DeadlineExceeded)
		in.wantEnd(t, k, b)
	}
}

// The settlements that wait behind the one that is reported go out when OnError has returned.
func TestStopFromOnErrorOfASettlementEndsWithItsContextAndTheConsumerInOrder(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3, func(o *testbroker.Options) {
		o.OnGroupAnswer = func(s *testbroker.Stream, request, _ wire.Message) bool {
			m, ok := request.(*wire.GroupAck)
			refused := ok && m.Offset == 0
			if refused {
				s.Refuse(wire.Refuse(wire.CodeForbidden, "not yours"))
			}
			return refused
		}
	})
	in := newInside()
	stopping := make(chan struct{})
	k := consume(t, connect(t, b), func(_ context.Context, m Message) error {
		if m.Offset > 0 {
			<-stopping
		}
		return nil
	}, ConsumeOptions{OnError: func(m *Message, _ error) { in.stop(short(t)) }})
	go func() { <-k.polling.Done(); close(stopping) }()
	in.consumer <- k
	wantIs(t, await(t, "end of the stop", in.stopped), context.DeadlineExceeded)
	until(t, "the end of the handlers", func() bool { return k.Stats().Running == 0 }) // theirs may have been given back
	in.wantEnd(t, k, b)
	if s := k.Stats(); s.Refused != 1 || s.Acked+s.GivenBack != 2 {
		t.Errorf("%+v", s)
	}
}

func TestStopFromOnErrorWithoutADeadlineEndsAfterTheStopTimeout(t *testing.T) {
	noLeaks(t)
	var refuses atomic.Bool
	b := queue(t, 1, 0, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			refused := refuses.Load() && isA[*wire.GroupPoll](f.Message())
			if refused {
				s.Refuse(wire.Refuse(wire.CodeOverloaded, "later"))
			}
			return refused
		}
	})
	in := newInside()
	k := consume(t, connect(t, b), func(context.Context, Message) error { return nil }, ConsumeOptions{
		PollWait: time.Millisecond, StopTimeout: 50 * time.Millisecond, OnError: func(*Message, error) { in.stop(context.Background()) }})
	in.consumer <- k
	refuses.Store(true)
	wantIs(t, await(t, "end of the stop", in.stopped), context.DeadlineExceeded)
	in.wantEnd(t, k, b)
}

func TestStopFromAHandlerWithItsContextReturnsAtOnceAndTheRecordCounts(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	in := newInside()
	k := consume(t, connect(t, b), func(ctx context.Context, _ Message) error {
		bounded, cancel := context.WithCancel(ctx) // ends with the handler, and must not hurry the consumer
		defer cancel()
		in.stop(bounded)
		return nil
	}, ConsumeOptions{StopTimeout: time.Hour})
	in.consumer <- k
	wantIs(t, await(t, "end of the stop", in.stopped), ErrStopInHandler)
	in.wantEnd(t, k, b)
	if s := k.Stats(); s.Acked != 1 || s.GivenBack != 0 {
		t.Errorf("%+v", s)
	}
}

// A handler that finds that it cannot work at all stops its consumer and gives the record back: that must not use up the record's attempts.
func TestRecordsAreNotClaimedAgainByAConsumerThatAHandlerHasStopped(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	in := newInside()
	var polls atomic.Bool
	k := consume(t, connect(t, b), func(ctx context.Context, _ Message) error {
		k := <-in.consumer
		in.stopped <- k.Stop(ctx)
		polls.Store(k.polling.Err() == nil)
		return RetryAfter(0, errors.New("not here"))
	}, ConsumeOptions{StopTimeout: time.Hour})
	in.consumer <- k
	wantIs(t, await(t, "end of the stop", in.stopped), ErrStopInHandler)
	in.wantEnd(t, k, b)
	if s := k.Stats(); polls.Load() || s.Received != 1 || s.Nacked != 1 {
		t.Errorf("it goes on polling: %v; %+v", polls.Load(), s)
	}
}

func TestStopFromAHandlerWithAnotherContextEndsWithItAndTheConsumerInOrder(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	in := newInside()
	left := make(chan struct{})
	k := consume(t, connect(t, b), func(context.Context, Message) error {
		defer close(left)
		in.stop(short(t))
		return nil
	}, ConsumeOptions{StopTimeout: time.Hour})
	in.consumer <- k
	await(t, "end of the stop", in.stopped) // with nil, when it could give the record back in time
	await(t, "end of the handler", left)
	await(t, "end of the consumer", k.Done())
	if err := k.Stop(within(t)); err == nil && len(b.Group("ns/s", 0, "g").Held) != 0 {
		t.Error("everything is settled, it says")
	}
}

func TestStopThatIsCanceledReturnsAtOnceAndTheRecordsAreStillGivenBack(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 2)
	release, left := make(chan struct{}), make(chan struct{})
	k := consume(t, connect(t, b), func(context.Context, Message) error { defer close(left); <-release; return nil }, ConsumeOptions{
		Concurrency: 1, MaxInHand: 1, StopTimeout: time.Hour})
	until(t, "start", func() bool { return k.Stats().Running == 1 })
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := k.Stop(canceled); !errors.Is(err, context.Canceled) && err != nil { // nil, when it was quicker
		t.Error(err)
	}
	await(t, "end of the consumer", k.Done())
	if err := k.Stop(within(t)); err == nil && (k.Stats().GivenBack != 1 || len(b.Group("ns/s", 0, "g").Held) != 0) {
		t.Errorf("everything is settled, it says: %+v", k.Stats())
	}
	close(release)
	await(t, "end of the handler", left)
}

// Otherwise what OnError writes to might be closed already.
func TestStopWaitsUntilOnErrorHasBeenToldOfWhatHandlersCameTo(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	release := make(chan struct{})
	k := consume(t, connect(t, b), func(context.Context, Message) error { return DeadLetter(errors.New("poison")) }, ConsumeOptions{
		OnError: func(*Message, error) { <-release }})
	until(t, "the end of the queue", func() bool { return drained(b, 1) && k.Stats().DeadLettered == 1 })
	wantIs(t, k.Stop(short(t)), context.DeadlineExceeded)
	close(release)
	await(t, "end of the consumer", k.Done())
	stop(t, k)
}

func TestStopFromOnErrorOfAHandlerEndsWithItsContextAndTheConsumerInOrder(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	in := newInside()
	settled := make(chan struct{})
	k := consume(t, connect(t, b), func(context.Context, Message) error { return DeadLetter(errors.New("poison")) }, ConsumeOptions{
		OnError: func(*Message, error) { <-settled; in.stop(short(t)) }})
	until(t, "the settlement", func() bool { return k.Stats().DeadLettered == 1 })
	in.consumer <- k
	close(settled)
	wantIs(t, await(t, "end of the stop", in.stopped), context.DeadlineExceeded)
	in.wantEnd(t, k, b)
}
