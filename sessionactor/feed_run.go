package sessionactor

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// run sets the event stream up, answers its request, and delivers until something ends it.
func (f *feed) run(ctx context.Context) error {
	if err := f.open(ctx); err != nil {
		if ctx.Err() == nil {
			f.asked.refuse(noStream(err))
			f.asked.forget()
		}
		return err
	}
	f.gate = f.session.opts.Runtime.NewGate()
	f.time.start(f.session.opts.Timings)
	if !f.asked.lane.awaitTurn(ctx, f.asked.token, f.gate) {
		f.stream.CancelWrite()
		f.asked.refuse(wire.Refuse(wire.CodeShardUnavailable, "the stream of the request is gone"))
		f.asked.forget()
		return errUnheard
	}
	if refusal := f.asked.locate(); refusal != nil {
		f.stream.CancelWrite()
		f.asked.refuse(*refusal)
		f.asked.forget()
		return refusal
	}
	// The place in the log is taken before the answer: what is written after it is delivered.
	answer, err := f.source.begin(ctx)
	defer f.source.over()
	defer f.release()
	if err != nil {
		f.stream.CancelWrite()
		f.asked.answer(answer)
		f.asked.forget()
		return err
	}
	if _, err := f.stream.Write(wire.AppendJSONFrame(nil, &wire.EventStreamHello{SubscriptionID: f.id})); err != nil {
		f.asked.refuse(wire.Refuse(wire.CodeInternal, "the event stream broke off").WithRetry(wire.RetryRetry))
		f.asked.forget()
		return fmt.Errorf("write hello: %w", err)
	}
	heard := f.asked.lane.grant(f.asked.token, answer)
	f.asked.forget()
	if !heard {
		f.stream.CancelWrite()
		return errUnheard
	}
	if more, err := f.source.first(ctx); !more {
		return err
	}
	return f.deliver(ctx)
}

func (f *feed) open(ctx context.Context) error {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := f.session.opts.Clock.AfterFunc(openTimeout, cancel)
	defer timer.Stop()
	stream, err := f.session.conn.OpenSendStream(bounded)
	if err != nil {
		return fmt.Errorf("open event stream: %w", err)
	}
	f.stream = stream
	return nil
}

// noStream is what a client is told that cannot be given an event stream.
func noStream(err error) wire.Refusal {
	if errors.Is(err, ErrStreamsKept) {
		return wire.Refuse(wire.CodeLimitExceeded, ErrStreamsKept.Error()+"; acknowledge it, or use another connection").WithRetry(wire.RetryRetry)
	}
	return wire.Refuse(wire.CodeLimitExceeded, "the client allows no further unidirectional stream; end a subscription or use another connection")
}

// deliver returns nil when the event stream has ended in order and everything was written.
func (f *feed) deliver(ctx context.Context) error {
	for {
		// A node that stops does not wait for a reader of a long history, which loses nothing: the one that can be told goes on elsewhere.
		if f.cursor.Behind() && f.session.finish.Err() != nil {
			return f.end(endDraining)
		}
		f.lookForPage()
		page, err := f.cursor.Take(ctx, pageOf(f.asked.capacity), pageBytes, f.batches)
		if err != nil {
			return f.endOfLog(ctx, err)
		}
		f.batches, f.next = page.Batches, page.Next
		if page.Lost > 0 {
			switch f.source.hole() {
			case lagBehind:
				f.next = page.From
				return f.end(endLagged)
			case goBack:
				f.next = page.From
				if err := f.place(storage.StartOffset, page.From); err != nil {
					return f.endOfLog(ctx, err)
				}
				continue
			case goOn:
			}
		}
		switch {
		case len(page.Batches) > 0:
			if f.busy = len(page.Batches) > 1; f.busy {
				f.busySince = f.session.opts.Clock.Now()
			}
			f.havePage()
			if err := f.passOn(ctx, page); err != nil {
				return err
			}
			f.wrotePage()
		case page.Lost > 0: // and nothing behind it yet
			if err := f.source.page(page); err != nil {
				return err
			}
		default:
			f.slow = false
			if more, err := f.wait(ctx); !more {
				return err
			}
		}
	}
}

// wait returns once there is more to read; more is false when the subscription is over.
func (f *feed) wait(ctx context.Context) (more bool, err error) {
	clear(f.batches)
	f.batches = nil
	if !f.cursor.Arm(1, 1) {
		return true, nil
	}
	if f.finishing {
		f.cursor.Disarm()
		return false, f.end(endDraining)
	}
	rung := f.gate.Wait(f.session.finish, f.stream.Context(), ctx)
	f.cursor.Disarm() // a gate may be rung for nothing
	if rung {
		f.gather(ctx)
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		f.stream.CancelWrite()
		return false, context.Cause(ctx)
	}
	if err := f.stream.Context().Err(); err != nil { // the client wants no more
		f.stream.CancelWrite()
		return false, context.Cause(f.stream.Context())
	}
	f.finishing = true // once more around, for what is readable by now
	return true, nil
}

// gather gives a busy subscriber's events time to be joined by others: until enough of them fill a write, and no longer than the
// delay from the first one on, which has just come. A subscriber that is not busy gets its event at once, and no timer.
func (f *feed) gather(ctx context.Context) {
	o := &f.session.opts.Delivery
	if f.busy && f.session.opts.Clock.Now().Sub(f.busySince) > o.MaxDelay { // a pause, and what comes after it comes alone
		f.busy = false
	}
	if !f.busy || o.MaxDelay <= 0 || !f.cursor.Arm(o.enough(f.asked.capacity), writeBytes) {
		return
	}
	if f.late == nil {
		f.late = f.session.opts.Clock.AfterFunc(o.MaxDelay, f.gate.Ring)
	} else {
		f.late.Reset(o.MaxDelay)
	}
	f.gate.Wait(f.session.finish, f.stream.Context(), ctx) // whatever ends it: what has come is written
	f.late.Stop()
	f.cursor.Disarm()
}
