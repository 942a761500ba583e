package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func durable(t *testing.T, shards uint32) *testbroker.Broker {
	return testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": shards}, Durable: true})
}

// mission 282
func TestDurableSubscriptionRepeatsNothingAndMissesNothingOverReconnectsWithHolesInTheLog(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, BatchSize: 5})
	c := connect(t, b)
	s := subscribe(t, c, SubscribeOptions{From: Earliest()})
	var due id.Offset
	for round := range 20 {
		appendNumbers(b, round*10, round*10+7)
		for i := range 10 {
			if i == 4 {
				dropAll(t, b, c)
				appendNumbers(b, round*10+7, round*10+10)
				b.Skip("ns/s", 0, uint64(round%3)) // records that a client never sees
			}
			e := wantPayload(t, s, fmt.Sprint(round*10+i))
			if e.Offset != due.Add(e.SkippedBefore) {
				t.Fatalf("offset %s with %d skipped, %s was due", e.Offset, e.SkippedBefore, due)
			}
			due = e.Offset.Add(1)
			if at, ok := s.Position(); !ok || at != due {
				t.Fatalf("position %s, %v after offset %s", at, ok, e.Offset)
			}
		}
		wantResumes(t, c, round+1)
	}
}

func TestSavedPositionGoesOnInAnotherProcess(t *testing.T) {
	noLeaks(t)
	b := durable(t, 1)
	appendNumbers(b, 0, 10)
	s := subscribe(t, connect(t, b), SubscribeOptions{From: At(3)})
	if at, ok := s.StartOffset(); !ok || at != 3 {
		t.Fatalf("starts at %s, %v", at, ok)
	}
	if at, ok := s.LiveOffset(); !ok || at != 10 {
		t.Fatalf("live from %s, %v", at, ok)
	}
	wantOffsets(t, s, 3, 7)
	at, _ := s.Position()
	wantOffsets(t, subscribe(t, connect(t, b), SubscribeOptions{From: At(at)}), 7, 10)
}

func TestPositionsHoldTheShardsThatBroughtNothingYet(t *testing.T) {
	noLeaks(t)
	b := durable(t, 3)
	appendNumbers(b, 0, 10)
	m := subscribeAll(t, connect(t, b), SubscribeAllOptions{}) // from now on, which is offset 10 of shard 0
	positions := m.Positions()
	m.Close()
	if len(positions) != 3 || positions[0] != 10 || positions[1] != 0 || positions[2] != 0 {
		t.Fatalf("positions %v", positions)
	}
	appendNumbers(b, 10, 12) // while nobody is there
	b.Append("ns/s", 2, testbroker.Region("0"))
	again := subscribeAll(t, connect(t, b), SubscribeAllOptions{Positions: positions})
	next := map[uint32]int{0: 10, 2: 0}
	for range 3 {
		item := nextItem(t, again)
		if item.Kind != ItemEvent || int(item.Event.Offset) != next[item.Shard] {
			t.Fatalf("%+v", item)
		}
		next[item.Shard]++
	}
}

// mission 287
func TestOffsetsThatCannotBeServedAreTypedErrorsThatNameWhatCanBeHad(t *testing.T) {
	noLeaks(t)
	b := durable(t, 1)
	appendNumbers(b, 0, 20)
	b.Trim("ns/s", 0, 8)
	c := connect(t, b)
	for requested, want := range map[id.Offset]struct {
		mark      error
		available id.Offset
	}{3: {ErrTooOld, 8}, 21: {ErrInFuture, 20}} {
		_, subscribed := c.Subscribe(within(t), "ns", "s", SubscribeOptions{From: At(requested)})
		_, read := c.Read(within(t), "ns", "s", ReadOptions{From: requested})
		for _, err := range []error{subscribed, read} {
			wantIs(t, err, want.mark)
			if e := wantAs[*CursorError](t, err); e.Requested != requested || e.Available != want.available || Retryable(err) {
				t.Errorf("%+v", e)
			}
		}
	}
	wantOffsets(t, subscribe(t, c, SubscribeOptions{From: At(8)}), 8, 20)
	wantOffsets(t, subscribe(t, c, SubscribeOptions{From: Earliest()}), 8, 20)
}

