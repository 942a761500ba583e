package client

import (
	"context"
	"errors"
	"fmt"
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

// queue is a broker with a stream of some shards, and so many records in each.
func queue(t *testing.T, shards uint32, records int, changes ...func(*testbroker.Options)) *testbroker.Broker {
	t.Helper()
	o := testbroker.Options{Streams: map[string]uint32{"ns/s": shards}, Durable: true}
	for _, c := range changes {
		c(&o)
	}
	b := testbroker.New(t, o)
	for shard := range shards {
		fillShard(b, shard, records)
	}
	return b
}

func fillShard(b *testbroker.Broker, shard uint32, records int) {
	for i := range records {
		b.Append("ns/s", shard, testbroker.Region(fmt.Sprintf("%d-%d", shard, i)))
	}
}

// pollOnce takes what a poll of shard 0 brings.
func pollOnce(t *testing.T, c *Client, o GroupPollOptions) []Message {
	t.Helper()
	messages, err := c.GroupPoll(within(t), "ns", "s", 0, "g", o)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func wantMessages(t *testing.T, messages []Message, want ...id.Offset) {
	t.Helper()
	var got []id.Offset
	for _, m := range messages {
		got = append(got, m.Offset)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got offsets %v, want %v", got, want)
	}
}

func TestGroupHandsOutRecordsThatAreSettled(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3)
	b.Skip("ns/s", 0, 2)
	b.Append("ns/s", 0, testbroker.Region("last"))
	c := connect(t, b, func(o *Options) { o.Publishers = true })
	ctx := within(t)
	if info, err := c.GroupDescribe(ctx, "ns", "s", 0, "g"); err != nil || info.HasCommitted || info.Lag() != 6 {
		t.Fatalf("%+v, %v", info, err)
	}
	got := pollOnce(t, c, GroupPollOptions{Max: 10})
	wantMessages(t, got, 0, 1, 2, 5)
	last := got[3]
	if string(last.Payload) != "last" || last.Attempts != 1 || last.SkippedBefore != 2 || last.Publisher != "tester" || time.Since(last.Timestamp) > time.Minute {
		t.Fatalf("%+v", last)
	}
	wantMessages(t, pollOnce(t, c, GroupPollOptions{Max: 10}))
	for _, m := range []Message{got[0], got[2]} {
		if err := c.GroupAck(ctx, "ns", "s", 0, "g", m.Offset); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.GroupNack(ctx, "ns", "s", 0, "g", 1, GroupNackOptions{Attempts: 1}); err != nil {
		t.Fatal(err)
	}
	info, err := c.GroupDescribe(ctx, "ns", "s", 0, "g")
	if want := (GroupInfo{Committed: 1, HasCommitted: true, Tail: 6, InFlight: 1, Owed: 1}); err != nil || info != want {
		t.Fatalf("%+v, %v", info, err)
	}
	if again := pollOnce(t, c, GroupPollOptions{Max: 10}); len(again) != 1 || again[0].Offset != 1 || again[0].Attempts != 2 {
		t.Fatalf("%+v", again)
	}
	if err := c.GroupNack(ctx, "ns", "s", 0, "g", 1, GroupNackOptions{Attempts: 2, Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, pollOnce(t, c, GroupPollOptions{Max: 10}))
}

func TestSettlingADeliveryThatIsGoneIsAStaleClaimExceptByALateAck(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	c := connect(t, b)
	ctx := within(t)
	pollOnce(t, c, GroupPollOptions{Visibility: time.Millisecond})
	again := pollOnce(t, c, GroupPollOptions{Wait: time.Minute})
	if len(again) != 1 || again[0].Attempts != 2 {
		t.Fatalf("%+v", again)
	}
	err := c.GroupNack(ctx, "ns", "s", 0, "g", 0, GroupNackOptions{Attempts: 1})
	wantIs(t, err, ErrStaleClaim)
	if e := wantAs[*StaleClaimError](t, err); e.Offset != 0 || e.Attempts != 1 || Retryable(err) || !strings.Contains(err.Error(), "whoever gets it next") {
		t.Fatalf("%+v, %v", e, err)
	}
	_, err = c.GroupExtend(ctx, "ns", "s", 0, "g", 0, 1, time.Minute)
	wantAs[*StaleClaimError](t, err)
	if granted, err := c.GroupExtend(ctx, "ns", "s", 0, "g", 0, 2, time.Minute); granted != time.Minute || err != nil {
		t.Fatalf("%v, %v", granted, err)
	}
	if err := c.GroupAck(ctx, "ns", "s", 0, "g", 0); err != nil { // of the first delivery
		t.Fatal(err)
	}
	if err := c.GroupAck(ctx, "ns", "s", 0, "g", 0); err != nil { // once more does no harm
		t.Fatal(err)
	}
	wantIs(t, c.GroupAck(ctx, "ns", "s", 0, "g", 7), ErrInvalidRequest)
}

func TestStaleAckIsNotTriedAgain(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 2)
	c := connect(t, b)
	wantAs[*StaleClaimError](t, c.GroupAck(within(t), "ns", "s", 0, "g", 1)) // of class retry
	if n := c.Stats().Retries; n != 0 {
		t.Fatalf("%d retries", n)
	}
}

// losingAnswers breaks the stream off instead of the first answers to requests of a type, so many of each.
func losingAnswers(lost map[string]int) func(*testbroker.Options) {
	var mu sync.Mutex
	return func(o *testbroker.Options) {
		o.OnGroupAnswer = func(s *testbroker.Stream, request, _ wire.Message) bool {
			mu.Lock()
			defer mu.Unlock()
			kind := request.MessageType()
			if lost[kind] == 0 {
				return false
			}
			lost[kind]--
			s.Reset()
			return true
		}
	}
}

func isA[M wire.Message](m wire.Message) bool {
	_, ok := m.(M)
	return ok
}

func TestSettlementsThatMayBeDoneTwiceAreSentAgainAndOthersAreUnknown(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3, losingAnswers(map[string]int{"group_poll": 1, "group_ack": 2, "group_nack": 1}))
	c := connect(t, b, func(o *Options) { o.Attempts = 3 })
	ctx := within(t)
	_, err := c.GroupPoll(ctx, "ns", "s", 0, "g", GroupPollOptions{Max: 3})
	wantIs(t, err, ErrOutcomeUnknown)
	if err := c.GroupAck(ctx, "ns", "s", 0, "g", 0); err != nil { // two answers are lost
		t.Fatal(err)
	}
	if n := c.Stats().Retries; n != 2 {
		t.Fatalf("%d retries", n)
	}
	wantIs(t, c.GroupNack(ctx, "ns", "s", 0, "g", 1, GroupNackOptions{Attempts: 1}), ErrOutcomeUnknown)
	wantIs(t, c.GroupNack(ctx, "ns", "s", 0, "g", 1, GroupNackOptions{Attempts: 1}), ErrStaleClaim)
	if v := b.Group("ns/s", 0, "g"); v.Cursor != 1 || !slices.Equal(v.Owed, []id.Offset{1}) {
		t.Fatalf("%+v", v)
	}
}

func TestAckWithoutAnyAnswerIsUnknownWhateverCameLast(t *testing.T) {
	noLeaks(t)
	var acks atomic.Int64
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			if _, ok := f.Message().(*wire.GroupAck); !ok {
				return false
			}
			if acks.Add(1) == 1 {
				s.Reset()
			} else {
				s.Refuse(wire.Refuse(wire.CodeShardUnavailable, "it opens"))
			}
			return true
		}
	})
	c := connect(t, b, func(o *Options) { o.Attempts = 3 })
	err := c.GroupAck(within(t), "ns", "s", 0, "g", 0)
	wantIs(t, err, ErrOutcomeUnknown, ErrUnavailable)
	if acks.Load() != 3 || Retryable(err) {
		t.Fatalf("%d acks, %v", acks.Load(), err)
	}
}

