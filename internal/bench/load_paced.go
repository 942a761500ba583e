package bench

import (
	"context"
	"fmt"
)

// PacedLoad sends single batches at a fixed rate over all lanes in turn, each with an answer: an open loop. Its latency is the time from
// when a batch was due until its answer.
type PacedLoad struct {
	Shape
	Rate float64 // batches per second
}

// pacedWindow bounds the unanswered batches of a lane. A server that is so far behind makes the generator wait; what is due meanwhile is
// sent late and counts from when it was due.
const pacedWindow = 4096

// keepingUp is the part of what is due in a stretch that has to be answered in it. What is under way at its edges is less than the rest.
const keepingUp = 0.95

// Run measures the load on the publisher that open makes, and closes it.
func (l PacedLoad) Run(ctx context.Context, timing Timing, meter Meter, open func(ctx context.Context) (*Publisher, error)) (Result, error) {
	t := newTrial(ctx, timing, meter)
	defer t.fail(nil)
	p, err := open(t.ctx)
	if err != nil {
		return Result{}, err
	}
	w := make([]*window, len(p.Lanes))
	for i, lane := range p.Lanes {
		w[i] = newWindow(t, lane, pacedWindow)
	}
	pacing := &paced{t: t, load: l, windows: w, late: NewLatencies()}
	s, err := t.run(load{
		start: func() {
			for _, w := range w {
				t.work(w.settle)
			}
			t.work(pacing.send)
		},
		count: func() uint64 { return sum(w, func(w *window) uint64 { return w.answers.Load() }) },
	})
	if err := closePublisher(ctx, p, err); err != nil {
		return Result{}, err
	}
	return pacing.result(s), nil
}

type paced struct {
	t       *trial
	load    PacedLoad
	windows []*window
	late    *Latencies
	sent    uint64 // batches
}

// send starts what is due, until the trial is over.
func (p *paced) send(ctx context.Context) error {
	defer func() {
		for _, w := range p.windows {
			w.close()
		}
	}()
	for schedule := NewSchedule(p.t, p.load.Rate); !p.t.over(); p.sent++ {
		due, late, err := schedule.Next(ctx, nil)
		if err != nil {
			return err
		}
		w := p.windows[p.sent%uint64(len(p.windows))]
		if err := w.acquire(ctx); err != nil {
			return err
		}
		if p.t.counts(due) {
			p.late.Record(late)
		}
		w.begin(due)
		if err := w.lane.Send(ctx, Batch{First: p.sent * uint64(p.load.Batch), Stamp: due, Acked: true}); err != nil {
			return err
		}
		if err := w.lane.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *paced) result(s stretch) Result {
	r := rates(s, s.units*uint64(p.load.Batch), p.load.Payload)
	r.Sent = p.sent * uint64(p.load.Batch)
	r.Lost = ptr(uint64(0)) // every answer came
	all := NewLatencies()
	for _, w := range p.windows {
		all.Merge(w.latencies)
		r.refused(w.refused, w.first)
	}
	r.Latency, r.Late = all.Summary(), p.late.Summary()
	if got := float64(s.units) / s.seconds; got < keepingUp*p.load.Rate {
		r.Notes = append(r.Notes, fmt.Sprintf("only %.0f of %.0f batches that were due per second were answered: this is overload, and the latency grows with the length of the run", got, p.load.Rate))
	}
	return r
}
