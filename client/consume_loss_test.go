package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

func TestRecordOfAWorkerThatCrashedComesAfterItsVisibility(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	c := connect(t, b)
	wantMessages(t, pollOnce(t, c, GroupPollOptions{Visibility: 50 * time.Millisecond}), 0) // and never heard of again
	got := make(chan Message, 1)
	k := consume(t, c, func(_ context.Context, m Message) error { got <- m; return nil }, ConsumeOptions{})
	if m := await(t, "delivery", got); m.Attempts != 2 {
		t.Fatalf("%+v", m)
	}
	stop(t, k)
}

func TestHandlerIsToldThatItsClaimIsGoneAndItsLateAckSettles(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	c, clock := virtual(t, b)
	told := make(chan error, 1)
	release := make(chan struct{})
	var calls atomic.Int64
	k := consume(t, c, func(ctx context.Context, m Message) error {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			told <- context.Cause(ctx)
			<-release
		}
		return nil
	}, ConsumeOptions{Concurrency: 1, MaxInHand: 1})
	until(t, "start", func() bool { return calls.Load() == 1 })
	b.ForgetClaims("ns/s", 0, "g") // its room is taken, so it does not come here again
	later(k, clock, DefaultVisibility/3)
	if e := wantAs[*StaleClaimError](t, await(t, "cancellation", told)); e.Attempts != 1 {
		t.Fatalf("%+v", e)
	}
	close(release)
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	if s := k.Stats(); s.Stale != 1 || s.Acked != 1 || calls.Load() != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestLateFailureIsNotCountedAgainstWhoeverHasTheRecordNow(t *testing.T) {
	noLeaks(t)
	nacks := atomic.Int64{}
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnFrame = func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if isA[*wire.GroupNack](f.Message()) {
				nacks.Add(1)
			}
			return false
		}
	})
	var calls atomic.Int64
	c, clock := virtual(t, b)
	k := consume(t, c, func(ctx context.Context, m Message) error {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}, ConsumeOptions{Concurrency: 1, MaxInHand: 1})
	until(t, "start", func() bool { return calls.Load() == 1 })
	b.ForgetClaims("ns/s", 0, "g")
	later(k, clock, DefaultVisibility/3)
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	if s := k.Stats(); nacks.Load() != 0 || s.Failed != 1 || s.Acked != 1 || calls.Load() != 2 {
		t.Fatalf("%d nacks, %+v", nacks.Load(), s)
	}
}

func TestSettlementsWithoutAnAnswerAreSentAgain(t *testing.T) {
	noLeaks(t)
	b := queue(t, 2, 60, losingSome(7, isSettlement))
	var seen tally
	k := consume(t, connect(t, b), func(_ context.Context, m Message) error {
		switch {
		case seen.add(m) > 1:
			return nil
		case m.Offset%10 == 3:
			return ErrClosed
		case m.Offset%10 == 7:
			return ErrDeadLetter
		}
		return nil
	}, ConsumeOptions{RetryDelay: soon})
	until(t, "the end of the queue", func() bool { return drained(b, 2) })
	stop(t, k)
	s := k.Stats()
	if s.Resent == 0 || s.Acked+s.DeadLettered+s.Refused != 120 || s.Nacked+s.Stale != 12 {
		t.Fatalf("%+v", s)
	}
	for shard := range uint32(2) {
		if v := b.Group("ns/s", shard, "g"); len(v.DeadLetters) != 6 {
			t.Fatalf("%+v", v)
		}
	}
}

func isSettlement(m wire.Message) bool {
	return isA[*wire.GroupAck](m) || isA[*wire.GroupNack](m) || isA[*wire.GroupDeadLetter](m)
}

// losingSome breaks the stream off instead of one in n answers to requests that match.
func losingSome(n int, match func(wire.Message) bool) func(*testbroker.Options) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	return func(o *testbroker.Options) {
		o.OnGroupAnswer = func(s *testbroker.Stream, request, _ wire.Message) bool {
			mu.Lock()
			defer mu.Unlock()
			lost := match(request) && random.IntN(n) == 0
			if lost {
				s.Reset()
			}
			return lost
		}
	}
}

