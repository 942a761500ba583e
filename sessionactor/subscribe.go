package sessionactor

import (
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// subscribeRequest is a subscribe.
type subscribeRequest struct {
	asked
	start  storage.Start
	offset id.Offset // of StartOffset
	told   bool      // it named a capacity: it is told what it got
}

// subscribed accepts the request. Where it begins means something to those who read offsets.
func (r *subscribeRequest) subscribed(subscription uint64, c storage.Cursor) *wire.Subscribed {
	m := &wire.Subscribed{SubscriptionID: subscription}
	if r.entry.Durable && r.grant.Flags.Has(wire.FlagEventOffsets) {
		m.StartOffset, m.LiveOffset = wire.Some(c.Start()), wire.Some(c.Live())
	}
	if r.told {
		m.QueueCapacity = wire.Some(uint32(r.capacity))
	}
	return m
}

func (r *subscribeRequest) serve(s *session, n uint64) *feed { return &newDelivery(s, n, *r).feed }

// subscribe checks a subscribe request and hands it to the session, which owns the subscription.
func (l *lane) subscribe(t sessioncore.Token, m *wire.Subscribe) {
	l.session.opts.Metrics.Subscribes.Inc()
	e := l.find(route.Stream, m.TenantID, m.Namespace, m.Stream)
	if e == nil {
		l.refuse(t, notFound("stream", m.TenantID, m.Namespace, m.Stream))
		return
	}
	r := &subscribeRequest{asked: l.asked(t, e, m.Shard.Or(0)), told: m.QueueCapacity.Set}
	r.capacity = l.session.opts.Delivery.capacity(m.QueueCapacity)
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
	l.open(t, namesLen(m.TenantID, m.Namespace, m.Stream), r)
}
