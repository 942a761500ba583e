package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

var (
	errPumpPanicked = errors.New("the pump panicked")
	// errUnheard ends a subscription whose client cannot hear that it has it.
	errUnheard = errors.New("the stream it was asked for on is gone")
)

// delivery is the loop of one subscription: read up to the readable end, write, else wait for more. Catching up and being
// live are the same code. It runs in one goroutine, which is the only one that writes to the event stream.
type delivery struct {
	session *session
	id      uint64
	request subscribeRequest

	stream  SendStream
	cursor  storage.Cursor
	next    id.Offset // where the next page begins
	gate    Gate
	batches []*batch.Batch
	shape   shape

	skipped uint64   // offsets since the last event that hold none
	header  [64]byte // of an event frame in the making

	busy      bool         // more than one batch was queued when there was something to write last
	busySince time.Time    // when that was
	late      actors.Timer // rings the gate when events have waited for others long enough; nil before the first time
	finishing bool         // the session is draining: end once there is nothing to read
	time      pageTime
}

// run sets the subscription up, answers its request, and delivers until something ends it.
func (d *delivery) run(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		if ctx.Err() == nil {
			d.request.refuse(wire.Refuse(wire.CodeLimitExceeded, "the client allows no further unidirectional stream; end a subscription or use another connection"))
			d.request.lane = nil
		}
		return err
	}
	d.gate = d.session.opts.Runtime.NewGate()
	d.time.start(d.session.opts.Timings)
	if !d.request.lane.awaitTurn(ctx, d.request.token, d.gate) {
		d.stream.CancelWrite()
		d.request.refuse(wire.Refuse(wire.CodeShardUnavailable, "the stream of the request is gone"))
		d.request.lane = nil
		return errUnheard
	}
	if f := d.request.locate(); f != nil {
		d.stream.CancelWrite()
		d.request.refuse(*f)
		d.request.lane = nil
		return f
	}
	// The place in the log is taken before the answer: what is published after it is delivered.
	cursor, err := d.request.shard.Log.Register(storage.CursorOptions{
		Start: d.request.start, Offset: d.request.offset, Capacity: d.request.capacity, Owner: d.owner(),
		Ring: d.gate.Ring, // a ring that wait did not look at must not make a later one block: the shard rings
	})
	if err != nil {
		d.stream.CancelWrite()
		d.request.answer(d.notRegistered(err))
		d.request.lane = nil
		return err
	}
	d.cursor, d.next = cursor, cursor.Start()
	defer d.cursor.Release()
	d.shape = shapeFor(d.request.grant, d.id, d.request.entry, &d.session.opts.Delivery)
	if _, err := d.stream.Write(wire.AppendJSONFrame(nil, &wire.EventStreamHello{SubscriptionID: d.id})); err != nil {
		d.request.refuse(wire.Refuse(wire.CodeInternal, "the event stream broke off").WithRetry(wire.RetryRetry))
		d.request.lane = nil
		return fmt.Errorf("write hello: %w", err)
	}
	heard := d.request.lane.grant(d.request.token, sessioncore.Answer{Message: d.request.subscribed(d.id, cursor)})
	d.request.lane = nil // an idle subscription keeps nothing of the stream it was asked for on
	if !heard {
		d.stream.CancelWrite()
		return errUnheard
	}
	return d.deliver(ctx)
}

func (d *delivery) open(ctx context.Context) error {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := d.session.opts.Clock.AfterFunc(openTimeout, cancel)
	defer timer.Stop()
	stream, err := d.session.conn.OpenSendStream(bounded)
	if err != nil {
		return fmt.Errorf("open event stream: %w", err)
	}
	d.stream = stream
	return nil
}

// deliver returns nil when the subscription has ended in order and everything was written.
func (d *delivery) deliver(ctx context.Context) error {
	for {
		// A node that stops does not wait for a reader of a long history, which loses nothing: the one that can be told goes on elsewhere.
		if d.cursor.Behind() && d.session.finish.Err() != nil {
			return d.end(endDraining)
		}
		d.lookForPage()
		page, err := d.cursor.Take(ctx, pageOf(d.request.capacity), pageBytes, d.batches)
		if err != nil {
			return d.endOfLog(ctx, err)
		}
		d.batches, d.next = page.Batches, page.Next
		if page.Lost > 0 && d.endsWhenLagging() {
			d.next = page.From
			return d.end(endLagged)
		}
		switch {
		case len(page.Batches) > 0:
			if d.busy = len(page.Batches) > 1; d.busy {
				d.busySince = d.session.opts.Clock.Now()
			}
			d.havePage()
			d.skip(page)
			if err := d.write(page.Batches); err != nil {
				return fmt.Errorf("write events: %w", err)
			}
			d.wrotePage()
		case page.Lost > 0: // and nothing behind it yet
			d.skip(page)
		default:
			if more, err := d.wait(ctx); !more {
				return err
			}
		}
	}
}

// wait returns once there is more to read; more is false when the subscription is over.
func (d *delivery) wait(ctx context.Context) (more bool, err error) {
	clear(d.batches)
	d.batches = nil
	if !d.cursor.Arm(1, 1) {
		return true, nil
	}
	if d.finishing {
		d.cursor.Disarm()
		return false, d.end(endDraining)
	}
	rung := d.gate.Wait(d.session.finish, d.stream.Context(), ctx)
	d.cursor.Disarm() // a gate may be rung for nothing
	if rung {
		d.gather(ctx)
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		d.stream.CancelWrite()
		return false, context.Cause(ctx)
	}
	if err := d.stream.Context().Err(); err != nil { // the client wants no more
		d.stream.CancelWrite()
		return false, context.Cause(d.stream.Context())
	}
	d.finishing = true // once more around, for what is readable by now
	return true, nil
}

// gather gives a busy subscriber's events time to be joined by others: until enough of them fill a write, and no longer than the
// delay from the first one on, which has just come. A subscriber that is not busy gets its event at once, and no timer.
func (d *delivery) gather(ctx context.Context) {
	o := &d.session.opts.Delivery
	if d.busy && d.session.opts.Clock.Now().Sub(d.busySince) > o.MaxDelay { // a pause, and what comes after it comes alone
		d.busy = false
	}
	if !d.busy || o.MaxDelay <= 0 || !d.cursor.Arm(o.enough(d.request.capacity), writeBytes) {
		return
	}
	if d.late == nil {
		d.late = d.session.opts.Clock.AfterFunc(o.MaxDelay, d.gate.Ring)
	} else {
		d.late.Reset(o.MaxDelay)
	}
	d.gate.Wait(d.session.finish, d.stream.Context(), ctx) // whatever ends it: what has come is written
	d.late.Stop()
	d.cursor.Disarm()
}