func TestReaderWhomRetentionOvertookIsToldWhatIsGone(t *testing.T) {
	noLeaks(t)
	b := durable(t, 1)
	appendNumbers(b, 0, 10)
	c := connect(t, b)
	s := subscribe(t, c, SubscribeOptions{From: Earliest()})
	wantOffsets(t, s, 0, 10)
	dropAll(t, b, c)
	appendNumbers(b, 10, 30)
	b.Trim("ns/s", 0, 20)
	_, err := s.Next(within(t))
	wantIs(t, err, ErrTooOld)
	if e := wantAs[*CursorError](t, err); e.Requested != 10 || e.Available != 20 {
		t.Fatalf("%+v", e)
	}
}

func TestSubscriptionSinceATimeBeginsWithItsFirstRecord(t *testing.T) {
	noLeaks(t)
	b := durable(t, 2)
	began := time.Now().Add(-time.Hour)
	for i := range 10 {
		b.AppendAt("ns/s", 0, testbroker.Region(fmt.Sprint(i)), began.Add(time.Duration(i)*time.Minute))
	}
	c := connect(t, b)
	wantOffsets(t, subscribe(t, c, SubscribeOptions{From: Since(began.Add(4 * time.Minute))}), 4, 10)
	wantOffsets(t, subscribe(t, c, SubscribeOptions{From: Since(time.Time{})}), 0, 10)
	all := subscribeAll(t, c, SubscribeAllOptions{From: Since(began.Add(150 * time.Second))})
	none := subscribe(t, c, SubscribeOptions{From: Since(time.Now())})
	appendNumbers(b, 10, 12)
	wantOffsets(t, none, 10, 12)
	wantOffsets(t, all, 3, 12)
	_, err := connect(t, testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})).
		Subscribe(within(t), "ns", "s", SubscribeOptions{From: Since(began)})
	wantIs(t, err, ErrUnsupported)
}

func TestRecordThatComesWhileATimeIsLookedUpIsNotMissed(t *testing.T) {
	noLeaks(t)
	var b *testbroker.Broker
	b = testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if m, ok := f.Message().(*wire.Subscribe); ok && !m.Start.Set {
				appendNumbers(b, 0, 3)
			}
			return false
		}})
	wantOffsets(t, subscribe(t, connect(t, b), SubscribeOptions{From: Since(time.Now().Add(-time.Second))}), 0, 3)
}

func TestOffsetForATime(t *testing.T) {
	b := durable(t, 1)
	began := time.UnixMicro(1_800_000_000_000_000)
	for i := range 3 {
		b.AppendAt("ns/s", 0, testbroker.Region("x"), began.Add(time.Duration(i)*time.Second))
	}
	c := connect(t, b)
	for after, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, time.Microsecond: 1, 2 * time.Second: 2, 3 * time.Second: -1} {
		at, found, err := c.OffsetForTime(within(t), "ns", "s", 0, began.Add(after))
		if err != nil || found != (want >= 0) || found && int(at) != want {
			t.Errorf("after %v: %s, %v, %v, want %d", after, at, found, err, want)
		}
	}
	_, _, err := c.OffsetForTime(within(t), "ns", "nosuch", 0, began)
	wantIs(t, err, ErrNotFound)
}

func TestPagesFollowOneAnotherOverHolesUntilTheEnd(t *testing.T) {
	noLeaks(t)
	b := durable(t, 1)
	c := connect(t, b)
	want := 0
	for i := range 7 {
		appendNumbers(b, i*10, i*10+10)
		b.Skip("ns/s", 0, 3) // also at the end
		want += 10
	}
	for name, o := range map[string]ReadOptions{"few": {MaxRecords: 3}, "bytes": {MaxBytes: 8}, "all": {}, "to the end": {End: 91, MaxRecords: 7}} {
		n := 0
		var last id.Offset
		for r, err := range c.ReadRange(within(t), "ns", "s", o) {
			if err != nil || string(r.Payload) != fmt.Sprint(n) || int(r.Offset) != n+n/10*3 || r.Publisher != "tester" || r.Time.IsZero() {
				t.Fatalf("%s: record %d is %+v, %v", name, n, r, err)
			}
			n++
			last = r.Offset
		}
		if n != want {
			t.Fatalf("%s: %d records, the last at %s", name, n, last)
		}
	}
	n := 0
	for range c.ReadRange(within(t), "ns", "s", ReadOptions{From: 5, End: 20, MaxRecords: 2}) { // 10, 11, 12 hold nothing
		n++
	}
	if n != 12 {
		t.Fatalf("%d records of 5..19", n)
	}
	page, err := c.Read(within(t), "ns", "s", ReadOptions{From: 8, MaxRecords: 2})
	if err != nil || len(page.Records) != 2 || page.Next != 13 {
		t.Fatalf("%+v, %v: the next offset does not jump over the hole", page, err)
	}
	page, err = c.Read(within(t), "ns", "s", ReadOptions{From: 91})
	if err != nil || len(page.Records) != 0 || page.Next != 91 {
		t.Fatalf("%+v, %v at the end", page, err)
	}
}

