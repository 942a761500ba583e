package sessionactor

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// SubscriptionMessage is everything a Subscription accepts.
//
//sumtype:decl
type SubscriptionMessage interface{ subscriptionMessage() }

// PumpEnded says that the write pump of a subscription is done, and why.
type PumpEnded struct{ Err error }

func (*PumpEnded) subscriptionMessage() {}

// subscribeRequest is a subscribe that may be carried out: its shard is known.
type subscribeRequest struct {
	lane  *lane
	token sessioncore.Token
	entry *shardactor.Entry
	shard *shardactor.Handle
	start wire.StartKind
	grant wire.Grant
}

// refuse answers the request unless it was answered already.
func (r *subscribeRequest) refuse(f wire.Refusal) {
	if r.lane == nil { // answered, and let go of
		return
	}
	r.lane.resolve(r.token, sessioncore.Answer{Refusal: &f})
}

// subscribe checks a subscribe request and hands it to the session, which owns the subscription.
func (l *lane) subscribe(t sessioncore.Token, m *wire.Subscribe) {
	l.session.opts.Metrics.Subscribes.Inc()
	e := l.find(route.Stream, m.TenantID, m.Namespace, m.Stream)
	if e == nil {
		l.refuse(t, notFound("stream", m.TenantID, m.Namespace, m.Stream))
		return
	}
	n := m.Shard.Or(0)
	target, ok := e.Shard(n)
	switch {
	case !ok:
		l.refuse(t, wire.Refuse(wire.CodeInvalidRequest, fmt.Sprintf("shard %d does not exist: the stream has shards 0 to %d", n, len(e.Shards())-1)))
		return
	case target.State != route.Local:
		l.refuse(t, elsewhere(target))
		return
	case m.Start.V.Kind == wire.StartOffset:
		l.refuse(t, wire.Refuse(wire.CodeInvalidRequest, "the stream is ephemeral and its records have no offsets: start at latest or earliest").WithReason("ephemeral", 0))
		return
	}
	r := subscribeRequest{lane: l, token: t, entry: e, shard: target.Shard, start: m.Start.V.Kind, grant: l.core.Grant()}
	if err := l.session.ref.TrySend(&Subscribe{request: r}, subscribeBytes); err != nil {
		l.refuse(t, wire.Refuse(wire.CodeOverloaded, "too many subscriptions are being set up on this connection; repeat the request").WithReason("publish_queue_full", queueFullPause))
	}
}

// subscribeBytes is what a waiting subscribe request costs, in bytes.
const subscribeBytes = 256

// Subscription supervises one subscription. It moves no event: the loop that does is its write pump.
//
//	path     sessions/<n>/sub/<k>, child of Session  lanes    control
//	blocks   never                                   failure  stop; the client sees its event stream end
//
//	in               from               then
//	PumpEnded        its write pump     the subscription ends
type Subscription struct {
	s      *session
	d      delivery
	cancel context.CancelFunc // ends the pump at its next wait
}

func spawnSubscription(t *actors.Turn, s *session, id uint64, r subscribeRequest) error {
	_, err := actors.Spawn[SubscriptionMessage](t, actors.Spec[SubscriptionMessage]{
		Name: fmt.Sprintf("sub/%d", id), Kind: "subscription",
		Bounds: actors.Bounds{ControlItems: 1},
		New:    func() actors.Actor { return &Subscription{s: s, d: delivery{session: s, id: id, request: r}} },
	})
	return err
}

// Receive is one turn.
func (a *Subscription) Receive(t *actors.Turn) {
	switch t.Lifecycle() {
	case actors.Started:
		ref := actors.RefOf[SubscriptionMessage](t)
		a.s.opts.Metrics.Subscribers.Inc()
		ctx, cancel := context.WithCancel(a.s.ctx)
		a.cancel = cancel
		started := a.s.pump("subscription", func(context.Context) {
			err := errPumpPanicked
			defer func() {
				// When it ended before it had answered, after a panic in between for one, nobody else would settle the request.
				a.d.request.refuse(wire.Refuse(wire.CodeInternal, "the subscription could not be set up").WithRetry(wire.RetryRetry))
				a.s.opts.Metrics.Subscribers.Dec()
				_ = ref.Complete(&PumpEnded{Err: err}) // refused when the subscription was stopped first
			}()
			err = a.d.run(ctx)
		})
		if !started { // the connection is gone
			a.d.request.refuse(wire.Refuse(wire.CodeShardUnavailable, "the connection is closing; connect again"))
			a.s.opts.Metrics.Subscribers.Dec()
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

// openTimeout is how long a subscription waits for the client to allow one more unidirectional stream. A client that allows
// none is told, instead of leaving its subscribe without an answer.
const openTimeout = 5 * time.Second
