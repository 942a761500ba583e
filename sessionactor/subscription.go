package sessionactor

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// SubscriptionMessage is everything a Subscription accepts.
//
//sumtype:decl
type SubscriptionMessage interface{ subscriptionMessage() }

// PumpEnded says that the write pump of a subscription or watch is done, and why.
type PumpEnded struct{ Err error }

func (*PumpEnded) subscriptionMessage() {}

// open hands a request for an event stream to the session, which owns what becomes of it.
func (l *lane) open(t sessioncore.Token, named int, r eventRequest) {
	if !l.park(t, subscribeHeld+named) {
		return
	}
	if err := l.session.ref.TrySend(&Subscribe{request: r}, subscribeBytes); err != nil {
		l.refuse(t, wire.Refuse(wire.CodeOverloaded, "too many subscriptions are being set up on this connection; repeat the request").WithReason("publish_queue_full", queueFullPause))
	}
}

// subscribeBytes is what a waiting request for an event stream costs, in bytes.
const subscribeBytes = 256

// Subscription supervises one subscription, or one watch of a cache. It moves no event: the loop that does is its write pump.
//
//	path     sessions/<n>/sub/<k>, child of Session  lanes    control
//	blocks   never                                   failure  stop; the client sees its event stream end
//
//	in               from               then
//	PumpEnded        its write pump     the subscription or watch ends
type Subscription struct {
	s      *session
	f      *feed
	cancel context.CancelFunc // ends the pump at its next wait
}

// subscriptionName is the name of the actor that supervises subscription n of a connection.
func subscriptionName(n uint64) string { return fmt.Sprintf("sub/%d", n) }

func spawnSubscription(t *actors.Turn, s *session, n uint64, r eventRequest) error {
	_, err := actors.Spawn[SubscriptionMessage](t, actors.Spec[SubscriptionMessage]{
		Name: subscriptionName(n), Kind: "subscription",
		Bounds: actors.Bounds{ControlItems: 1},
		New:    func() actors.Actor { return &Subscription{s: s, f: r.serve(s, n)} },
	})
	return err
}

// Receive is one turn.
func (a *Subscription) Receive(t *actors.Turn) {
	switch t.Lifecycle() {
	case actors.Started:
		ref := actors.RefOf[SubscriptionMessage](t)
		if !a.f.enter() {
			a.f.asked.refuse(wire.Refuse(wire.CodeLimitExceeded, "the broker has as many subscriptions as it may have; end some, or come later").WithRetry(wire.RetryRetry))
			t.Stop()
			return
		}
		ctx, cancel := context.WithCancel(a.s.ctx)
		a.cancel = cancel
		started := a.s.pump("subscription", func(context.Context) {
			err := errPumpPanicked
			defer func() {
				// When it ended before it had answered, after a panic in between for one, nobody else would settle the request.
				a.f.asked.refuse(wire.Refuse(wire.CodeInternal, "the subscription could not be set up").WithRetry(wire.RetryRetry))
				a.f.leave()
				_ = ref.Complete(&PumpEnded{Err: err}) // refused when the subscription was stopped first
			}()
			err = a.f.run(ctx)
		})
		if !started { // the connection is gone
			a.f.asked.refuse(wire.Refuse(wire.CodeShardUnavailable, "the connection is closing; connect again"))
			a.f.leave()
			t.Stop()
		}
	case actors.Stopping, actors.Stopped:
		if a.cancel != nil { // also after a failure: without its supervisor the pump must not go on
			a.cancel()
		}
	case actors.None:
		for _, m := range t.Messages() {
			if _, ok := m.(*PumpEnded); !ok {
				panic(fmt.Sprintf("sessionactor: a subscription got %T", m))
			}
			t.Stop()
		}
	}
}

// enter counts a subscription with those of its node; false if they are too many.
func (f *feed) enter() bool {
	if !f.session.opts.Subscriptions.Take(1) {
		f.session.opts.Subscriptions.Give(1)
		return false
	}
	f.gauge.Inc()
	return true
}

func (f *feed) leave() {
	f.gauge.Dec()
	f.session.opts.Subscriptions.Give(1)
}