func TestDeadLettersAreListedRedrivenAndDiscarded(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3)
	c := connect(t, b)
	ctx := within(t)
	wantMessages(t, pollOnce(t, c, GroupPollOptions{Max: 3}), 0, 1, 2)
	for _, at := range []id.Offset{2, 0} {
		if err := c.GroupDeadLetter(ctx, "ns", "s", 0, "g", at); err != nil {
			t.Fatal(err)
		}
	}
	wantIs(t, c.GroupDeadLetter(ctx, "ns", "s", 0, "g", 0), ErrInvalidRequest)
	dead, err := c.GroupDeadLetters(ctx, "ns", "s", 0, "g")
	if !slices.Equal(dead, []id.Offset{0, 2}) || err != nil {
		t.Fatalf("%v, %v", dead, err)
	}
	if err := c.GroupRedrive(ctx, "ns", "s", 0, "g", 0); err != nil {
		t.Fatal(err)
	}
	if again := pollOnce(t, c, GroupPollOptions{Max: 3}); len(again) != 1 || again[0].Offset != 0 || again[0].Attempts != 1 {
		t.Fatalf("%+v", again)
	}
	if err := c.GroupDiscard(ctx, "ns", "s", 0, "g", 2); err != nil {
		t.Fatal(err)
	}
	wantIs(t, c.GroupDiscard(ctx, "ns", "s", 0, "g", 2), ErrInvalidRequest)
	if dead, err = c.GroupDeadLetters(ctx, "ns", "s", 0, "g"); len(dead) != 0 || err != nil {
		t.Fatalf("%v, %v", dead, err)
	}
}

