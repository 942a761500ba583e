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
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

func newProducer(t *testing.T, c *Client, o ProducerOptions) *Producer {
	t.Helper()
	p, err := c.NewProducer(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// produce publishes the numbers from..to-1 one by one, many under way at once.
func produce(t *testing.T, p *Producer, from, to int) []*ProducedBatch {
	t.Helper()
	var all []*ProducedBatch
	for i := from; i < to; i++ {
		b, err := p.PublishAsync(within(t), "ns", "s", fmt.Append(nil, i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func wantLanded(t *testing.T, batches []*ProducedBatch, first int) {
	t.Helper()
	for i, b := range batches {
		r, err := b.Wait(within(t))
		if err != nil || !r.HasOffset || int(r.Offset) != first+i {
			t.Fatalf("batch %d: %+v, %v, want offset %d", i, r, err, first+i)
		}
	}
}

func wantNumbers(t *testing.T, b *testbroker.Broker, n int) {
	t.Helper()
	got := b.Payloads("ns/s", 0)
	if len(got) != n {
		t.Fatalf("%d records in the log, want %d", len(got), n)
	}
	for i, p := range got {
		if p != fmt.Sprint(i) {
			t.Fatalf("record %d is %q", i, p)
		}
	}
}

// losing is an OnAppended that has the answer of each seventh batch lost, with its connection, the first time it is written.
func losing() func(s *testbroker.Stream, p *wire.Publish) bool {
	var lost sync.Map
	return func(s *testbroker.Stream, p *wire.Publish) bool {
		if p.Sequence%7 != 3 {
			return false
		}
		if _, before := lost.LoadOrStore([2]any{string(p.Key), p.Sequence}, true); before {
			return false
		}
		transport.Close(s.Conn, transport.CloseOverload) // it is written, and nobody learns of it
		return true
	}
}

// mission 371
//
// field case REP-10
func TestProducerSendsAgainAfterLostAnswersAndEachRecordLandsOnce(t *testing.T) {
	noLeaks(t)
	for name, flags := range map[string]wire.Flags{"binary": 0, "json": testbroker.DefaultFlags &^ wire.FlagPublishIdempotent} {
		t.Run(name, func(t *testing.T) {
			b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, Flags: flags, OnAppended: losing()})
			c := connect(t, b)
			p := newProducer(t, c, ProducerOptions{})
			wantLanded(t, produce(t, p, 0, 300), 0)
			wantNumbers(t, b, 300)
			if c.Stats().Retries == 0 {
				t.Fatal("no answer was lost")
			}
			if err := p.Close(within(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A broker knows the last 64 numbers again. Were the places of batches in the log free while one before them has no outcome, so many more could
// follow that its number were forgotten when it is sent again.
//
// field case REP-10
func TestABatchWithoutAnOutcomeKeepsThePlacesOfAllBehindIt(t *testing.T) {
	noLeaks(t)
	const losses = 3
	var tries atomic.Int64 // of the first batch
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, OnAppended: func(s *testbroker.Stream, p *wire.Publish) bool {
		switch {
		case tries.Load() > losses:
		case p.Sequence == 0 && tries.Add(1) == 1:
			return true // it is written, and nobody learns of it
		case p.Sequence == 0 && tries.Load() <= losses:
			s.Finish()
			return true
		case p.Sequence == producerInFlight-2 && tries.Load() == 1:
			s.Finish() // what was answered before it arrives
			return true
		}
		return false
	}})
	var p *Producer
	held, begun := make(chan int, losses), make(chan struct{})
	c := connect(t, b, func(o *Options) {
		o.Hooks.Retrying = func(Retry) {
			<-begun
			held <- len(p.all[0].slots)
		}
	})
	p = newProducer(t, c, ProducerOptions{})
	all := produce(t, p, 0, producerInFlight)
	close(begun)
	all = append(all, produce(t, p, producerInFlight, 4*producerInFlight)...)
	wantLanded(t, all, 0)
	wantNumbers(t, b, 4*producerInFlight)
	for loss := range losses {
		if n := await(t, "another try", held); n != producerInFlight {
			t.Errorf("%d places are taken after loss %d, while the first of %d batches has no outcome", n, loss, producerInFlight)
		}
	}
	until(t, "free places", func() bool { return len(p.all[0].slots) == 0 })
}

func TestProducerSendsAgainInOrderWhatWasRefusedForNow(t *testing.T) {
	noLeaks(t)
	var refused sync.Map
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			p, ok := f.Publish()
			if !ok || p.Sequence%5 != 4 {
				return false
			}
			if _, before := refused.LoadOrStore(p.Sequence, true); before {
				return false
			}
			r := wire.Refuse([]wire.Code{wire.CodeOverloaded, wire.CodeUnacknowledged, wire.CodeShardUnavailable}[p.Sequence%3], "not now")
			s.Raw(wire.AppendPublishAnswer(nil, &wire.PublishAck{RequestID: p.RequestID, Refusal: &r}, s.Grant))
			return true
		}})
	p := newProducer(t, connect(t, b), ProducerOptions{})
	wantLanded(t, produce(t, p, 0, 100), 0) // those behind a refused one meet a gap
	wantNumbers(t, b, 100)
}

func TestProducerNumbersEachShardOnItsOwnAndKeepsKeysInOrder(t *testing.T) {
	noLeaks(t)
	const shards, keys, each = 4, 8, 50
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": shards}, Durable: true})
	c := connect(t, b)
	p := newProducer(t, c, ProducerOptions{MaxInFlight: 3})
	var all sync.WaitGroup
	for k := range keys {
		all.Go(func() {
			for i := range each {
				if _, err := p.PublishAsync(within(t), "ns", "s", fmt.Appendf(nil, "%d %d", k, i), WithKey(fmt.Append(nil, k))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := p.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	var next [keys]int
	for shard := range uint32(shards) {
		for _, text := range b.Payloads("ns/s", shard) {
			var k, i int
			if _, err := fmt.Sscanf(text, "%d %d", &k, &i); err != nil || next[k] != i {
				t.Fatalf("shard %d holds %q, and %d of the key before, %v", shard, text, next[k], err)
			}
			next[k]++
		}
	}
	if next != [keys]int{each, each, each, each, each, each, each, each} {
		t.Fatalf("records of each key: %v", next)
	}
}

func TestProducerFollowsTheLeaderThatARefusalNames(t *testing.T) {
	noLeaks(t)
	var other *testbroker.Broker
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			p, ok := f.Publish()
			if ok {
				s.Send(&wire.PublishRefused{RequestID: p.RequestID, Reason: wire.RefusedReason{
					Kind: wire.RefusedNotLeader, NodeID: "b2", Addr: wire.Some(other.Addr())}})
			}
			return ok
		}})
	other = testbroker.New(t, testbroker.Options{Share: b})
	p := newProducer(t, connect(t, b), ProducerOptions{})
	wantLanded(t, produce(t, p, 0, 100), 0)
	wantNumbers(t, b, 100)
}

// refusing answers the n-th numbered publish, from 0, with a reason, and has written nothing.
func refusing(t *testing.T, n int64, reason wire.RefusedReason) *testbroker.Broker {
	var publishes atomic.Int64
	return testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			p, ok := f.Publish()
			if !ok || publishes.Add(1) != n+1 {
				return false
			}
			s.Send(&wire.PublishRefused{RequestID: p.RequestID, Reason: reason, Message: "test"})
			return true
		}})
}

// field case REP-11
func TestRefusedNumbersAreTypedAndStopTheProducerForTheShard(t *testing.T) {
	noLeaks(t)
	for mark, reason := range map[error]wire.RefusedReason{
		ErrSequenceGap:     {Kind: wire.RefusedSequenceGap, Expected: 1},
		ErrUnknownProducer: {Kind: wire.RefusedUnknownProducer},
		ErrSequenceExpired: {Kind: wire.RefusedSequenceExpired},
		ErrSequenceReused:  {Kind: wire.RefusedSequenceReused},
	} {
		p := newProducer(t, connect(t, refusing(t, 2, reason)), ProducerOptions{MaxInFlight: 1})
		batches := produce(t, p, 0, 2)
		wantLanded(t, batches, 0)
		_, err := p.Publish(within(t), "ns", "s", []byte("2"))
		wantIs(t, err, mark)
		if e := wantAs[*SequenceError](t, err); e.Sequence != 2 || e.ProducerID != p.ID() || e.Reason != reason.Kind || e.Expected != reason.Expected {
			t.Errorf("%+v", e)
		}
		if errors.Is(err, ErrOutcomeUnknown) || Retryable(err) {
			t.Errorf("%v is in doubt, or worth another try", err)
		}
		_, err = p.Publish(within(t), "ns", "s", []byte("3"))
		wantIs(t, err, ErrProducerStopped)
		if err := p.Close(within(t)); err != nil { // who failed was told
			t.Error(err)
		}
	}
}

func TestProducerThatTheBrokerForgotIsToldSo(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	p := newProducer(t, connect(t, b), ProducerOptions{})
	wantLanded(t, produce(t, p, 0, 3), 0)
	b.Forget("ns/s", 0)
	_, err := p.Publish(within(t), "ns", "s", []byte("x"))
	wantIs(t, err, ErrUnknownProducer)
	wantNumbers(t, b, 3)
}

func TestNumberRefusedAfterALostAnswerLeavesTheBatchInDoubt(t *testing.T) {
	noLeaks(t)
	var b *testbroker.Broker
	var lost atomic.Bool
	b = testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnAppended: func(s *testbroker.Stream, p *wire.Publish) bool {
			if p.Sequence != 1 || lost.Swap(true) {
				return false
			}
			b.Forget("ns/s", 0)
			s.Reset() // and after that it is unknown
			return true
		}})
	p := newProducer(t, connect(t, b), ProducerOptions{})
	wantLanded(t, produce(t, p, 0, 1), 0)
	_, err := p.Publish(within(t), "ns", "s", []byte("1"))
	wantIs(t, err, ErrOutcomeUnknown, ErrUnknownProducer)
	wantAs[*SequenceError](t, err)
}

func TestBatchRefusedForGoodFailsThoseBehindItAndTheProducerGoesOn(t *testing.T) {
	noLeaks(t)
	var publishes atomic.Int64
	held := make(chan struct{})
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
			p, ok := f.Publish()
			if !ok || publishes.Add(1) != 3 {
				return false
			}
			<-held // until those behind it are on their way
			r := wire.Refuse(wire.CodeForbidden, "not you")
			s.Raw(wire.AppendPublishAnswer(nil, &wire.PublishAck{RequestID: p.RequestID, Refusal: &r}, s.Grant))
			return true
		}})
	p := newProducer(t, connect(t, b), ProducerOptions{})
	batches := produce(t, p, 0, 5)
	close(held)
	wantLanded(t, batches[:2], 0)
	_, err := batches[2].Wait(within(t))
	wantIs(t, err, ErrForbidden)
	for _, behind := range batches[3:] {
		_, err := behind.Wait(within(t))
		if e := wantAs[*ProducerError](t, err); e.Stopped || !errors.Is(e.Err, ErrForbidden) || errors.Is(err, ErrForbidden) {
			t.Errorf("%+v", e)
		}
	}
	wantLanded(t, produce(t, p, 2, 50), 2)
	wantNumbers(t, b, 50)
}