func TestRecordsOfAnAnswerThatGotLostAreTakenBackAtOnceAndOthersGoOn(t *testing.T) {
	noLeaks(t)
	var b *testbroker.Broker
	var polls atomic.Int64
	b = queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnGroupAnswer = func(_ *testbroker.Stream, request, answer wire.Message) bool {
			records, ok := answer.(*wire.GroupRecords)
			lost := ok && len(records.Records) > 0 && polls.Add(1) == 2
			if lost {
				b.Drop(transport.CloseShutdown)
			}
			return lost
		}
	})
	release := make(chan struct{})
	var seen tally
	k := consume(t, connect(t, b), func(_ context.Context, m Message) error {
		seen.add(m)
		if m.Offset == 0 {
			<-release
		}
		return nil
	}, ConsumeOptions{Visibility: ConsumeVisibilityMax})
	until(t, "the first record", func() bool { return k.Stats().Received == 1 })
	fillShard(b, 0, 1)
	b.Append("ns/s", 0, testbroker.Region("lost"))
	until(t, "return of the lost", func() bool { return b.Group("ns/s", 0, "g").Cursor == 0 && k.Stats().Acked == 2 })
	close(release)
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	if seen.times["0-0"] != 2 || seen.times["lost"] != 1 { // offsets 0 and 1 have the same payload
		t.Fatalf("%v", seen.times)
	}
	if s := k.Stats(); s.Acked != 3 || s.Received < 4 {
		t.Fatalf("%+v", s)
	}
}

func TestConsumerFollowsItsShards(t *testing.T) {
	noLeaks(t)
	var elsewhere pointingAt
	entry := queue(t, 2, 20, elsewhere.hook)
	owner := testbroker.New(t, testbroker.Options{Share: entry})
	var seen tally
	half := make(chan struct{})
	k := consume(t, connect(t, entry), func(_ context.Context, m Message) error {
		if m.Offset == 10 {
			<-half
		}
		seen.add(m)
		return nil
	}, ConsumeOptions{Concurrency: 8})
	until(t, "the first records", func() bool { return k.Stats().Acked > 10 })
	elsewhere.owner.Store(owner)
	close(half)
	fillShard(entry, 0, 0)
	for i := range 5 {
		entry.Append("ns/s", uint32(i%2), testbroker.Region(fmt.Sprint("more", i)))
	}
	until(t, "the end of the queue", func() bool { return drained(entry, 2) })
	stop(t, k)
	seen.wantEach(t, 45, 1)
	if owner.Connections() == 0 {
		t.Fatal("nobody came to the owner")
	}
}

func TestConsumerSurvivesTheDeathOfItsBroker(t *testing.T) {
	noLeaks(t)
	one := queue(t, 2, 30)
	two := testbroker.New(t, testbroker.Options{Share: one})
	var seen tally
	var handled atomic.Int64
	held := make(chan struct{})
	c := connect(t, one, func(o *Options) { o.Addrs = append(o.Addrs, two.Addr()) })
	k := consume(t, c, func(_ context.Context, m Message) error {
		if m.Offset >= 20 {
			<-held
		}
		seen.add(m)
		handled.Add(1)
		return nil
	}, ConsumeOptions{Concurrency: 4})
	until(t, "full hands", func() bool { // maybe all with records of one shard, while the other has hardly begun
		s := k.Stats()
		return s.Running == 4 && handled.Load() >= 20 && s.Acked == uint64(handled.Load())
	})
	c.seeds.prefer(two.Addr())
	if err := one.Stop(); err != nil {
		t.Fatal(err)
	}
	close(held)
	until(t, "the end of the queue", func() bool { return drained(two, 2) })
	stop(t, k)
	seen.wantEach(t, 60, 1)
}

func TestRecordThatWasFinishedWhileAPollWasUnderWayIsNotHandledAgain(t *testing.T) {
	noLeaks(t)
	var once sync.Once
	var consumer atomic.Pointer[Consumer]
	asked := make(chan struct{})
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnGroupAnswer = func(_ *testbroker.Stream, _, answer wire.Message) bool {
			if records, ok := answer.(*wire.GroupRecords); ok && len(records.Records) == 0 {
				once.Do(func() { // the answer was made before the record was finished, and comes after the client knows that it is
					close(asked)
					if !happens(func() bool { return consumer.Load() != nil && consumer.Load().Stats().Acked == 1 }) {
						t.Error("the record was not finished")
					}
					records.Records = []wire.GroupRecord{{Offset: 0, Payload: []byte("0-0"), Attempts: 2}}
				})
			}
			return false
		}
	})
	var seen tally
	k := consume(t, connect(t, b), func(_ context.Context, m Message) error {
		<-asked
		seen.add(m)
		return nil
	}, ConsumeOptions{MaxInHand: 4, PollWait: time.Millisecond})
	consumer.Store(k)
	until(t, "the answer", func() bool { return k.Stats().Received == 2 })
	stop(t, k)
	seen.wantEach(t, 1, 1)
}