func TestGroupIsMovedAndDeleted(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3)
	b.AppendAt("ns/s", 0, testbroker.Region("later"), time.Now().Add(time.Hour))
	c := connect(t, b)
	ctx := within(t)
	seek := func(to Start, o GroupSeekOptions, want GroupPosition) {
		t.Helper()
		if got, err := c.GroupSeek(ctx, "ns", "s", 0, "g", to, o); got != want || err != nil {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	seek(At(1), GroupSeekOptions{IfNew: true}, GroupPosition{Offset: 1, Moved: true})
	seek(Earliest(), GroupSeekOptions{IfNew: true}, GroupPosition{Offset: 1})
	wantMessages(t, pollOnce(t, c, GroupPollOptions{}), 1)
	seek(Earliest(), GroupSeekOptions{}, GroupPosition{Moved: true})
	wantIs(t, c.GroupNack(ctx, "ns", "s", 0, "g", 1, GroupNackOptions{Attempts: 1}), ErrStaleClaim)
	seek(Latest(), GroupSeekOptions{}, GroupPosition{Offset: 4, Moved: true})
	seek(Since(time.Now().Add(time.Minute)), GroupSeekOptions{}, GroupPosition{Offset: 3, Moved: true})
	seek(Since(time.Now().Add(2*time.Hour)), GroupSeekOptions{}, GroupPosition{Offset: 4, Moved: true})
	_, err := c.GroupSeek(ctx, "ns", "s", 0, "g", At(9), GroupSeekOptions{})
	wantIs(t, err, ErrInvalidRequest)
	for _, want := range []bool{true, false} {
		if existed, err := c.GroupDelete(ctx, "ns", "s", 0, "g"); existed != want || err != nil {
			t.Fatalf("%v, %v", existed, err)
		}
	}
	wantMessages(t, pollOnce(t, c, GroupPollOptions{}), 0)
}

// pointingAt answers the group requests of an entry with a redirect while owner is set.
type pointingAt struct {
	owner atomic.Pointer[testbroker.Broker]
}

func (p *pointingAt) hook(o *testbroker.Options) {
	o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
		to := p.owner.Load()
		m := f.Message()
		if to == nil || m == nil || !strings.HasPrefix(m.MessageType(), "group_") {
			return false
		}
		s.Send(&wire.NotLeader{NodeID: to.Addr(), Addr: wire.Some(to.Addr()), Generation: 1})
		return true
	}
}