func TestProducerGivesUpWithItsPatienceAndSaysWhatIsInDoubt(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnAppended: func(s *testbroker.Stream, _ *wire.Publish) bool {
			s.Reset()
			return true
		}})
	clock := newClock()
	c := connectWith(t, b, func(c *Client) {
		c.now, c.sleep, c.jitter = clock.now, clock.sleep, func(d time.Duration) time.Duration { return d }
	})
	p := newProducer(t, c, ProducerOptions{Patience: 10 * time.Second})
	began := clock.now()
	_, err := p.Publish(within(t), "ns", "s", []byte("0"))
	wantIs(t, err, ErrOutcomeUnknown)
	wantAs[*GaveUpError](t, err)
	if took := clock.now().Sub(began); took < 8*time.Second || took > 10*time.Second {
		t.Fatalf("it gave up after %v", took)
	}
	_, err = p.Publish(within(t), "ns", "s", []byte("1"))
	wantIs(t, err, ErrProducerStopped)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("it was never sent: %v", err)
	}
	wantNumbers(t, b, 1) // and the one in doubt came once, however often it was sent
}

func TestNoMoreBatchesOfAShardAreUnderWayThanTheBrokerKnowsAgain(t *testing.T) {
	noLeaks(t)
	held := make(chan struct{})
	var publishes atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if _, ok := f.Publish(); ok && publishes.Add(1) == 1 {
				<-held
			}
			return false
		}})
	c := connect(t, b)
	p := newProducer(t, c, ProducerOptions{})
	batches := produce(t, p, 0, producerInFlight)
	short, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancel()
	_, err := p.PublishAsync(short, "ns", "s", []byte("x"))
	wantIs(t, err, context.DeadlineExceeded)
	close(held)
	wantLanded(t, batches, 0)
	wantNumbers(t, b, producerInFlight)
	if err := p.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if c.budget.used != 0 {
		t.Fatalf("%d bytes are still taken", c.budget.used)
	}
}