func TestBoundsNameTheOldestAndTheNextOffset(t *testing.T) {
	b := durable(t, 2)
	c := connect(t, b)
	want := func(shard uint32, oldest, next id.Offset) {
		t.Helper()
		gotOldest, gotNext, err := c.Bounds(within(t), "ns", "s", shard)
		if err != nil || gotOldest != oldest || gotNext != next {
			t.Fatalf("%s to %s, %v, want %s to %s", gotOldest, gotNext, err, oldest, next)
		}
	}
	want(0, 0, 0)
	appendNumbers(b, 0, 10)
	want(0, 0, 10)
	b.Trim("ns/s", 0, 4)
	want(0, 4, 10)
	want(1, 0, 0)
	_, _, err := c.Bounds(within(t), "ns", "s", 2)
	wantIs(t, err, ErrInvalidRequest)
}

func TestPagesFitTheFramesOfTheClient(t *testing.T) {
	b := durable(t, 1)
	for range 100 {
		b.Append("ns/s", 0, testbroker.Region(strings.Repeat("x", 3000)))
	}
	c := connect(t, b, func(o *Options) { o.MaxFrameBytes = 20_000 })
	n := 0
	for _, err := range c.ReadRange(within(t), "ns", "s", ReadOptions{MaxBytes: 1 << 20, MaxRecords: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 100 {
		t.Fatalf("%d records", n)
	}
}

func TestReadOfAnEarlierEndIsEmpty(t *testing.T) {
	b := durable(t, 1)
	appendNumbers(b, 0, 10)
	page, err := connect(t, b).Read(within(t), "ns", "s", ReadOptions{From: 5, End: 3})
	if err != nil || len(page.Records) != 0 || page.Next != 5 {
		t.Fatalf("%+v, %v", page, err)
	}
}

func TestReadIsAskedAgainWhenItsConnectionIsLost(t *testing.T) {
	noLeaks(t)
	var reads atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			_, ok := f.Message().(*wire.StreamRead)
			if ok && reads.Add(1)%2 == 1 {
				transport.Close(s.Conn, transport.CloseOverload)
				return true
			}
			return false
		}})
	appendNumbers(b, 0, 10)
	n := 0
	for r, err := range connect(t, b).ReadRange(within(t), "ns", "s", ReadOptions{MaxRecords: 2}) {
		if err != nil || int(r.Offset) != n {
			t.Fatalf("%+v, %v", r, err)
		}
		n++
	}
	if n != 10 {
		t.Fatalf("%d records", n)
	}
}

func TestReadGoesToTheOwnerThatARedirectNames(t *testing.T) {
	noLeaks(t)
	var other *testbroker.Broker
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			switch f.Message().(type) {
			case *wire.StreamRead, *wire.OffsetForTime, *wire.PublishIf, *wire.Commit, *wire.StateGet:
				s.Send(&wire.NotLeader{NodeID: "b2", Addr: wire.Some(other.Addr()), Generation: 3})
				return true
			}
			return false
		}})
	other = testbroker.New(t, testbroker.Options{Share: b})
	c := connect(t, b)
	if r, err := c.PublishIf(within(t), "ns", "s", 0, [][]byte{[]byte("0")}); err != nil || r.Offset != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if at, err := c.Commit(within(t), "ns", "s", []byte("e"), []byte("1"), Put("k", []byte("v"))); err != nil || at != 1 {
		t.Fatalf("%s, %v", at, err)
	}
	if v, err := c.StateGet(within(t), "ns", "s", []byte("e"), "k"); err != nil || string(v.Value) != "v" {
		t.Fatalf("%+v, %v", v, err)
	}
	if page, err := c.Read(within(t), "ns", "s", ReadOptions{}); err != nil || len(page.Records) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	if at, found, err := c.OffsetForTime(within(t), "ns", "s", 0, time.Time{}); err != nil || !found || at != 0 {
		t.Fatalf("%s, %v, %v", at, found, err)
	}
}

