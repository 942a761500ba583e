package sessionactor

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
)

// wait is a request that waits in its lane until there is room for it. The lane reads nothing meanwhile; its other requests are
// answered, and other lanes go on.
//
// While it waits it holds no permits, so that those who wait for one shard or one tenant take nothing from others. Its frame, the
// only one of its lane, counts with those that are being read: in their budget, or in the 64 KiB that each stream may hold.
type wait struct {
	l       *lane
	ctx     context.Context
	token   sessioncore.Token
	shard   *shardactor.Handle
	message shardactor.Message
	size    int // in the mailbox
	permits int
	held    bool        // it holds its permits
	reached bool        // the shard has it
	barred  bool        // the node drains
	expired atomic.Bool // it has waited long enough
}

// await makes a request wait that was refused with why: one of the errors that noRoom knows. nil says that the shard has it; otherwise
// why it has not. mu is held, but not while it waits.
func (l *lane) await(ctx context.Context, t sessioncore.Token, h *shardactor.Handle, m shardactor.Message, size int, why error) error {
	w := &wait{l: l, ctx: ctx, token: t, shard: h, message: m, size: size, permits: l.demand.Bytes}
	l.demand.Ring = l.gate.Ring
	if !l.core.Silent(t) {
		timer := l.session.opts.Clock.AfterFunc(l.session.opts.QueueWait, func() {
			w.expired.Store(true)
			l.gate.Ring()
		})
		defer timer.Stop()
	}
	l.session.opts.Metrics.QueueWaits.Inc()
	l.mu.Unlock()
	defer func() { // after a panic too: whoever called unlocks
		l.mu.Lock()
		if !w.held {
			l.lent += w.permits
		}
	}()
	return w.run(why)
}

// mayWait reports whether an open request waits when it finds no room: one that is answered up to QueueWait, another one for as long
// as it takes.
func (l *lane) mayWait(t sessioncore.Token) bool {
	if l.core.Silent(t) {
		return l.session.opts.IngressWait
	}
	return l.session.opts.QueueWait > 0
}

// run returns nil once the shard has the request, or why it has not when it may not wait any longer.
func (w *wait) run(why error) error {
	w.give()
	defer w.leave()
	for {
		if errors.Is(why, actors.ErrFull) && !w.standForRoom() {
			return w.end(why)
		}
		if !w.enter(func(a *sessioncore.Admission, d *sessioncore.Demand) bool { a.Wait(d); return true }) {
			return w.end(why)
		}
		if !w.until(func(_ *sessioncore.Admission, d *sessioncore.Demand) bool { return d.Granted() }) || !w.take() {
			return why
		}
		if why = w.offer(); !noRoom(why) {
			return why
		}
		w.give()
		w.step(func(a *sessioncore.Admission, d *sessioncore.Demand) bool { a.GiveUp(d); return false })
	}
}

// end is why a request that waited did not reach its shard.
func (w *wait) end(why error) error {
	if w.barred {
		return errDraining
	}
	return why
}

// enter is a step that puts the request into a line, unless the node drains.
func (w *wait) enter(f func(*sessioncore.Admission, *sessioncore.Demand) bool) bool {
	return w.step(func(a *sessioncore.Admission, d *sessioncore.Demand) bool {
		if w.barred = a.Draining(); w.barred {
			return false
		}
		return f(a, d)
	})
}

// standForRoom waits until there may be room in the shard's mailbox; false means that it has waited long enough. Who comes first into
// the line must try again at once: outcomes of before that have rung nobody.
func (w *wait) standForRoom() bool {
	atOnce := w.enter(func(a *sessioncore.Admission, d *sessioncore.Demand) bool { return !d.InRoomLine() && a.AwaitRoom(d) })
	return atOnce || !w.barred && w.until(func(a *sessioncore.Admission, d *sessioncore.Demand) bool { return a.TakeRung(d) })
}

// offer tries to send the request that was let in.
func (w *wait) offer() error {
	if w.step(func(a *sessioncore.Admission, d *sessioncore.Demand) bool { return a.Behind(d) }) {
		return actors.ErrFull
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if err := w.shard.Ref.TrySend(w.message, w.size); err != nil {
		return err
	}
	w.l.core.Admitted(w.token, w.shard.Number) // before its answer can be given, which needs the lock
	w.reached = true
	return nil
}

// until waits for a condition of the admission; false means that it has waited long enough, or that the connection is gone.
func (w *wait) until(cond func(*sessioncore.Admission, *sessioncore.Demand) bool) bool {
	for !w.step(cond) {
		if w.expired.Load() || !w.l.gate.Wait(w.ctx) {
			return false
		}
	}
	return true
}

// step does something under the admission's lock.
func (w *wait) step(f func(*sessioncore.Admission, *sessioncore.Demand) bool) (out bool) {
	w.l.session.opts.Admission.do(func(core *sessioncore.Admission) { out = f(core, &w.l.demand) })
	return out
}

// leave lets go of whatever place it has.
func (w *wait) leave() {
	w.step(func(a *sessioncore.Admission, d *sessioncore.Demand) bool {
		if w.reached {
			a.Reached(d)
			return true
		}
		a.GiveUp(d)
		a.LeaveRoom(d)
		return true
	})
}

// give gives the permits of the frame back.
func (w *wait) give() {
	w.held = false
	w.l.session.credit.Release(0, w.permits)
	w.l.session.opts.Frames.Release(0, w.permits)
}

// take takes them again; false means that the connection is gone.
func (w *wait) take() bool {
	w.held = w.l.acquirePermits(w.ctx, w.permits)
	return w.held
}