func TestFlushTellsOfTheBatchesWhoseFailureNobodyWasTold(t *testing.T) {
	noLeaks(t)
	p := newProducer(t, connect(t, refusing(t, 0, wire.RefusedReason{Kind: wire.RefusedSequenceExpired})), ProducerOptions{MaxInFlight: 1})
	if _, err := p.PublishBatchAsync(within(t), "ns", "s", [][]byte{{1}, {2}}); err != nil {
		t.Fatal(err)
	}
	if failed := wantAs[*FlushError](t, p.Flush(within(t))); failed.Failed != 2 || !errors.Is(failed, ErrSequenceExpired) {
		t.Fatalf("%+v", failed)
	}
	if err := p.Flush(within(t)); err != nil {
		t.Fatalf("a second flush tells of it again: %v", err)
	}
}

func TestCallerWhoGivesUpWaitingLosesNothing(t *testing.T) {
	noLeaks(t)
	held := make(chan struct{})
	var publishes atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if _, ok := f.Publish(); ok && publishes.Add(1) == 1 {
				<-held
			}
			return false
		}})
	p := newProducer(t, connect(t, b), ProducerOptions{})
	batch := produce(t, p, 0, 1)[0]
	gone, cancel := context.WithCancel(within(t))
	cancel()
	_, err := batch.Wait(gone)
	wantIs(t, err, ErrOutcomeUnknown, context.Canceled)
	close(held)
	wantLanded(t, []*ProducedBatch{batch}, 0)
	wantNumbers(t, b, 1)
}

