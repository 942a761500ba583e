package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// flow is one run of the load.
type flow struct {
	t    *trial
	load FlowLoad
	lane Lane
	subs []Subscriber
	got  []*Received

	published chan struct{}   // closed when nothing more will be sent
	sent      atomic.Uint64   // records
	waiting   atomic.Bool     // somebody looks at progress
	progress  chan struct{}   // rung by subscribers while somebody is waiting
	reading   context.Context // of the subscribers
	stop      context.CancelFunc
	readers   sync.WaitGroup

	window *window // with Acked
	late   *Latencies
}

func newFlow(t *trial, l FlowLoad, lane Lane, subs []Subscriber) *flow {
	f := &flow{
		t: t, load: l, lane: lane, subs: subs, published: make(chan struct{}), progress: make(chan struct{}, 1),
		window: newWindow(t, lane, max(1, l.InFlight)), late: NewLatencies(),
	}
	f.reading, f.stop = context.WithCancel(t.ctx)
	for range subs {
		f.got = append(f.got, newReceived(t, l.Shape, f.sent.Load, f.moved))
	}
	return f
}

func (f *flow) start() {
	for i, s := range f.subs {
		f.readers.Go(func() {
			if err := s.Receive(f.reading, f.got[i]); err != nil {
				f.t.fail(err)
			}
		})
	}
	f.t.work(f.publish)
	f.t.work(f.window.settle)
}

// moved is what a subscriber calls when it has got something.
func (f *flow) moved() {
	if f.waiting.Load() {
		select {
		case f.progress <- struct{}{}:
		default:
		}
	}
}

func (f *flow) delivered() uint64 {
	return sum(f.got, func(r *Received) uint64 { return r.records.Load() })
}

// behind is the first record that the slowest subscriber does not have.
func (f *flow) behind() uint64 {
	return lowest(f.got, func(r *Received) uint64 { return r.next.Load() })
}

// publish sends until the trial is over.
func (f *flow) publish(ctx context.Context) error {
	defer close(f.published)
	defer f.window.close()
	var schedule *Schedule
	if f.load.Rate > 0 {
		schedule = NewSchedule(f.t, f.load.Rate)
	}
	for !f.t.over() {
		if err := f.room(ctx); err != nil {
			return err
		}
		b := Batch{First: f.sent.Load(), Stamp: f.t.now(), Acked: f.load.Acked}
		if schedule != nil {
			due, late, err := schedule.Next(ctx, func() error { return f.lane.Flush(ctx) })
			if err != nil {
				return err
			}
			if b.Stamp = due; f.t.counts(due) {
				f.late.Record(late)
			}
		}
		if f.load.Acked {
			f.window.begin(b.Stamp)
		}
		f.sent.Add(uint64(f.load.Batch)) // first: it may arrive before Send returns
		if err := f.lane.Send(ctx, b); err != nil {
			return err
		}
	}
	return f.lane.Flush(ctx)
}

// room waits until another batch may be under way.
func (f *flow) room(ctx context.Context) error {
	if f.load.Acked {
		if err := f.window.acquire(ctx); err != nil {
			return err
		}
	}
	if f.sent.Load()-f.behind() < f.load.ahead() {
		return nil
	}
	if err := f.lane.Flush(ctx); err != nil {
		return err
	}
	if !f.await(ctx, func() bool { return f.sent.Load()-f.behind() < f.load.ahead() }) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("nothing arrived for %v: %d records that were published are lost", f.load.patience(), f.sent.Load()-f.behind())
	}
	return nil
}

// await waits until ready, for as long as subscribers make progress. One goroutine at a time calls it.
func (f *flow) await(ctx context.Context, ready func() bool) bool {
	f.waiting.Store(true)
	defer f.waiting.Store(false)
	patience := f.load.patience()
	stalled := time.NewTimer(patience)
	defer stalled.Stop()
	for !ready() {
		select {
		case <-f.progress:
			stalled.Reset(patience)
		case <-stalled.C:
			return ready()
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// finish waits until everything has arrived, or nothing more does, and lets the subscribers go.
func (f *flow) finish() error {
	defer func() {
		f.stop()
		f.readers.Wait()
		for _, got := range f.got {
			got.publish() // what came of a batch that did not come whole
		}
	}()
	select {
	case <-f.published:
	case <-f.t.ctx.Done():
		return nil // stop has the cause
	}
	f.await(f.t.ctx, func() bool { return f.behind() >= f.sent.Load() })
	return nil
}

func (f *flow) result(s stretch) Result {
	r := rates(s, s.units, f.load.Payload)
	r.Sent = f.sent.Load()
	r.refused(f.window.refused, f.window.first)
	all := NewLatencies()
	lost := uint64(0)
	for _, got := range f.got {
		all.Merge(got.latencies)
		lost += got.lost.Load() + r.Sent - got.next.Load()
		r.Repeated += got.repeated.Load()
	}
	r.Lost = &lost
	if f.load.Stamps {
		r.Latency = all.Summary()
	}
	if f.load.Rate > 0 {
		r.Late = f.late.Summary()
	}
	return r
}