func TestPageThatWouldMissOrRepeatSomethingIsRefused(t *testing.T) {
	pages := map[string]*wire.StreamRecords{
		"backwards":       {NextOffset: 3},
		"before the page": {NextOffset: 9, Records: []wire.StreamRecord{{Offset: 4}}},
		"out of order":    {NextOffset: 9, Records: []wire.StreamRecord{{Offset: 7}, {Offset: 6}}},
		"past the next":   {NextOffset: 6, Records: []wire.StreamRecord{{Offset: 6}}},
		"past the end":    {NextOffset: 12, Records: []wire.StreamRecord{{Offset: 10}}},
	}
	for name, page := range pages {
		_, err := pageOf("read", &wire.StreamRead{From: 5, End: wire.Some(id.Offset(10))}, page)
		var broken *ProtocolError
		if !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConditionalPublishLosesWithTheTailNamed(t *testing.T) {
	noLeaks(t)
	b := durable(t, 4)
	c := connect(t, b)
	key := WithKey([]byte("k"))
	first, err := c.PublishIf(within(t), "ns", "s", 0, [][]byte{[]byte("a"), []byte("b")}, key)
	if err != nil || !first.HasOffset || first.Offset != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	_, err = c.PublishIf(within(t), "ns", "s", 1, [][]byte{[]byte("c")}, key)
	wantIs(t, err, ErrOffsetMismatch)
	lost := wantAs[*OffsetMismatchError](t, err)
	if lost.Expected != 1 || lost.Tail != 2 || errors.Is(err, ErrOutcomeUnknown) || Retryable(err) {
		t.Fatalf("%+v", lost)
	}
	if r, err := c.PublishIf(within(t), "ns", "s", lost.Tail, [][]byte{[]byte("c")}, key); err != nil || r.Offset != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	_, err = c.PublishIf(within(t), "ns", "s", 0, [][]byte{nil}, WithAck(AckNone))
	wantAs[*ArgumentError](t, err)
	_, err = c.PublishIf(within(t), "ns", "nosuch", 0, [][]byte{nil}, key)
	wantIs(t, err, ErrNotFound)
}

func TestConditionalWriteWithoutAnAnswerIsInDoubtAndNeverSentAgain(t *testing.T) {
	noLeaks(t)
	var writes atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnAppended: func(s *testbroker.Stream, _ *wire.Publish) bool {
			writes.Add(1)
			transport.Close(s.Conn, transport.CloseOverload)
			return true
		}})
	c := connect(t, b)
	_, err := c.PublishIf(within(t), "ns", "s", 0, [][]byte{[]byte("0")})
	wantIs(t, err, ErrOutcomeUnknown, ErrConnectionLost)
	_, err = c.Commit(within(t), "ns", "s", []byte("e"), []byte("1"))
	wantIs(t, err, ErrOutcomeUnknown)
	if writes.Load() != 2 {
		t.Fatalf("%d writes", writes.Load())
	}
	wantNumbers(t, b, 2)
}