func TestGroupRequestsGoToTheOwnerOfTheShard(t *testing.T) {
	noLeaks(t)
	var elsewhere pointingAt
	entry := queue(t, 1, 2, elsewhere.hook)
	owner := testbroker.New(t, testbroker.Options{Share: entry})
	elsewhere.owner.Store(owner)
	c := connect(t, entry)
	wantMessages(t, pollOnce(t, c, GroupPollOptions{Max: 2}), 0, 1)
	if err := c.GroupAck(within(t), "ns", "s", 0, "g", 0); err != nil {
		t.Fatal(err)
	}
	if owner.Connections() != 1 {
		t.Fatalf("the owner has %d connections", owner.Connections())
	}
}

func TestGroupRequestsAreNotSentToABrokerWithoutThem(t *testing.T) {
	noLeaks(t)
	for feature, want := range map[wire.Features]bool{0: false, wire.FeatureConsumerGroup: true} {
		b := queue(t, 1, 1, func(o *testbroker.Options) { o.Features = testbroker.DefaultFeatures | feature })
		c := connect(t, b)
		ctx := within(t)
		if _, err := c.GroupPoll(ctx, "ns", "s", 0, "g", GroupPollOptions{}); (err == nil) != want || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Fatal(err)
		}
		_, member := c.GroupPoll(ctx, "ns", "s", 0, "g", GroupPollOptions{Member: "m"})
		_, visible := c.GroupPoll(ctx, "ns", "s", 0, "g", GroupPollOptions{Visibility: 1})
		_, extend := c.GroupExtend(ctx, "ns", "s", 0, "g", 0, 1, time.Second)
		_, dead := c.GroupDeadLetters(ctx, "ns", "s", 0, "g")
		_, seek := c.GroupSeek(ctx, "ns", "s", 0, "g", Latest(), GroupSeekOptions{})
		_, describe := c.GroupDescribe(ctx, "ns", "s", 0, "g")
		_, del := c.GroupDelete(ctx, "ns", "s", 0, "g")
		_, consume := c.Consume(ctx, "ns", "s", "g", func(context.Context, Message) error { return nil }, ConsumeOptions{})
		for i, err := range []error{member, visible, extend, dead, seek, describe, del, consume,
			c.GroupNack(ctx, "ns", "s", 0, "g", 0, GroupNackOptions{Attempts: 1}), c.GroupNack(ctx, "ns", "s", 0, "g", 0, GroupNackOptions{Delay: 1}),
			c.GroupDeadLetter(ctx, "ns", "s", 0, "g", 0), c.GroupDiscard(ctx, "ns", "s", 0, "g", 0), c.GroupRedrive(ctx, "ns", "s", 0, "g", 0)} {
			if !errors.Is(err, ErrUnsupported) {
				t.Errorf("request %d: %v", i, err)
			}
		}
	}
}

func TestPollMayTakeLongerThanAnAnswer(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 0)
	c := connect(t, b)
	atSomeSpeed(t, 20*time.Millisecond, func(d time.Duration) bool {
		c.opts.AckTimeout = d
		messages, err := c.GroupPoll(within(t), "ns", "s", 0, "g", GroupPollOptions{Wait: 3 * d})
		wantMessages(t, messages)
		return err == nil
	})
	c.opts.AckTimeout = DefaultAckTimeout
	got := make(chan []Message, 1)
	go func() { got <- pollOnce(t, c, GroupPollOptions{Wait: time.Minute}) }()
	fillShard(b, 0, 1)
	wantMessages(t, await(t, "poll", got), 0)
}

