package bench

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// flowSides connects a fake lane with fake subscribers. spoil may change what a subscriber gets of a batch.
func flowSides(l FlowLoad, n int, spoil func(sub int, b Batch, payloads [][]byte) [][]byte) (FlowSides, *fakeLane, []*fakeSubscriber) {
	lane := newFakeLane(l.Shape)
	subs := make([]*fakeSubscriber, n)
	for i := range subs {
		subs[i] = &fakeSubscriber{batches: make(chan [][]byte, 1<<16)}
	}
	lane.deliver = func(b Batch, payloads [][]byte) {
		for i, s := range subs {
			if got := spoil(i, b, payloads); len(got) > 0 {
				s.batches <- got
			}
		}
	}
	var closed atomic.Int32
	return FlowSides{
		Subscribe: func(context.Context) ([]Subscriber, error) {
			var all []Subscriber
			for _, s := range subs {
				all = append(all, s)
			}
			return all, nil
		},
		Publish: publisher(&closed, false, lane),
	}, lane, subs
}

func intact(_ int, _ Batch, payloads [][]byte) [][]byte { return payloads }

func TestFlowCountsWhatAllSubscribersGot(t *testing.T) {
	l := FlowLoad{Shape: Shape{Payload: 32, Batch: 8}, Acked: true, InFlight: 4, Stamps: true}
	var sides FlowSides
	var lane *fakeLane
	var subs []*fakeSubscriber
	r := longEnough(t, true, func(timing Timing) (Result, error) {
		sides, lane, subs = flowSides(l, 3, intact)
		return l.Run(newContext(t), timing, nil, sides)
	})
	sent := uint64(len(lane.sent) * 8)
	if r.Sent != sent || r.Records == 0 || r.Records > 3*sent || *r.Lost != 0 || r.Repeated != 0 || r.Latency == nil {
		t.Fatalf("%d records were sent to 3 subscribers; the result says %+v", sent, r)
	}
	if lane.most > 4 {
		t.Fatalf("%d batches were unanswered, of 4 that may be", lane.most)
	}
	for i, s := range subs {
		if !s.closed {
			t.Errorf("subscriber %d was not closed", i)
		}
	}
}

func TestFlowCountsEachLostAndEachRepeatedRecord(t *testing.T) {
	l := FlowLoad{Shape: Shape{Payload: 16, Batch: 4}, stall: 10 * time.Second}
	var lost, repeated uint64
	var mu sync.Mutex
	const spoiled = 200
	spoil := func(sub int, b Batch, payloads [][]byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		switch batch := b.First / 4; {
		case batch > spoiled: // the last ones come, or the end would be waited for
		case sub == 0 && batch%10 == 3:
			lost += 4
			return nil
		case sub == 1 && batch%10 == 5:
			lost++
			return payloads[:3]
		case sub == 1 && batch%10 == 7:
			repeated++
			return append(payloads[:4:4], payloads[0])
		}
		return payloads
	}
	r := longEnough(t, false, func(timing Timing) (Result, error) {
		lost, repeated = 0, 0
		sides, lane, _ := flowSides(l, 2, spoil)
		r, err := l.Run(newContext(t), timing, nil, sides)
		if len(lane.sent) <= spoiled+1 { // what came last may be lost
			return Result{}, nil
		}
		return r, err
	})
	if *r.Lost != lost || r.Repeated != repeated {
		t.Fatalf("%d were lost and %d repeated; the result says %d and %d", lost, repeated, *r.Lost, r.Repeated)
	}
}