func TestSettlementThatIsRefusedForGoodIsReportedAndLeftToTheBroker(t *testing.T) {
	noLeaks(t)
	answers := make(map[string]wire.Message)
	var mu sync.Mutex
	b := queue(t, 1, 4, func(o *testbroker.Options) {
		o.OnGroupAnswer = func(s *testbroker.Stream, request, _ wire.Message) bool {
			m, ok := request.(*wire.GroupAck)
			if !ok {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			switch m.Offset {
			case 0:
				s.Refuse(wire.Refuse(wire.CodeForbidden, "not yours"))
			case 1:
				s.Send(&wire.Unsupported{RequestType: "group_ack", RequestID: wire.Some(m.RequestID)})
			case 2: // once, then the truth
				if answers["2"] != nil {
					return false
				}
				answers["2"] = m
				s.Refuse(wire.Refuse(wire.CodeOverloaded, "later"))
			default: // once something that is no answer to it
				if answers["3"] != nil {
					return false
				}
				answers["3"] = m
				s.Send(&wire.CacheOK{RequestID: m.RequestID + 1})
			}
			return true
		}
	})
	reports := make(chan error, 10)
	c := connectWith(t, b, func(c *Client) { c.sleep = newClock().sleep })
	k := consume(t, c, func(context.Context, Message) error { return nil }, ConsumeOptions{
		OnError: func(m *Message, err error) {
			if m != nil {
				reports <- err
			}
		}})
	until(t, "the end of the queue", func() bool { s := k.Stats(); return s.Acked == 2 && s.Refused == 2 })
	for range 2 {
		if err := await(t, "report", reports); !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrUnsupported) {
			t.Error(err)
		}
	}
	if s := k.Stats(); s.Resent < 2 {
		t.Errorf("%+v", s)
	}
	_ = k.Stop(within(t)) // it may have ended by itself: a broker that breaks the protocol is no good
}

func TestExtensionsThatAreRefusedOrLostAreAskedForAgain(t *testing.T) {
	noLeaks(t)
	var extends atomic.Int64
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnGroupAnswer = func(s *testbroker.Stream, request, _ wire.Message) bool {
			if !isA[*wire.GroupExtend](request) {
				return false
			}
			switch extends.Add(1) {
			case 1:
				s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "not so"))
			case 2:
				s.Reset()
			default:
				return false
			}
			return true
		}
	})
	release := make(chan struct{})
	c, clock := virtual(t, b)
	k := consume(t, c, func(context.Context, Message) error { <-release; return nil }, ConsumeOptions{})
	until(t, "start", func() bool { return k.Stats().Running == 1 })
	later(k, clock, DefaultVisibility/3)
	until(t, "refusal", func() bool { return k.Stats().Refused == 1 })
	for i := range 2 { // the first of them is lost, and sent again
		later(k, clock, DefaultVisibility/3)
		until(t, "extension", func() bool { return k.Stats().Extended == uint64(i+1) })
	}
	close(release)
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	if s := k.Stats(); s.Refused != 1 || s.Resent != 1 || s.Acked != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestRecordWhoseClaimIsGoneBeforeAHandlerBeginsIsDropped(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3)
	release := make(chan struct{})
	var seen tally
	handler := func(_ context.Context, m Message) error { <-release; seen.add(m); return nil }
	c, clock := virtual(t, b)
	k := consume(t, c, handler, ConsumeOptions{Concurrency: 1, MaxInHand: 3})
	until(t, "full hands", func() bool { return k.Stats().Received == 3 && k.Stats().Running == 1 })
	b.ForgetClaims("ns/s", 0, "g")
	later(k, clock, DefaultVisibility/3)
	until(t, "the broker's word", func() bool { return k.Stats().Stale == 3 })
	close(release)
	until(t, "the end of the queue", func() bool { return drained(b, 1) })
	stop(t, k)
	if s := k.Stats(); s.Lapsed < 2 {
		t.Fatalf("%+v", s)
	}
}
