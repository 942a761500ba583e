package bench

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAckedLoadKeepsItsWindowAndLosesNothing(t *testing.T) {
	shape := Shape{Payload: 16, Batch: 4}
	var a, b *fakeLane
	load := PublishLoad{Shape: shape, Acked: true, InFlight: 6}
	r := longEnough(t, true, func(timing Timing) (Result, error) {
		a, b = newFakeLane(shape), newFakeLane(shape)
		var closed atomic.Int32
		r, err := load.Run(newContext(t), timing, nil, publisher(&closed, false, a, b))
		if n := closed.Load(); n != 1 {
			t.Errorf("the publisher was closed %d times", n)
		}
		return r, err
	})
	for _, l := range []*fakeLane{a, b} {
		if l.most > 3 || l.open != 0 {
			t.Errorf("a lane had %d batches unanswered, of 3 that it may have, and %d in the end", l.most, l.open)
		}
	}
	sent := uint64(len(a.sent)+len(b.sent)) * 4
	if r.Sent != sent || r.Records == 0 || r.Records > sent || r.Refused != 0 || r.Lost == nil || *r.Lost != 0 {
		t.Fatalf("%d records were sent; the result says %+v", sent, r)
	}
	if r.Latency == nil || r.Latency.Count == 0 || r.Latency.Count > r.Records/4+6 {
		t.Fatalf("latencies of %d batches: %+v", r.Records/4, r.Latency)
	}
}

func TestRefusalsAreCountedAndNotAsRecords(t *testing.T) {
	shape := Shape{Payload: 8, Batch: 1}
	var lane *fakeLane
	r := longEnough(t, false, func(timing Timing) (Result, error) {
		lane = newFakeLane(shape)
		lane.refuse = func(b Batch) bool { return b.First%4 == 3 }
		var closed atomic.Int32
		r, err := PublishLoad{Shape: shape, Acked: true, InFlight: 8}.Run(newContext(t), timing, nil, publisher(&closed, false, lane))
		if r.Refused == 0 {
			r.Records = 0 // nothing that proves something
		}
		return r, err
	})
	refused := uint64(len(lane.sent) / 4)
	if r.Refused != refused || r.FirstRefusal != "overloaded: not now" || r.Records > r.Sent-refused {
		t.Fatalf("%d of %d were refused; the result says %+v", refused, len(lane.sent), r)
	}
}

func TestUnackedLoadIsAnsweredOncePerUnitAndSaysWhatWasLost(t *testing.T) {
	shape := Shape{Payload: 256, Batch: 64}
	load := PublishLoad{Shape: shape}
	if load.Unit() != 16 {
		t.Fatalf("16 KiB batches have an answer per %d, want 16", load.Unit())
	}
	lane := newFakeLane(shape)
	var closed atomic.Int32
	lost := uint64(640)
	meter := &fakeMeter{taken: func() uint64 {
		lane.mu.Lock()
		defer lane.mu.Unlock()
		if len(lane.sent) == 0 {
			return 0
		}
		return uint64(len(lane.sent))*64 - lost
	}}
	r, err := load.Run(newContext(t), brief(), meter, publisher(&closed, false, lane))
	if err != nil {
		t.Fatal(err)
	}
	if len(lane.sent)%16 != 0 {
		t.Fatalf("%d batches were sent: the last unit is not complete", len(lane.sent))
	}
	for i, b := range lane.sent {
		if b.Acked != (i%16 == 15) || b.First != uint64(i)*64 {
			t.Fatalf("batch %d: %+v", i, b)
		}
	}
	if r.Lost == nil || *r.Lost != lost || r.Latency != nil || r.ServerCPU == nil {
		t.Fatalf("got %+v", r)
	}
}

func TestUnackedLoadWithoutMetricsDoesNotClaimThatNothingWasLost(t *testing.T) {
	shape := Shape{Payload: 256, Batch: 64}
	var closed atomic.Int32
	r, err := PublishLoad{Shape: shape}.Run(newContext(t), brief(), nil, publisher(&closed, false, newFakeLane(shape)))
	if err != nil || r.Lost != nil || r.ServerCPU != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	r, err = PublishLoad{Shape: shape}.Run(newContext(t), brief(), nil, publisher(&closed, true, newFakeLane(shape)))
	if err != nil || r.Lost == nil || *r.Lost != 0 {
		t.Fatalf("answers that vouch for all before them: %+v, %v", r, err)
	}
}

func TestOtherPublishersAreNoticed(t *testing.T) {
	shape := Shape{Payload: 256, Batch: 64}
	var closed, asked atomic.Int32
	meter := &fakeMeter{taken: func() uint64 { return uint64(asked.Add(1)) * 1e12 }}
	r, err := PublishLoad{Shape: shape}.Run(newContext(t), brief(), meter, publisher(&closed, false, newFakeLane(shape)))
	if err != nil || r.Lost != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "somebody else publishes") {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestFailureOfALaneEndsTheTrialAndClosesThePublisher(t *testing.T) {
	shape := Shape{Payload: 8, Batch: 1}
	healthy, broken := newFakeLane(shape), newFakeLane(shape)
	broken.fails = errors.New("connection lost")
	var closed atomic.Int32
	long := Timing{WarmUp: patience, Duration: patience}
	_, err := PublishLoad{Shape: shape, Acked: true, InFlight: 4}.Run(newContext(t), long, nil, publisher(&closed, false, healthy, broken))
	if !errors.Is(err, broken.fails) || closed.Load() != 1 {
		t.Fatalf("got %v, closed %d times", err, closed.Load())
	}
}
