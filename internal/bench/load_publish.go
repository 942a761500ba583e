package bench

import (
	"context"
	"fmt"
	"math"
)

// PublishLoad publishes as fast as answers and flow control allow: a closed loop.
type PublishLoad struct {
	Shape
	// Acked asks for an answer to every batch; otherwise one batch in Unit is answered, and its answer is how the load knows how far
	// the server has got.
	Acked bool
	// InFlight is how many batches may be unanswered, all lanes together; it counts for Acked alone and is rounded up to a
	// multiple of the lanes.
	InFlight int
}

// progressBytes is how many payload bytes of unacknowledged batches there are to one that is answered: often enough that the edges of
// a stretch do not matter, so seldom that the answers cost nothing.
const progressBytes = 256 << 10

// Unit is how many batches there are to an answer: 1 with Acked.
func (l PublishLoad) Unit() int {
	if l.Acked {
		return 1
	}
	return max(1, progressBytes/max(1, l.Bytes()))
}

// unanswered bounds the answers that a lane waits for in an unacknowledged load; flow control is reached long before.
const unanswered = 1024

// Run measures the load on the publisher that open makes, and closes it.
func (l PublishLoad) Run(ctx context.Context, timing Timing, meter Meter, open func(ctx context.Context) (*Publisher, error)) (Result, error) {
	t := newTrial(ctx, timing, meter)
	defer t.fail(nil)
	p, err := open(t.ctx)
	if err != nil {
		return Result{}, err
	}
	lanes := make([]*publishing, len(p.Lanes))
	for i, lane := range p.Lanes {
		lanes[i] = newPublishing(t, l, lane, len(p.Lanes))
	}
	s, err := t.run(load{
		start: func() {
			for _, p := range lanes {
				t.work(p.send)
				t.work(p.settle)
			}
		},
		count: func() uint64 { return sum(lanes, func(p *publishing) uint64 { return p.settled() }) },
	})
	if err := closePublisher(ctx, p, err); err != nil {
		return Result{}, err
	}
	return l.result(s, lanes, l.Acked || p.Vouches), nil
}

// result puts together what the lanes have counted. certain says that answers tell all that got lost.
func (l PublishLoad) result(s stretch, lanes []*publishing, certain bool) Result {
	r := rates(s, s.units*uint64(l.Batch), l.Payload)
	latencies := NewLatencies()
	for _, p := range lanes {
		latencies.Merge(p.latencies)
		r.refused(p.refused, p.first)
		r.Sent += p.sent * uint64(l.Batch)
	}
	if l.Acked {
		r.Latency = latencies.Summary()
	}
	r.published(s, certain)
	return r
}

// publishing is one lane of the load.
type publishing struct {
	*window
	load PublishLoad
	sent uint64 // batches; of the sender
}

func newPublishing(t *trial, l PublishLoad, lane Lane, lanes int) *publishing {
	size := unanswered
	if l.Acked {
		size = (l.InFlight + lanes - 1) / lanes
	}
	return &publishing{window: newWindow(t, lane, size), load: l}
}

// settled is how many batches the server has answered for.
func (p *publishing) settled() uint64 { return p.answers.Load() * uint64(p.load.Unit()) }

// send publishes until the trial is over, and up to the end of a unit.
func (p *publishing) send(ctx context.Context) error {
	defer p.close()
	unit := uint64(p.load.Unit())
	for ctx.Err() == nil && (!p.t.over() || p.sent%unit != 0) {
		b := Batch{First: p.sent * uint64(p.load.Batch), Acked: p.sent%unit == unit-1}
		if b.Acked {
			if err := p.acquire(ctx); err != nil {
				return err
			}
			p.begin(p.t.now())
		}
		if err := p.lane.Send(ctx, b); err != nil {
			return err
		}
		p.sent++
	}
	return p.lane.Flush(ctx)
}

// closePublisher ends the connections, and returns the error of the trial if there is one.
func closePublisher(ctx context.Context, p *Publisher, failed error) error {
	if err := p.Close(ctx); failed == nil && err != nil {
		return fmt.Errorf("end the publisher: %w", err)
	}
	return failed
}

func sum[T any](all []T, of func(T) uint64) uint64 {
	var n uint64
	for _, v := range all {
		n += of(v)
	}
	return n
}

// lowest is the smallest number of all.
func lowest[T any](all []T, of func(T) uint64) uint64 {
	n := uint64(math.MaxUint64)
	for _, v := range all {
		n = min(n, of(v))
	}
	return n
}
