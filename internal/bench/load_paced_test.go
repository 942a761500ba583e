package bench

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

func TestPacedLoadKeepsItsScheduleOverAllLanes(t *testing.T) {
	shape := Shape{Payload: 16, Batch: 1}
	var lanes [3]*fakeLane
	load := PacedLoad{Shape: shape, Rate: 1000}
	r := longEnough(t, true, func(timing Timing) (Result, error) {
		lanes = [3]*fakeLane{newFakeLane(shape), newFakeLane(shape), newFakeLane(shape)}
		var closed atomic.Int32
		r, err := load.Run(newContext(t), Timing{Duration: timing.Duration}, nil, publisher(&closed, true, lanes[0], lanes[1], lanes[2]))
		if n := closed.Load(); n != 1 {
			t.Errorf("closed %d times", n)
		}
		return r, err
	})
	for i := range r.Sent {
		b := lanes[i%3].sent[i/3]
		if off := b.Stamp - lanes[0].sent[0].Stamp - time.Duration(i)*time.Millisecond; b.First != i || !b.Acked || off < -2 || off > 2 {
			t.Fatalf("record %d: %+v, off its schedule by %v", i, b, off)
		}
	}
	if r.Latency == nil || r.Late == nil || *r.Lost != 0 || r.Latency.P50 < r.Late.P50/2 {
		t.Fatalf("got %+v", r)
	}
}

// stallingLane does not answer for a while.
type stallingLane struct {
	*fakeLane
	once  atomic.Bool
	stall time.Duration
}

func (l *stallingLane) Settle(ctx context.Context) error {
	if !l.once.Swap(true) {
		timer := time.NewTimer(l.stall)
		defer timer.Stop()
		<-timer.C
	}
	return l.fakeLane.Settle(ctx)
}

func TestServerThatStallsIsSeenByAllThatWasDue(t *testing.T) {
	shape := Shape{Payload: 16, Batch: 1}
	for stall := 100 * time.Millisecond; ; stall *= 2 { // longer where the machine is late with the beginning of what is measured
		lane := &stallingLane{fakeLane: newFakeLane(shape), stall: stall}
		var closed atomic.Int32
		load := PacedLoad{Shape: shape, Rate: 1000}
		r, err := load.Run(newContext(t), Timing{Duration: 2 * stall}, nil, publisher(&closed, true, lane))
		if err != nil {
			t.Fatal(err)
		}
		most := float64(stall.Microseconds())
		if r.Latency != nil && r.Latency.P90 >= most/4 && r.Latency.Max >= most*3/4 {
			return
		}
		if stall > patience/20 {
			t.Fatalf("about half of the requests became due in a stall of %v; the latencies are %+v", stall, r.Latency)
		}
	}
}

func TestRateThatIsNotReachedIsNoted(t *testing.T) {
	p := &paced{t: newTrial(t.Context(), Timing{}, nil), load: PacedLoad{Shape: Shape{Payload: 1, Batch: 1}, Rate: 100}, late: NewLatencies()}
	if r := p.result(stretch{seconds: 1, units: 100}); len(r.Notes) != 0 {
		t.Fatalf("all was answered: %q", r.Notes)
	}
	if r := p.result(stretch{seconds: 1, units: 90}); len(r.Notes) != 1 {
		t.Fatalf("a tenth was not answered: %q", r.Notes)
	}
}