func TestClosingTheClientFlushesItsProducers(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	c := connect(t, b)
	p := newProducer(t, c, ProducerOptions{})
	batches := produce(t, p, 0, 200)
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	wantLanded(t, batches, 0)
	wantNumbers(t, b, 200)
	_, err := p.Publish(within(t), "ns", "s", nil)
	wantIs(t, err, ErrClosed)
	_, err = c.NewProducer(within(t), ProducerOptions{})
	wantIs(t, err, ErrClosed)
}

func TestClosedProducerTellsOfWhatItCouldNotFinish(t *testing.T) {
	noLeaks(t)
	held := make(chan struct{})
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true,
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if _, ok := f.Publish(); ok {
				<-held
			}
			return false
		}})
	c := connect(t, b)
	p := newProducer(t, c, ProducerOptions{})
	batch := produce(t, p, 0, 1)[0]
	short, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancel()
	wantIs(t, p.Close(short), context.DeadlineExceeded)
	close(held)
	if _, err := batch.Wait(within(t)); err != nil && !errors.Is(err, ErrClosed) { // it was on its way, so either may be
		t.Fatal(err)
	}
	_, err := p.PublishAsync(within(t), "ns", "s", nil)
	wantIs(t, err, ErrClosed)
}

func TestBatchesOfABatcherWithAProducerLandOnce(t *testing.T) {
	noLeaks(t)
	const shards = 3
	broker := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": shards}, Durable: true, OnAppended: losing()})
	c := connect(t, broker)
	p := newProducer(t, c, ProducerOptions{})
	b := newBatcher(t, c, BatcherOptions{Producer: p, MaxRecords: 10})
	var want []string
	for i := range 500 {
		if _, err := b.AddKeyed(within(t), fmt.Append(nil, i%20), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(i))
	}
	if err := b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for shard := range uint32(shards) {
		got = append(got, broker.Payloads("ns/s", shard)...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%d records, want each of %d once", len(got), len(want))
	}
}

func TestProducerThatCannotWorkIsRefusedBeforeAnythingIsSent(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	c := connect(t, b, func(o *Options) { o.MaxFrameBytes = 1000 })
	for _, o := range []ProducerOptions{{MaxInFlight: -1}, {MaxInFlight: 65}, {Patience: -1}} {
		_, err := c.NewProducer(within(t), o)
		wantAs[*ArgumentError](t, err)
	}
	p := newProducer(t, c, ProducerOptions{})
	_, err := p.Publish(within(t), "ns", "s", make([]byte, 1000))
	wantAs[*ArgumentError](t, err)
	_, err = p.Publish(within(t), "ns", "s", nil, WithAck(AckNone))
	wantAs[*ArgumentError](t, err)
	_, err = p.Publish(within(t), "ns", "nosuch", nil, WithKey([]byte("k")))
	wantIs(t, err, ErrNotFound)
	_, err = c.NewBatcher("ns", "s", BatcherOptions{Producer: p, Ack: AckNone})
	wantAs[*ArgumentError](t, err)
	_, err = connect(t, b).NewBatcher("ns", "s", BatcherOptions{Producer: p})
	wantAs[*ArgumentError](t, err)
	full := newBatcher(t, c, BatcherOptions{Producer: p, MaxBytes: 1 << 20, Linger: time.Hour})
	for range 30 { // batches end before the number makes their frame too long
		if _, err := full.Add(within(t), []byte(strings.Repeat("x", 91))); err != nil {
			t.Fatal(err)
		}
	}
	if err := full.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	old := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	_, err = connect(t, old).NewProducer(within(t), ProducerOptions{})
	wantIs(t, err, ErrUnsupported)
}

func TestBatchesThatReachedNobodyAreNotInDoubt(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	clock := newClock()
	c := connectWith(t, b, func(c *Client) {
		c.now, c.sleep, c.jitter = clock.now, clock.sleep, func(d time.Duration) time.Duration { return d }
	}, func(o *Options) { o.Attempts = 1 })
	p := newProducer(t, c, ProducerOptions{Patience: 3 * time.Second})
	wantLanded(t, produce(t, p, 0, 1), 0)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	untilAllEnded(t, c) // what is given to a connection that has just died may have been sent
	c.opts.DialTimeout = 50 * time.Millisecond
	batches := produce(t, p, 1, 3)
	_, err := batches[0].Wait(within(t))
	wantIs(t, err, ErrUnreachable)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("it was never sent: %v", err)
	}
	_, err = batches[1].Wait(within(t))
	if e := wantAs[*ProducerError](t, err); e.Stopped || !errors.Is(e.Err, ErrUnreachable) {
		t.Fatalf("%+v", e)
	}
}

