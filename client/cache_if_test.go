package client

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// logBacked makes a broker with caches that have logs: one of a shard, one of three.
func logBacked(t *testing.T, changes ...func(o *testbroker.Options)) *testbroker.Broker {
	o := testbroker.Options{Caches: map[string]uint32{"ns/c": 1, "ns/wide": 3}, Durable: true}
	for _, change := range changes {
		change(&o)
	}
	return testbroker.New(t, o)
}

func TestConditionalWritesAreDoneOnlyWhenTheirConditionHolds(t *testing.T) {
	c := connect(t, logBacked(t))
	ctx := within(t)
	put := func(value string, cond Condition) ConditionResult {
		t.Helper()
		r, err := c.CachePutIf(ctx, "ns", "c", "k", []byte(value), cond, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := func(value string, version uint64) {
		t.Helper()
		e, err := c.CacheGetVersion(ctx, "ns", "c", "k")
		if err != nil || !e.Found || string(e.Value) != value || e.Version != version {
			t.Fatalf("%+v, %v, want %q of version %d", e, err, value, version)
		}
	}
	if r := put("no", IfVersion(0)); r != (ConditionResult{}) {
		t.Fatalf("a key without a value had version 0: %+v", r)
	}
	first := put("a", IfAbsent())
	if !first.Applied || !first.HasVersion {
		t.Fatalf("%+v", first)
	}
	want("a", first.Version)
	if r := put("b", IfAbsent()); r.Applied || !r.HasVersion || r.Version != first.Version {
		t.Fatalf("there was a value: %+v", r)
	}
	second := put("b", IfVersion(first.Version))
	if !second.Applied || second.Version <= first.Version {
		t.Fatalf("%+v after version %d", second, first.Version)
	}
	want("b", second.Version)
	r, err := c.CacheDeleteIf(ctx, "ns", "c", "k", first.Version)
	if err != nil || r.Applied || r.Version != second.Version {
		t.Fatalf("deleted by an old version: %+v, %v", r, err)
	}
	r, err = c.CacheDeleteIf(ctx, "ns", "c", "k", second.Version)
	if err != nil || !r.Applied || r.HasVersion {
		t.Fatalf("%+v, %v", r, err)
	}
	if e, err := c.CacheGetVersion(ctx, "ns", "c", "k"); err != nil || e.Found || e.Version != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
}

func TestOfManyConditionalWritersOneWins(t *testing.T) {
	c := connect(t, logBacked(t))
	ctx := within(t)
	var won atomic.Int64
	var writers sync.WaitGroup
	for i := range 50 {
		writers.Go(func() {
			r, err := c.CachePutIf(ctx, "ns", "c", "k", fmt.Append(nil, i), IfAbsent(), time.Hour)
			if err != nil {
				t.Error(err)
			}
			if r.Applied {
				won.Add(1)
			}
		})
	}
	writers.Wait()
	if n := won.Load(); n != 1 {
		t.Fatalf("%d writers won", n)
	}
}

// field case CAC-12: neither a conditional write nor an addition is sent again once it may have been done.
func TestConditionalWriteOrAdditionOfUnknownOutcomeIsNeverSentAgain(t *testing.T) {
	var b *testbroker.Broker
	var seen atomic.Int64
	b = logBacked(t, func(o *testbroker.Options) {
		o.OnCacheWritten = func(*testbroker.Stream, wire.Message) bool {
			seen.Add(1)
			b.Drop(transport.CloseShutdown)
			return true
		}
	})
	c := connect(t, b)
	ctx := within(t)
	for name, write := range map[string]func() error{
		"put if":      func() error { _, err := c.CachePutIf(ctx, "ns", "c", "k", nil, IfAbsent(), 0); return err },
		"delete if":   func() error { _, err := c.CacheDeleteIf(ctx, "ns", "c", "k", 0); return err },
		"counter add": func() error { _, err := c.CounterAdd(ctx, "ns", "c", "n", 1); return err },
	} {
		before := seen.Load()
		err := write()
		wantAs[*OutcomeUnknownError](t, err)
		wantIs(t, err, ErrOutcomeUnknown, ErrConnectionLost)
		if Retryable(err) {
			t.Errorf("%s: may be repeated: %v", name, err)
		}
		if n := seen.Load() - before; n != 1 {
			t.Errorf("%s: done %d times", name, n)
		}
	}
	if sum, found, err := c.CounterGet(ctx, "ns", "c", "n"); sum != 1 || !found || err != nil { // it was added, once
		t.Fatalf("%d, %v, %v", sum, found, err)
	}
}

func TestAnswerThatDoesNotSayWhatBecameOfAnAdditionLeavesItUnknown(t *testing.T) {
	answers := map[string]wire.Message{
		"no code":    &wire.ErrorAnswer{Failure: wire.Failure{Message: "went wrong"}},
		"no sum":     &wire.CounterValue{RequestID: 1},
		"other type": &wire.CacheOK{RequestID: 1},
	}
	for name, answer := range answers {
		b := logBacked(t, func(o *testbroker.Options) {
			o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
				_, ok := f.Message().(*wire.CounterAdd)
				if ok {
					s.Send(answer)
				}
				return ok
			}
		})
		_, err := connect(t, b).CounterAdd(within(t), "ns", "c", "n", 1)
		if Retryable(err) {
			t.Errorf("%s: may be repeated: %v", name, err)
		}
		wantIs(t, err, ErrOutcomeUnknown)
	}
}

func TestCountersAddAndTellOneThatWasNeverWritten(t *testing.T) {
	c := connect(t, logBacked(t))
	ctx := within(t)
	if sum, found, err := c.CounterGet(ctx, "ns", "wide", "n"); sum != 0 || found || err != nil {
		t.Fatalf("%d, %v, %v", sum, found, err)
	}
	var want int64
	for _, delta := range []int64{5, -7, 0, math.MaxInt64, 2} {
		want += delta
		if sum, err := c.CounterAdd(ctx, "ns", "wide", "n", delta); sum != want || err != nil {
			t.Fatalf("%d after %d, %v, want %d", sum, delta, err, want)
		}
	}
	_, err := c.CounterAdd(ctx, "ns", "wide", "n", math.MaxInt64)
	wantIs(t, err, ErrInvalidRequest)
	if sum, found, err := c.CounterGet(ctx, "ns", "wide", "n"); sum != want || !found || err != nil {
		t.Fatalf("%d, %v, %v", sum, found, err)
	}
	if _, found, err := c.CacheGet(ctx, "ns", "wide", "n"); found || err != nil { // a namespace of their own
		t.Fatalf("%v, %v", found, err)
	}
}

func TestCounterReadIsAskedAgainOnce(t *testing.T) {
	var b *testbroker.Broker
	var seen atomic.Int64
	b = logBacked(t, func(o *testbroker.Options) {
		o.OnFrame = func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if seen.Add(1) == 1 {
				b.Drop(transport.CloseShutdown)
				return true
			}
			return false
		}
	})
	if _, found, err := connect(t, b).CounterGet(within(t), "ns", "c", "n"); found || err != nil || seen.Load() != 2 {
		t.Fatalf("%v, %v after %d requests", found, err, seen.Load())
	}
}