func TestPublisherStaysCloseToTheSlowestSubscriber(t *testing.T) {
	if got := (FlowLoad{Shape: Shape{Payload: 16, Batch: 1}}).ahead(); got != AheadBatches {
		t.Fatalf("small batches: %d records ahead, want %d", got, AheadBatches)
	}
	if got := (FlowLoad{Shape: Shape{Payload: 16 << 20, Batch: 2}}).ahead(); got != 2 {
		t.Fatalf("a batch over the bound: %d records ahead, want its 2", got)
	}
	l := FlowLoad{Shape: Shape{Payload: 512 << 10, Batch: 2}}
	const batches = 4 // of 1 MiB
	if got := l.ahead(); got != 2*batches {
		t.Fatalf("%d records ahead, want %d", got, 2*batches)
	}
	// The subscriber takes nothing until the publisher is as far ahead as it may be, or until the end of a stretch that was too short for that.
	for timing := (Timing{Duration: 50 * time.Millisecond}); ; timing.Duration *= 4 {
		held := make(chan struct{})
		release := sync.OnceFunc(func() { close(held) })
		sides, lane, subs := flowSides(l, 1, intact)
		deliver := lane.deliver
		sent := 0
		lane.deliver = func(b Batch, payloads [][]byte) {
			deliver(b, payloads)
			if sent++; sent == batches {
				release()
			}
		}
		subs[0].gate = held
		late := time.AfterFunc(2*timing.Duration, release)
		r, err := l.Run(newContext(t), timing, nil, sides)
		late.Stop()
		if err == nil && *r.Lost == 0 && subs[0].waiting < batches && timing.Duration < patience/10 {
			continue
		}
		if err != nil || *r.Lost != 0 || subs[0].waiting != batches {
			t.Fatalf("%d batches waited for the subscriber, want %d; got %+v, %v", subs[0].waiting, batches, r, err)
		}
		return
	}
}

func TestFlowWithoutProgressIsAnErrorAndNotARate(t *testing.T) {
	l := FlowLoad{Shape: Shape{Payload: 16, Batch: 1}, stall: 100 * time.Millisecond}
	sides, _, _ := flowSides(l, 1, func(_ int, b Batch, payloads [][]byte) [][]byte {
		if b.First >= 1000 {
			return nil
		}
		return payloads
	})
	_, err := l.Run(newContext(t), Timing{Duration: patience}, nil, sides)
	if err == nil || !strings.HasPrefix(err.Error(), "nothing arrived for 100ms: ") || !strings.HasSuffix(err.Error(), " records that were published are lost") {
		t.Fatalf("got %v", err)
	}
}

func TestRecordsOfSomebodyElseEndTheFlow(t *testing.T) {
	l := FlowLoad{Shape: Shape{Payload: 16, Batch: 1}}
	sides, _, _ := flowSides(l, 1, func(_ int, b Batch, payloads [][]byte) [][]byte {
		if b.First == 100 {
			return [][]byte{[]byte("not one of these")}
		}
		return payloads
	})
	if _, err := l.Run(newContext(t), Timing{Duration: patience}, nil, sides); !errors.Is(err, errForeign) {
		t.Fatalf("got %v", err)
	}
}

func TestPacedFlowKeepsItsRateAndCountsFromWhenABatchWasDue(t *testing.T) {
	l := FlowLoad{Shape: Shape{Payload: 16, Batch: 2}, Rate: 500, Stamps: true}
	var lane *fakeLane
	r := longEnough(t, true, func(timing Timing) (Result, error) {
		sides, fake, _ := flowSides(l, 1, intact)
		lane = fake
		return l.Run(newContext(t), Timing{Duration: 2 * timing.Duration}, nil, sides)
	})
	for i, b := range lane.sent[1:] {
		if gap := b.Stamp - lane.sent[i].Stamp; gap < 2*time.Millisecond-2 || gap > 2*time.Millisecond+2 {
			t.Fatalf("batch %d was due %v after the one before, want 2 ms", i+1, gap)
		}
	}
	if r.Late == nil || r.Latency == nil || r.Latency.P50 < r.Late.P50/2 {
		t.Fatalf("latency %+v does not contain the lateness %+v", r.Latency, r.Late)
	}
}

func TestPayloadsWithoutRoomForNumbersAreCounted(t *testing.T) {
	l := FlowLoad{Shape: Shape{Payload: 4, Batch: 3}, Stamps: true}
	sides, lane, _ := flowSides(l, 1, intact)
	r, err := l.Run(newContext(t), brief(), nil, sides)
	if err != nil || r.Sent != uint64(3*len(lane.sent)) || *r.Lost != 0 || r.Latency != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
}
