package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// stopGrace is how much of its time Stop keeps, at most, for handlers that are told to end, and for giving back what they do not
// settle. It is a quarter of the time when that is shorter.
const stopGrace = 4 * time.Second

// lateBy is how long after its time whoever polls or settles may take to end. Who takes longer is in a call of OnError.
const lateBy = 50 * time.Millisecond

// ErrStopInHandler is what Stop returns in a handler of the same consumer: the stop has begun, and waits for that handler. Return
// from it; whoever has to know when the consumer has ended waits for Done, in another goroutine.
var ErrStopInHandler = errors.New("the consumer stops, and waits for the handler that stopped it")

// handlerOf is the key of a value that the contexts of a consumer's handlers have.
type handlerOf struct{ consumer *Consumer }

// Stop ends the consumer in order: it polls no more, gives back at once what no handler has begun, and waits for the handlers, for
// the answers to all settlements, and for OnError, which is told nothing any more once Stop has returned nil. Shortly before its time
// is up it ends the contexts of handlers that still run, then gives back what they have in hand; such a handler may still be running,
// and OnError be told of it, when somebody else gets the record. The time is up at the deadline of the first call's ctx, or after
// ConsumeOptions.StopTimeout when it has none; the end of that ctx cuts all but the giving back.
//
// It returns when the consumer has ended, else with the error of ctx when that ends, or with context.DeadlineExceeded when the time is
// up and ctx has no deadline. The error says how many records were not settled or given back; they are handed out again when their
// visibility lapses. Of a poll that waited for records some may be claimed too, if they came in that moment. Further calls wait
// likewise and, once the consumer has ended, return the same.
//
// It may be called from everywhere. With the context of a handler of this consumer, or one made from it, it returns
// ErrStopInHandler at once, and the consumer polls no more and has StopTimeout to end. From OnError, or from a handler with another
// context, it waits for its caller and so returns when its time is up; what is left to be done is done when the caller has returned.
func (k *Consumer) Stop(ctx context.Context) error {
	if ctx.Value(handlerOf{k}) != nil && !k.hasEnded() {
		k.beginStop(context.Background())
		return fmt.Errorf("%s: stop: %w", k.op, ErrStopInHandler)
	}
	return k.Close(ctx)
}

// Close is Stop, except that with the context of a handler it waits like with any other.
func (k *Consumer) Close(ctx context.Context) error {
	k.mu.Lock()
	k.heldUp = k.heldUp || k.telling > 0
	k.mu.Unlock()
	k.beginStop(ctx)
	late := k.late
	if _, bounded := ctx.Deadline(); bounded {
		late = nil
	}
	err := context.DeadlineExceeded
	select {
	case <-k.done:
	case <-late:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if k.hasEnded() {
		return k.result
	}
	return k.unsettled(err)
}

func (k *Consumer) hasEnded() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// beginStop lets the consumer end, on a goroutine of its own: whoever wants that may be one for whom it waits.
func (k *Consumer) beginStop(ctx context.Context) {
	k.stopped.Do(func() {
		k.refuseMore() // whoever stops from a handler may rely on it: no poll begins that may claim the record that it gives back
		end := func() {
			k.result = k.shutDown(ctx)
			close(k.done)
		}
		if !k.client.life.spawn(end) { // the client is closed, and nothing of the consumer can be waiting
			go end()
		}
	})
}

func (k *Consumer) shutDown(ctx context.Context) error {
	defer k.client.consumers.remove(k)
	left := k.opts.StopTimeout
	if at, ok := ctx.Deadline(); ok {
		left = max(0, time.Until(at))
	}
	grace := min(stopGrace, left/4)
	end := time.Now().Add(left)
	settled := k.until(k.settled, ctx.Done(), end.Add(-grace))
	k.endHandling(fmt.Errorf("%s: the consumer is %w", k.op, ErrClosed))
	settled = settled || k.until(k.settled, ctx.Done(), end.Add(-grace/2))
	if !settled {
		k.giveBack()
		settled = k.until(k.settled, nil, time.Now().Add(min(grace/2, time.Until(end))))
	}
	timeUp := time.AfterFunc(time.Until(end)+lateBy, func() { close(k.late) })
	defer timeUp.Stop()
	if !settled && k.wasHeldUp() && k.until(k.told, nil, time.Time{}) {
		settled = k.until(k.settled, nil, time.Now().Add(stopGrace))
	}
	k.endSettling()
	k.work.Wait()
	k.awaitReports()
	if settled || k.inHand() == 0 {
		return nil
	}
	cause := ctx.Err()
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	return k.unsettled(cause)
}

// unsettled is the error of a stop whose time was up.
func (k *Consumer) unsettled(cause error) error {
	if n := k.inHand(); n > 0 {
		return fmt.Errorf("%s: stop: %d records were not settled, they are handed out again when their visibility lapses: %w", k.op, n, cause)
	}
	return fmt.Errorf("%s: stop: every record is settled, but a poll or a call of OnError goes on: %w", k.op, cause)
}

// inHand is how many records are claimed and not settled.
func (k *Consumer) inHand() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
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

// settled reports whether nothing is in hand and no poll can bring more. The lock is held.
func (k *Consumer) settled() bool {
	for _, s := range k.shards {
		if s.used > 0 {
			return false
		}
	}
	return true
}

// wasHeldUp reports whether Stop was called during a call of OnError, maybe from there: then settlements may have waited for it behind
// that call until the time was up.
func (k *Consumer) wasHeldUp() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heldUp
}

// told reports whether nobody who polls or settles is in a call of OnError. The lock is held.
func (k *Consumer) told() bool { return k.telling == 0 }

// awaitReports waits until OnError has returned from all that handlers came to, also when the client closes meanwhile.
func (k *Consumer) awaitReports() {
	for {
		k.mu.Lock()
		over := k.reporting == 0
		freed := k.freed.wait()
		k.mu.Unlock()
		if over {
			return
		}
		<-freed
	}
}

// until waits for something that is looked at under the lock whenever freed is rung; false when the time is up before, which it never
// is with a zero end, or when over is done or the client closes: nothing can be settled then.
func (k *Consumer) until(is func() bool, over <-chan struct{}, end time.Time) bool {
	var timeUp <-chan time.Time
	if !end.IsZero() {
		timer := time.NewTimer(time.Until(end))
		defer timer.Stop()
		timeUp = timer.C
	}
	for {
		k.mu.Lock()
		done := is()
		freed := k.freed.wait()
		k.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-freed:
		case <-timeUp:
			return false
		case <-over:
			return false
		case <-k.client.closing.Done():
			return false
		}
	}
}
