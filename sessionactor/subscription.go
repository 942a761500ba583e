package sessionactor

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
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
	lane       *lane
	token      sessioncore.Token
	entry      *shardactor.Entry
	number     uint32 // of the shard in entry
	shard      *shardactor.Handle
	generation id.Generation
	start      storage.Start
	offset     id.Offset // of StartOffset
	capacity   int       // batches that may be queued
	asked      bool      // for a capacity: it is told what it got
	who        identity
	grant      wire.Grant
}

// subscribed accepts the request. Where it begins means something to those who read offsets.
func (r *subscribeRequest) subscribed(subscription uint64, c storage.Cursor) *wire.Subscribed {
	m := &wire.Subscribed{SubscriptionID: subscription}
	if r.entry.Durable && r.grant.Flags.Has(wire.FlagEventOffsets) {
		m.StartOffset, m.LiveOffset = wire.Some(c.Start()), wire.Some(c.Live())
	}
	if r.asked {
		m.QueueCapacity = wire.Some(uint32(r.capacity))
	}
	return m
}

// locate finds the shard as it is served now, or says why it is not: it may be another incarnation than when the request came.
func (r *subscribeRequest) locate() *wire.Refusal {
	target, ok := r.entry.Shard(r.number)
	var f wire.Refusal
	switch {
	case !ok:
		f = noSuchShard(r.entry, r.number)
	case r.entry.Gone():
		f = notFound("stream", r.entry.Name.Tenant, r.entry.Name.Namespace, r.entry.Name.Name)
	case target.State != route.Local:
		f = elsewhere(target)
	case target.Shard.Log == nil || !target.Shard.Ref.Alive(): // it failed just now, and the next incarnation is not in the table yet
		f = unavailable(wire.ReasonNotReady, "the shard is being replaced; repeat the request")
	default:
		r.shard, r.generation = target.Shard, target.Generation
		return nil
	}
	return &f
}

// refuse answers the request unless it was answered already.
func (r *subscribeRequest) refuse(f wire.Refusal) { r.answer(sessioncore.Answer{Refusal: &f}) }

func (r *subscribeRequest) answer(a sessioncore.Answer) {
	if r.lane == nil { // answered, and let go of
		return
	}
	r.lane.resolve(r.token, a)
}

// subscribe checks a subscribe request and hands it to the session, which owns the subscription.
func (l *lane) subscribe(t sessioncore.Token, m *wire.Subscribe) {
	l.session.opts.Metrics.Subscribes.Inc()
	e := l.find(route.Stream, m.TenantID, m.Namespace, m.Stream)
	if e == nil {
		l.refuse(t, notFound("stream", m.TenantID, m.Namespace, m.Stream))
		return
	}
	grants := l.core.Grants()
	r := subscribeRequest{
		lane: l, token: t, entry: e, number: m.Shard.Or(0), grant: l.core.Grant(),
		capacity: l.session.opts.Delivery.capacity(m.QueueCapacity), asked: m.QueueCapacity.Set, who: identity{grants.Tenant(), grants.Subject()},
	}
	if f := r.locate(); f != nil {
		l.refuse(t, *f)
		return
	}
	switch m.Start.V.Kind {
	case wire.StartOffset:
		if !e.Durable {
			l.refuse(t, wire.Refuse(wire.CodeInvalidRequest, "the stream is ephemeral and its records have no offsets: start at latest or earliest").WithReason("ephemeral", 0))
			return
		}
		r.start, r.offset = storage.StartOffset, m.Start.V.Offset
		if err := checkOffset(r.shard.Log, r.offset); err != nil { // before an event stream is opened for it
			l.settle(t, sessioncore.Answer{Message: cursorError(err)})
			return
		}
	case wire.StartEarliest:
		r.start = storage.StartEarliest
	case wire.StartLatest:
	}
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

// subscriptionName is the name of the actor that supervises subscription n of a connection.
func subscriptionName(n uint64) string { return fmt.Sprintf("sub/%d", n) }

func spawnSubscription(t *actors.Turn, s *session, n uint64, r subscribeRequest) error {
	_, err := actors.Spawn[SubscriptionMessage](t, actors.Spec[SubscriptionMessage]{
		Name: subscriptionName(n), Kind: "subscription",
		Bounds: actors.Bounds{ControlItems: 1},
		New:    func() actors.Actor { return &Subscription{s: s, d: delivery{session: s, id: n, request: r}} },
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
