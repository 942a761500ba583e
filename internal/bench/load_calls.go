package bench

import (
	"context"
	"sync/atomic"
)

// Caller makes one request at a time and waits for its answer. It belongs to one goroutine.
type Caller interface {
	// Call makes the n-th request of this caller. A *RefusedError is counted; any other error ends the trial.
	Call(ctx context.Context, n uint64) error
}

// Callers are those of one trial.
type Callers struct {
	All   []Caller
	Close func(ctx context.Context) error
}

// CallLoad lets every caller call again as soon as it was answered: a closed loop with as many requests under way as callers.
type CallLoad struct {
	Payload int // bytes of a record, for the report
	Records int // of a request; 0 is one
}

// Run measures the load on the callers that open makes, and closes them.
func (l CallLoad) Run(ctx context.Context, timing Timing, meter Meter, open func(ctx context.Context) (*Callers, error)) (Result, error) {
	t := newTrial(ctx, timing, meter)
	defer t.fail(nil)
	callers, err := open(t.ctx)
	if err != nil {
		return Result{}, err
	}
	all := make([]*calling, len(callers.All))
	for i, c := range callers.All {
		all[i] = &calling{t: t, caller: c, latencies: NewLatencies()}
	}
	s, err := t.run(load{
		start: func() {
			for _, c := range all {
				t.work(c.run)
			}
		},
		count: func() uint64 { return sum(all, func(c *calling) uint64 { return c.answered.Load() }) },
	})
	if closed := callers.Close(ctx); err == nil {
		err = closed
	}
	if err != nil {
		return Result{}, err
	}
	records := uint64(max(1, l.Records))
	r := rates(s, s.units*records, l.Payload)
	r.Lost = ptr(uint64(0)) // every answer came
	latencies := NewLatencies()
	for _, c := range all {
		latencies.Merge(c.latencies)
		r.refused(c.refused, c.first)
		r.Sent += c.n * records
	}
	r.Latency = latencies.Summary()
	return r, nil
}

// calling is one caller at work.
type calling struct {
	t      *trial
	caller Caller

	n         uint64 // calls
	answered  atomic.Uint64
	latencies *Latencies
	refused   uint64
	first     error
}

func (c *calling) run(ctx context.Context) error {
	for ; !c.t.over(); c.n++ {
		begun := c.t.now()
		err := c.caller.Call(ctx, c.n)
		took := c.t.now() - begun
		if no, refused := refusal(err); refused {
			if c.refused++; c.first == nil {
				c.first = no.Err
			}
			continue
		}
		if err != nil {
			return err
		}
		c.answered.Add(1)
		if c.t.counts(begun) {
			c.latencies.Record(took)
		}
	}
	return nil
}
