package bench

import (
	"context"
	"errors"
	"time"
)

const (
	// AheadBytes and AheadBatches are how far a publisher of a flow may be ahead of its slowest subscriber: half of what a broker keeps
	// for a slow subscriber by default (8 MiB and 512 batches), so that nothing needs to be dropped, and more than fits in flight
	// between the two.
	AheadBytes   = 4 << 20
	AheadBatches = 256

	// stallTime is how long a publisher waits for a subscriber that makes no progress: longer than a busy machine stops a process.
	stallTime = 15 * time.Second
)

// FlowLoad publishes on one stream and receives on all subscribers. Without a rate it goes as fast as the slowest subscriber.
type FlowLoad struct {
	Shape
	Acked    bool    // every batch is answered
	InFlight int     // batches that may be unanswered; with Acked alone
	Rate     float64 // batches per second, an open loop; 0: a closed one
	Stamps   bool    // report the time from publisher to subscriber
	Ahead    int     // batches that the publisher may be ahead; 0: AheadBatches. AheadBytes bounds them too

	stall time.Duration // 0: stallTime
}

// FlowSides opens both ends.
type FlowSides struct {
	Subscribe func(ctx context.Context) ([]Subscriber, error) // called first
	Publish   func(ctx context.Context) (*Publisher, error)   // one lane
}

// ahead is how many records may be under way.
func (l FlowLoad) ahead() uint64 {
	batches := AheadBatches
	if l.Ahead > 0 {
		batches = l.Ahead
	}
	return uint64(l.Batch * max(1, min(batches, AheadBytes/max(1, l.Bytes()))))
}

func (l FlowLoad) patience() time.Duration {
	if l.stall > 0 {
		return l.stall
	}
	return stallTime
}

// Run measures the load and ends both sides.
func (l FlowLoad) Run(ctx context.Context, timing Timing, meter Meter, sides FlowSides) (Result, error) {
	t := newTrial(ctx, timing, meter)
	defer t.fail(nil)
	subs, err := sides.Subscribe(t.ctx)
	if err != nil {
		return Result{}, err
	}
	p, err := sides.Publish(t.ctx)
	if err != nil {
		return Result{}, errors.Join(err, closeAll(ctx, subs))
	}
	f := newFlow(t, l, p.Lanes[0], subs)
	s, err := t.run(load{start: f.start, count: f.delivered, finish: f.finish})
	err = closePublisher(ctx, p, err)
	if closed := closeAll(ctx, subs); err == nil {
		err = closed
	}
	if err != nil {
		return Result{}, err
	}
	return f.result(s), nil
}

func closeAll(ctx context.Context, subs []Subscriber) error {
	var err error
	for _, s := range subs {
		err = errors.Join(err, s.Close(ctx))
	}
	return err
}