func TestConditionalWriteThatHadNoEffectForNowIsTriedAgain(t *testing.T) {
	noLeaks(t)
	var tries atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			if _, ok := f.Message().(*wire.PublishIf); !ok || tries.Add(1) > 2 {
				return false
			}
			s.Refuse(wire.Refuse(wire.CodeShardUnavailable, "opening").WithReason(wire.ReasonNotReady, 0))
			return true
		}})
	if r, err := connect(t, b).PublishIf(within(t), "ns", "s", 0, [][]byte{[]byte("0")}); err != nil || r.Offset != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestCommitShowsAsAnEventAndAsState(t *testing.T) {
	noLeaks(t)
	b := durable(t, 1)
	c := connect(t, b)
	ctx, entity := within(t), []byte("account-1")
	if v, err := c.StateGet(ctx, "ns", "s", entity, "balance"); err != nil || v.Found || v.HasAsOf {
		t.Fatalf("%+v, %v", v, err)
	}
	at, err := c.Commit(ctx, "ns", "s", entity, []byte("opened"), Put("balance", []byte("10")), Put("owner", nil))
	if err != nil || at != 0 {
		t.Fatalf("%s, %v", at, err)
	}
	if v, err := c.StateGet(ctx, "ns", "s", entity, "balance"); err != nil || string(v.Value) != "10" || !v.Found || v.Version != at || !v.HasAsOf || v.AsOf != at {
		t.Fatalf("%+v, %v", v, err)
	}
	if v, err := c.StateGet(ctx, "ns", "s", entity, "owner"); err != nil || !v.Found || len(v.Value) != 0 {
		t.Fatalf("an empty value: %+v, %v", v, err)
	}
	_, err = c.CommitIf(ctx, "ns", "s", 7, entity, []byte("closed"), Delete("balance"))
	if lost := wantAs[*OffsetMismatchError](t, err); lost.Expected != 7 || lost.Tail != 1 {
		t.Fatalf("%+v", lost)
	}
	if at, err = c.CommitIf(ctx, "ns", "s", 1, entity, []byte("closed"), Delete("balance")); err != nil || at != 1 {
		t.Fatalf("%s, %v", at, err)
	}
	if v, err := c.StateGet(ctx, "ns", "s", entity, "balance"); err != nil || v.Found || v.AsOf != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	s := subscribe(t, c, SubscribeOptions{From: Earliest()})
	wantPayload(t, s, "opened")
	wantPayload(t, s, "closed")
}

func TestStreamWithoutALogRefusesWhatNeedsOne(t *testing.T) {
	features := testbroker.DefaultFeatures | testbroker.DurableFeatures
	c := connect(t, testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Features: features}))
	without := connect(t, testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}}))
	calls := map[string]func(ctx context.Context, c *Client) error{
		"read": func(ctx context.Context, c *Client) error {
			_, err := c.Read(ctx, "ns", "s", ReadOptions{})
			return err
		},
		"publish if": func(ctx context.Context, c *Client) error {
			_, err := c.PublishIf(ctx, "ns", "s", 0, [][]byte{nil})
			return err
		},
		"commit": func(ctx context.Context, c *Client) error { _, err := c.Commit(ctx, "ns", "s", nil, nil); return err },
		"commit if": func(ctx context.Context, c *Client) error {
			_, err := c.CommitIf(ctx, "ns", "s", 0, nil, nil)
			return err
		},
		"state": func(ctx context.Context, c *Client) error { _, err := c.StateGet(ctx, "ns", "s", nil, "k"); return err },
		"time": func(ctx context.Context, c *Client) error {
			_, _, err := c.OffsetForTime(ctx, "ns", "s", 0, time.Now())
			return err
		},
	}
	for name, call := range calls {
		if err := call(within(t), c); !errors.Is(err, ErrInvalidRequest) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
		if err := call(within(t), without); !errors.Is(err, ErrUnsupported) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s at a broker that does not offer it: %v", name, err)
		}
	}
	p := newProducer(t, c, ProducerOptions{})
	_, err := p.Publish(within(t), "ns", "s", nil)
	wantIs(t, err, ErrInvalidRequest)
}

func TestWrongWritesAndReadsAreRefusedBeforeTheyAreSent(t *testing.T) {
	c := connect(t, durable(t, 1), func(o *Options) { o.MaxFrameBytes = 2000 })
	ctx := within(t)
	_, read := c.Read(ctx, "", "s", ReadOptions{})
	_, _, at := c.OffsetForTime(ctx, "ns", "", 0, time.Now())
	_, long := c.PublishIf(ctx, "ns", "s", 0, [][]byte{make([]byte, 1900)}) // base64 makes it longer
	_, none := c.PublishIf(ctx, "ns", "s", 0, nil)
	_, entity := c.Commit(ctx, "ns", "s", make([]byte, wire.MaxKeyBytes+1), nil)
	_, key := c.Commit(ctx, "ns", "s", nil, nil, Delete("\xff"))
	_, state := c.StateGet(ctx, "ns", "s", nil, "\xff")
	for i, err := range []error{read, at, long, none, entity, key, state} {
		var argument *ArgumentError
		if !errors.As(err, &argument) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
