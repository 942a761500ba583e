package client

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// stopGrace is how much of its time Stop keeps, at most, for handlers that are told to end, and for giving back what they do not
// settle. It is a quarter of the time when that is shorter.
const stopGrace = 4 * time.Second

// Stop ends the consumer in order: it polls no more, gives back at once what no handler has begun, and waits for the handlers and
// for the answers to all settlements. Shortly before its time is up it ends the contexts of handlers that still run, then gives back
// what they have in hand; such a handler may still be running when somebody else gets the record. The time is up at the deadline of
// ctx, or after ConsumeOptions.StopTimeout when it has none.
//
// The error says how many records could not be settled or given back; they are handed out again when their visibility lapses. Of a
// poll that waited for records some may be claimed too, if they came in that moment. Further calls return the same, and wait as long as their ctx allows.
func (k *Consumer) Stop(ctx context.Context) error {
	first := false
	k.stopped.Do(func() { first = true })
	if first {
		k.result = k.shutDown(ctx)
		close(k.done)
	}
	select {
	case <-k.done:
		return k.result
	case <-ctx.Done():
		return fmt.Errorf("%s: wait until it has stopped: %w", k.op, ctx.Err())
	}
}

// Close is Stop.
func (k *Consumer) Close(ctx context.Context) error { return k.Stop(ctx) }

func (k *Consumer) shutDown(ctx context.Context) error {
	defer k.client.consumers.remove(k)
	left := k.opts.StopTimeout
	if at, ok := ctx.Deadline(); ok {
		left = max(0, time.Until(at))
	}
	grace := min(stopGrace, left/4)
	end := time.Now().Add(left)
	k.refuseMore()
	settled := k.untilSettled(ctx, end.Add(-grace))
	k.endHandling(fmt.Errorf("%s: the consumer is %w", k.op, ErrClosed))
	if !settled {
		if settled = k.untilSettled(ctx, end.Add(-grace/2)); !settled {
			k.giveBack()
			settled = k.untilSettled(ctx, end)
		}
	}
	k.endSettling()
	k.work.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if settled || len(k.all) == 0 {
		return nil
	}
	cause := ctx.Err()
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	return fmt.Errorf("%s: stop: %d records were not settled, they are handed out again when their visibility lapses: %w", k.op, len(k.all), cause)
}

// refuseMore ends polling, and gives back what no handler has begun.
func (k *Consumer) refuseMore() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopping = true
	k.endPolling()
	for _, d := range k.ready.drain() {
		d.settleUnlessGone()
	}
}

// giveBack gives back what handlers still have. What they come to does not count any more.
func (k *Consumer) giveBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range slices.Clone(k.all) {
		if d.state == working {
			d.settleUnlessGone()
		}
	}
}

// settleUnlessGone gives a record back that is still ours. The lock is held.
func (d *delivery) settleUnlessGone() {
	if d.gone == nil {
		d.settle(giveBackIt, 0)
		return
	}
	d.shard.consumer.stats.Lapsed++
	d.state = settling
	d.drop()
}

// untilSettled waits until nothing is in hand and no poll can bring more; false when the time is up before.
func (k *Consumer) untilSettled(ctx context.Context, end time.Time) bool {
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for {
		k.mu.Lock()
		left := 0
		for _, s := range k.shards {
			left += s.used
		}
		freed := k.freed.wait()
		k.mu.Unlock()
		if left == 0 {
			return true
		}
		select {
		case <-freed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		case <-k.client.closing.Done(): // nothing can be settled any more
			return false
		}
	}
}