func TestMemberTakesItsClaimsBackFromAnOlderConnection(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3)
	first := connect(t, b)
	wantMessages(t, pollOnce(t, first, GroupPollOptions{Max: 2, Member: "m"}), 0, 1)
	second := connect(t, b)
	wantMessages(t, pollOnce(t, second, GroupPollOptions{Max: 1, Member: "other", Reclaim: true}), 2)
	got := pollOnce(t, second, GroupPollOptions{Max: 3, Member: "m", Reclaim: true})
	wantMessages(t, got, 0, 1)
	if got[0].Attempts != 2 {
		t.Fatalf("%+v", got)
	}
}

func TestClientWithSmallFramesPollsOneRecordAtATime(t *testing.T) {
	noLeaks(t)
	c := connect(t, queue(t, 1, 3), func(o *Options) { o.MaxFrameBytes = 64 << 10 })
	wantMessages(t, pollOnce(t, c, GroupPollOptions{Max: 3}), 0)
}

func TestAnswersThatAreNoneToAPollAreRefused(t *testing.T) {
	noLeaks(t)
	record := wire.GroupRecord{Offset: 3, Attempts: 1}
	for name, answer := range map[string]func(m *wire.GroupPoll) wire.Message{
		"too many": func(m *wire.GroupPoll) wire.Message {
			return &wire.GroupRecords{RequestID: m.RequestID, Records: []wire.GroupRecord{{}, {Offset: 1}, record}}
		},
		"twice": func(m *wire.GroupPoll) wire.Message {
			return &wire.GroupRecords{RequestID: m.RequestID, Records: []wire.GroupRecord{record, record}}
		},
		"another's":     func(m *wire.GroupPoll) wire.Message { return &wire.GroupRecords{RequestID: m.RequestID + 1} },
		"another thing": func(m *wire.GroupPoll) wire.Message { return &wire.CacheOK{RequestID: m.RequestID} },
	} {
		b := queue(t, 1, 0, func(o *testbroker.Options) {
			o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
				m, ok := f.Message().(*wire.GroupPoll)
				if ok {
					s.Send(answer(m))
				}
				return ok
			}
		})
		_, err := connect(t, b).GroupPoll(within(t), "ns", "s", 0, "g", GroupPollOptions{Max: 2})
		if e := wantAs[*ProtocolError](t, err); e == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGroupCallsThatCannotWorkAreRefusedBeforeAnythingIsSent(t *testing.T) {
	b := queue(t, 1, 1, func(o *testbroker.Options) {
		o.OnFrame = func(_ *testbroker.Stream, f testbroker.Frame) bool {
			t.Errorf("%+v was sent", f.Message())
			return true
		}
	})
	c := connect(t, b)
	ctx := within(t)
	for i, o := range []GroupPollOptions{{Max: -1}, {Max: GroupPollMax + 1}, {Wait: -1}, {Wait: groupTimeMax + 1}, {Visibility: -1},
		{Reclaim: true}, {Member: strings.Repeat("m", 129)}, {Member: "\xff"}} {
		if _, err := c.GroupPoll(ctx, "ns", "s", 0, "g", o); !isArgument(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
	_, noStream := c.GroupDescribe(ctx, "ns", "", 0, "g")
	_, noGroup := c.GroupSeek(ctx, "ns", "s", 0, "", Latest(), GroupSeekOptions{})
	_, noTime := c.GroupExtend(ctx, "ns", "s", 0, "g", 0, 1, 0)
	_, noDelivery := c.GroupExtend(ctx, "ns", "s", 0, "g", 0, 0, 1)
	for i, err := range []error{noStream, noGroup, noTime, noDelivery, c.GroupAck(ctx, "", "s", 0, "g", 0), c.GroupNack(ctx, "ns", "s", 0, "g", 0, GroupNackOptions{Delay: -1})} {
		if !isArgument(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func isArgument(err error) bool {
	var e *ArgumentError
	return errors.As(err, &e)
}
