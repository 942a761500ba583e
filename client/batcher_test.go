package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func newBatcher(t *testing.T, c *Client, o BatcherOptions) *Batcher {
	t.Helper()
	b, err := c.NewBatcher("ns", "s", o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seenBatch is a batch as a broker got it, with the right to answer.
type seenBatch struct {
	records []string
	key     string
	keyed   bool
	answer  func(refusal *wire.Refusal)
}

// collecting is a broker that leaves the answers to the test.
func collecting(t *testing.T, o testbroker.Options) (b *testbroker.Broker, seen chan seenBatch) {
	seen = make(chan seenBatch, 1000)
	o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, ok := f.Publish()
		if !ok {
			return false
		}
		batch := seenBatch{key: string(p.Key), keyed: p.Keyed, answer: func(r *wire.Refusal) {
			s.Ack(wire.PublishAck{RequestID: p.RequestID, Refusal: r, HasOffset: r == nil, Offset: id.Offset(100)})
		}}
		for payload, rest, ok := p.Region.Next(); ok; payload, rest, ok = rest.Next() {
			batch.records = append(batch.records, string(payload))
		}
		seen <- batch
		return true
	}
	return testbroker.New(t, o), seen
}

func add(t *testing.T, b *Batcher, payload string) BatchedRecord {
	t.Helper()
	r, err := b.Add(within(t), []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLoneRecordLeavesAtOnceAndABatchFillsWhileItIsUnanswered(t *testing.T) {
	noLeaks(t)
	broker, seen := collecting(t, testbroker.Options{})
	c := connect(t, broker)
	b := newBatcher(t, c, BatcherOptions{Linger: time.Hour})
	first := add(t, b, "0")
	one := await(t, "first batch", seen)
	var later []BatchedRecord
	for i := 1; i <= 50; i++ { // within the linger, behind an unanswered batch
		later = append(later, add(t, b, fmt.Sprint(i)))
	}
	if len(seen) != 0 {
		t.Fatal("a batch left before its time")
	}
	one.answer(nil)
	two := await(t, "second batch", seen)
	if len(one.records) != 1 || len(two.records) != 50 || two.records[49] != "50" {
		t.Fatalf("batches %v and %v", one.records, two.records)
	}
	two.answer(nil)
	if r, err := first.Wait(within(t)); err != nil || r.Offset != 100 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, r := range later {
		if got, err := r.Wait(within(t)); err != nil || !got.HasOffset || int(got.Offset) != 100+i {
			t.Fatalf("record %d: %+v, %v", i, got, err)
		}
	}
	if err := b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestBatchLeavesWhenItLingeredLongEnough(t *testing.T) {
	noLeaks(t)
	broker, seen := collecting(t, testbroker.Options{})
	b := newBatcher(t, connect(t, broker), BatcherOptions{Linger: 20 * time.Millisecond})
	add(t, b, "0")
	first := await(t, "first batch", seen)
	add(t, b, "1")
	second := await(t, "second batch", seen) // although the first is unanswered
	first.answer(nil)
	second.answer(nil)
	if err := b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestBatchIsFullByRecordsAndByBytes(t *testing.T) {
	noLeaks(t)
	for name, row := range map[string]struct {
		o     BatcherOptions
		sizes []int
	}{
		"records": {BatcherOptions{MaxRecords: 4, Linger: time.Hour}, []int{1, 4, 4, 2}},
		"bytes":   {BatcherOptions{MaxBytes: 3 * 14, Linger: time.Hour}, []int{1, 3, 3, 3, 1}}, // 10 bytes and 4 for each
		"one too large": {BatcherOptions{MaxBytes: 5, Linger: time.Hour}, // goes alone
			[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			broker, seen := collecting(t, testbroker.Options{})
			row.o.MaxInFlight = 100
			b := newBatcher(t, connect(t, broker), row.o)
			add(t, b, "0123456789")
			batches := []seenBatch{await(t, "batch", seen)} // under load from here on
			for range 10 {
				add(t, b, "0123456789")
			}
			flushed := make(chan error, 1)
			go func() { flushed <- b.Flush(within(t)) }()
			for len(batches) < len(row.sizes) {
				batches = append(batches, await(t, "batch", seen))
			}
			for i, batch := range batches {
				if len(batch.records) != row.sizes[i] {
					t.Fatalf("batch %d has %d records, want %v", i, len(batch.records), row.sizes)
				}
				batch.answer(nil)
			}
			if err := await(t, "flush", flushed); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(within(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestNoMoreBatchesAreUnderWayThanAllowed(t *testing.T) {
	noLeaks(t)
	broker, seen := collecting(t, testbroker.Options{})
	b := newBatcher(t, connect(t, broker), BatcherOptions{MaxRecords: 1, MaxInFlight: 3})
	for i := range 9 {
		add(t, b, fmt.Sprint(i))
	}
	var under []seenBatch
	for range 3 {
		under = append(under, await(t, "batch", seen))
	}
	for i := range 9 {
		select {
		case extra := <-seen:
			t.Fatalf("%v came while three were unanswered", extra.records)
		case <-time.After(2 * time.Millisecond):
		}
		under[i].answer(nil)
		if i < 6 {
			under = append(under, await(t, "batch", seen))
		}
	}
	for i, batch := range under {
		if batch.records[0] != fmt.Sprint(i) {
			t.Fatalf("batch %d carried %v", i, batch.records)
		}
	}
	if err := b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsOfAKeyKeepTheirOrderUnderBothRoutingRules(t *testing.T) {
	for _, routing := range []wire.Routing{wire.RoutingModulo, wire.RoutingJumpHash} {
		t.Run(routing.String(), func(t *testing.T) {
			noLeaks(t)
			const keys, each, shards = 20, 200, 7
			broker := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": shards}, Durable: true, Routing: routing})
			c := connect(t, broker)
			m := subscribeAll(t, c, SubscribeAllOptions{From: Earliest()})
			b := newBatcher(t, c, BatcherOptions{})
			var adders sync.WaitGroup
			for k := range keys {
				adders.Go(func() {
					for i := range each {
						if _, err := b.AddKeyed(within(t), fmt.Append(nil, k), fmt.Appendf(nil, "%d %d", k, i)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			adders.Wait()
			if err := b.Flush(within(t)); err != nil {
				t.Fatal(err)
			}
			next := make([]int, keys)
			for range keys * each {
				e, err := m.Next(within(t))
				if err != nil {
					t.Fatal(err)
				}
				var k, i int
				if _, err := fmt.Sscanf(string(e.Payload), "%d %d", &k, &i); err != nil {
					t.Fatal(err)
				}
				if want := routing.Shard(fmt.Append(nil, k), true, shards); e.Shard != want {
					t.Fatalf("key %d is in shard %d, want %d", k, e.Shard, want)
				}
				if next[k] != i {
					t.Fatalf("key %d: record %d came where %d was due", k, i, next[k])
				}
				next[k]++
			}
			if s := c.Stats(); s.PublishRecords != keys*each || s.PublishBatches >= keys*each {
				t.Fatalf("%d records in %d batches", s.PublishRecords, s.PublishBatches)
			}
		})
	}
}

func TestKeysAreNotMixedWhenTheShardsAreNotKnown(t *testing.T) {
	noLeaks(t)
	broker, seen := collecting(t, testbroker.Options{Features: testbroker.DefaultFeatures &^ wire.FeatureStreamShards})
	b := newBatcher(t, connect(t, broker), BatcherOptions{Linger: time.Hour, MaxInFlight: 100})
	records := []string{"a", "a", "b", "b", "", "a"}
	for i, key := range records {
		var err error
		if key == "" {
			_, err = b.Add(within(t), fmt.Append(nil, i))
		} else {
			_, err = b.AddKeyed(within(t), []byte(key), fmt.Append(nil, i))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	flushed := make(chan error, 1)
	go func() { flushed <- b.Flush(within(t)) }()
	got := ""
	for n := 0; n < len(records); {
		batch := await(t, "batch", seen)
		got += fmt.Sprintf("%s%v ", batch.key, batch.records)
		if batch.keyed != (batch.key != "") {
			t.Fatalf("keyed %v with key %q", batch.keyed, batch.key)
		}
		n += len(batch.records)
		batch.answer(nil)
	}
	if err := await(t, "flush", flushed); err != nil {
		t.Fatal(err)
	}
	// The first record left alone or with the second, as it happened.
	if got = strings.Replace(got, "a[0] a[1]", "a[0 1]", 1); got != "a[0 1] b[2 3] [4] a[5] " {
		t.Fatalf("batches %s", got)
	}
}

func TestErrorOfABatchIsThatOfItsRecordsAndOthersGoOn(t *testing.T) {
	noLeaks(t)
	broker, seen := collecting(t, testbroker.Options{})
	b := newBatcher(t, connect(t, broker), BatcherOptions{MaxRecords: 2, Linger: time.Hour})
	bad := add(t, b, "0")
	first := await(t, "batch", seen)
	good := add(t, b, "1")
	r := wire.Refuse(wire.CodeOverloaded, "later")
	first.answer(&r)
	await(t, "batch", seen).answer(nil)
	_, err := bad.Wait(within(t))
	wantIs(t, err, ErrOverloaded)
	if _, err := good.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if failed := wantAs[*FlushError](t, b.Flush(within(t))); failed.Failed != 1 || !errors.Is(failed, ErrOverloaded) {
		t.Fatalf("%+v", failed)
	}
	if err := b.Flush(within(t)); err != nil {
		t.Fatalf("a second flush tells of it again: %v", err)
	}
}

func TestAddWaitsForRoomAndMemoryStaysBounded(t *testing.T) {
	noLeaks(t)
	broker, seen := collecting(t, testbroker.Options{})
	c := connect(t, broker)
	b := newBatcher(t, c, BatcherOptions{BufferBytes: 3 * DefaultPublishChunkBytes, MaxInFlight: 1, Linger: time.Hour})
	filler := []byte(strings.Repeat("x", 20<<10))
	added := 0
	impatient, cancel := context.WithCancel(context.Background())
	cancel() // it takes room that is there, and does not wait
	for {
		if _, err := b.Add(impatient, filler); err != nil {
			wantIs(t, err, context.Canceled)
			break
		}
		if added++; added*len(filler) > 4*DefaultPublishChunkBytes {
			t.Fatalf("%d records were taken", added)
		}
	}
	room := make(chan error, 1)
	go func() { _, err := b.Add(within(t), filler); room <- err }()
	await(t, "batch", seen).answer(nil)
	if err := await(t, "room", room); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- b.Close(within(t)) }()
	for open := true; open; {
		select {
		case batch := <-seen:
			batch.answer(nil)
		case err := <-closed:
			if err != nil {
				t.Fatal(err)
			}
			open = false
		}
	}
	if b.budget.used != 0 {
		t.Fatalf("%d bytes are still taken", b.budget.used)
	}
}

func TestClosingTheClientFlushesItsBatchers(t *testing.T) {
	noLeaks(t)
	broker := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true})
	c := connect(t, broker)
	b := newBatcher(t, c, BatcherOptions{Linger: time.Hour})
	var last BatchedRecord
	for i := range 1000 {
		last = add(t, b, fmt.Sprint(i))
	}
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if r, err := last.Wait(within(t)); err != nil || r.Offset != 999 {
		t.Fatalf("%+v, %v", r, err)
	}
	_, err := b.Add(within(t), nil)
	wantIs(t, err, ErrClosed)
	_, err = c.NewBatcher("ns", "s", BatcherOptions{})
	wantIs(t, err, ErrClosed)
}

func TestClosedBatcherGivesUpWhatItCannotSend(t *testing.T) {
	noLeaks(t)
	broker, seen := collecting(t, testbroker.Options{})
	b := newBatcher(t, connect(t, broker), BatcherOptions{MaxRecords: 1, MaxInFlight: 1})
	under, waiting := add(t, b, "0"), add(t, b, "1")
	first := await(t, "batch", seen)
	short, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancel()
	wantIs(t, b.Close(short), context.DeadlineExceeded)
	first.answer(nil)
	if _, err := under.Wait(within(t)); err != nil { // on its way, so it has an outcome
		t.Fatal(err)
	}
	_, err := waiting.Wait(within(t))
	wantIs(t, err, ErrClosed)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("it was never sent: %v", err)
	}
	if err := b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestLostConnectionMakesBatchesUnknownAndTheBatcherGoesOn(t *testing.T) {
	noLeaks(t)
	var publishes atomic.Int64
	broker := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Publish(); !ok || publishes.Add(1) > 1 {
			return false
		}
		transport.Close(s.Conn, transport.CloseOverload)
		return true
	}})
	b := newBatcher(t, connect(t, broker), BatcherOptions{})
	_, err := add(t, b, "0").Wait(within(t))
	wantIs(t, err, ErrOutcomeUnknown)
	if _, err := add(t, b, "1").Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if failed := wantAs[*FlushError](t, b.Close(within(t))); failed.Failed != 1 {
		t.Fatalf("%+v", failed)
	}
}

func TestUnacknowledgedBatchesEndWhenTheyAreWritten(t *testing.T) {
	noLeaks(t)
	broker := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, broker)
	s := subscribe(t, c, SubscribeOptions{})
	b := newBatcher(t, c, BatcherOptions{Ack: AckNone})
	for i := range 500 {
		add(t, b, fmt.Sprint(i))
	}
	if err := b.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		wantPayload(t, s, fmt.Sprint(i))
	}
}

func TestBatchesTravelAsJSONWhereTheBrokerReadsNothingElse(t *testing.T) {
	noLeaks(t)
	broker := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Flags: wire.FlagEventBatchShared})
	c := connect(t, broker)
	s := subscribe(t, c, SubscribeOptions{})
	b := newBatcher(t, c, BatcherOptions{})
	for i := range 10 {
		add(t, b, fmt.Sprint(i))
	}
	if err := b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		wantPayload(t, s, fmt.Sprint(i))
	}
}

func TestWrongRecordsAndOptionsAreRefusedBeforeTheyAreTaken(t *testing.T) {
	c := connect(t, testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}}), func(o *Options) { o.MaxFrameBytes = 1000 })
	for _, o := range []BatcherOptions{{Linger: -1}, {MaxRecords: -1}, {BufferBytes: -1}, {Ack: 9}} {
		_, err := c.NewBatcher("ns", "s", o)
		wantAs[*ArgumentError](t, err)
	}
	_, err := c.NewBatcher("", "s", BatcherOptions{})
	wantAs[*ArgumentError](t, err)
	b := newBatcher(t, c, BatcherOptions{})
	_, err = b.Add(within(t), make([]byte, 1000))
	wantAs[*ArgumentError](t, err)
	_, err = b.AddKeyed(within(t), make([]byte, wire.MaxKeyBytes+1), nil)
	wantAs[*ArgumentError](t, err)
	if _, err := b.Add(within(t), make([]byte, 900)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Add(within(t), make([]byte, 900)); err != nil { // does not fit a frame with the first
		t.Fatal(err)
	}
	if err := b.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
}