func TestWhatABrokerDoesNotOfferOfCachesIsNotSent(t *testing.T) {
	var seen atomic.Int64
	b := logBacked(t, func(o *testbroker.Options) {
		o.Features = wire.FeatureErrorCodes | wire.FeatureCacheShards
		o.OnFrame = func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if _, question := f.Message().(*wire.CacheShards); !question {
				seen.Add(1)
			}
			return false
		}
	})
	c := connect(t, b)
	ctx := within(t)
	calls := map[string]func() error{
		"get version": func() error { _, err := c.CacheGetVersion(ctx, "ns", "c", "k"); return err },
		"put if":      func() error { _, err := c.CachePutIf(ctx, "ns", "c", "k", nil, IfAbsent(), 0); return err },
		"delete if":   func() error { _, err := c.CacheDeleteIf(ctx, "ns", "c", "k", 1); return err },
		"counter add": func() error { _, err := c.CounterAdd(ctx, "ns", "c", "n", 1); return err },
		"counter get": func() error { _, _, err := c.CounterGet(ctx, "ns", "c", "n"); return err },
		"watch":       func() error { _, err := c.WatchCache(ctx, "ns", "c", WatchOptions{}); return err },
	}
	for name, call := range calls {
		err := call()
		wantAs[*UnsupportedError](t, err)
		wantIs(t, err, ErrUnsupported)
		if n := seen.Load(); n != 0 {
			t.Fatalf("%s: the broker got %d requests", name, n)
		}
	}
}

func TestVersionThatIsMissingIsToldApartFromZero(t *testing.T) {
	b := logBacked(t, func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			m, ok := f.Message().(*wire.CacheGet)
			if ok {
				s.Send(&wire.CacheValue{Key: m.Key, RequestID: m.RequestID, Value: wire.Some([]byte("v"))})
			}
			return ok
		}
	})
	_, err := connect(t, b).CacheGetVersion(within(t), "ns", "c", "k")
	wantAs[*ProtocolError](t, err)
}

func TestConditionalWritesCheckTheirArguments(t *testing.T) {
	c := connect(t, logBacked(t))
	ctx := within(t)
	_, err := c.CachePutIf(ctx, "ns", "c", "k", nil, IfAbsent(), -1)
	if e := wantAs[*ArgumentError](t, err); e.Argument != "ttl" {
		t.Fatal(err)
	}
	_, err = c.CachePutIf(ctx, "ns", "c", "\xff", nil, IfVersion(3), 0)
	wantAs[*ArgumentError](t, err)
	_, err = c.CacheDeleteIf(ctx, "ns", "", "k", 1)
	wantAs[*ArgumentError](t, err)
	_, err = c.CacheGetVersion(ctx, "", "c", "k")
	wantAs[*ArgumentError](t, err)
	_, err = c.CounterAdd(ctx, "ns", "c", "\xff", 1)
	wantAs[*ArgumentError](t, err)
	_, _, err = c.CounterGet(ctx, "ns", "", "n")
	wantAs[*ArgumentError](t, err)
}