func TestStreamThatIsNotThereIsBelievedToComeForFiveSeconds(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	clock := newClock()
	c := connectWith(t, b, func(c *Client) {
		c.now, c.sleep, c.jitter = clock.now, clock.sleep, func(d time.Duration) time.Duration { return d }
	})
	p := newProducer(t, c, ProducerOptions{})
	began := clock.now()
	_, err := p.Publish(within(t), "ns", "nosuch", nil)
	wantIs(t, err, ErrNotFound)
	if took := clock.now().Sub(began); took == 0 || took > notFoundGrace {
		t.Fatalf("it gave up after %v", took)
	}
}

func TestKeyedBatchesTravelAsJSONWhereTheBrokerReadsNothingElse(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 3}, Durable: true, Flags: wire.FlagEventBatchShared | wire.FlagPublishAckOffset})
	p := newProducer(t, connect(t, b), ProducerOptions{})
	key := []byte("k")
	if r, err := p.PublishBatch(within(t), "ns", "s", [][]byte{[]byte("a"), []byte("b")}, WithKey(key)); err != nil || r.Offset != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := b.Payloads("ns/s", wire.RoutingModulo.Shard(key, true, 3)); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("%q", got)
	}
}

func TestErrorsOfWritesSayWhatToDo(t *testing.T) {
	for want, err := range map[string]error{
		"op: expected offset 3, but the next one is 9: read what was written meanwhile, then decide again": &OffsetMismatchError{Op: "op", Expected: 3, Tail: 9},
		"op: batch 4 of producer ff: sequence_gap (2 was due): an acknowledged batch is missing there; check what was written before you go on": &SequenceError{
			Op: "op", Reason: wire.RefusedSequenceGap, ProducerID: 255, Sequence: 4, Expected: 2},
		"op: batch 4 of producer ff: unknown_producer: make a new producer":                                                                &SequenceError{Op: "op", Reason: wire.RefusedUnknownProducer, ProducerID: 255, Sequence: 4},
		"op: not written, because an earlier batch of its shard failed (closed): publish it again":                                         &ProducerError{Op: "op", Err: ErrClosed},
		"op: not written, because an earlier batch of its shard failed (closed): look at what was written, then go on with a new producer": &ProducerError{Op: "op", Err: ErrClosed, Stopped: true},
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}

// untilAllEnded waits until the client knows that it has no connection, nor a stream on one.
func untilAllEnded(t *testing.T, c *Client) {
	t.Helper()
	until(t, "the end of each connection", func() bool { return len(c.life.open()) == 0 })
}
