package client

import (
	"context"
	"sync/atomic"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// opened is an accepted subscription with its event stream.
type opened struct {
	events   *eventStream
	link     *link
	accepted wire.Subscribed
	released atomic.Bool
}

// stop ends the event stream. Stopping again does nothing.
func (o *opened) stop() {
	if o.released.Swap(true) {
		return
	}
	o.events.stream.CancelRead(transport.StreamFinished)
	o.link.busy.Add(-1)
	o.link.pulse.unlisten()
}

// begin is the first opening. For a time it asks where that is; a time without a record is asked again once the subscription
// stands, because one may have come in between.
func (s *source) begin(ctx context.Context, namespace, stream string, from Start) (*opened, error) {
	if !from.timed {
		return s.open(ctx, from.start)
	}
	at, found, err := s.client.OffsetForTime(ctx, namespace, stream, s.shard, from.since)
	if err != nil {
		return nil, err
	}
	if found {
		return s.open(ctx, At(at).start)
	}
	o, err := s.open(ctx, Latest().start)
	if err != nil {
		return nil, err
	}
	at, found, err = s.client.OffsetForTime(ctx, namespace, stream, s.shard, from.since)
	if err == nil && (!found || o.accepted.StartOffset.Set && at >= o.accepted.StartOffset.V) {
		return o, nil
	}
	o.stop()
	if err != nil {
		return nil, err
	}
	return s.open(ctx, At(at).start)
}

// open is one try to subscribe, wherever redirects lead.
func (s *source) open(ctx context.Context, from wire.Start) (*opened, error) {
	message := s.message
	if from.Kind != wire.StartLatest {
		message.Start = wire.Some(from)
	}
	var o *opened
	err := s.client.follow(ctx, s.route, func(t *target) (err error) {
		o, err = s.client.subscribeAt(ctx, t, s.op, &message)
		return err
	})
	return o, err
}

// subscribeAt is the request on a stream of its own, then the event stream the broker opens.
func (c *Client) subscribeAt(ctx context.Context, t *target, op string, message *wire.Subscribe) (*opened, error) {
	control, err := c.openControl(ctx, t.eventLinks, op, len(message.Namespace)+len(message.Stream)+smallMessage)
	if err != nil {
		return nil, err
	}
	defer control.finish()
	if message.QueueCapacity.Set && !control.grant.Features.Has(wire.FeatureSubscribeQueue) {
		return nil, &UnsupportedError{Op: op, Feature: "a queue capacity on subscribe"}
	}
	var accepted *wire.Subscribed
	err = c.exchange(ctx, control, op, func() (err error) {
		accepted, err = askSubscribe(control, op, message)
		return err
	})
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, c.opts.AckTimeout)
	defer cancel()
	events, err := control.link.events.claim(waiting, op, accepted.SubscriptionID)
	switch {
	case err == nil:
	case ctx.Err() == nil && waiting.Err() != nil:
		return nil, &ProtocolError{Op: op, What: "accepted the subscription and opened no event stream"}
	default:
		return nil, c.broken(ctx, op, control.link, err)
	}
	control.link.busy.Add(1)
	control.link.pulse.listen()
	return &opened{events: events, link: control.link, accepted: *accepted}, nil
}

func askSubscribe(control *control, op string, message *wire.Subscribe) (*wire.Subscribed, error) {
	if err := control.send(message); err != nil {
		return nil, err
	}
	if err := control.stream.Close(); err != nil { // no further request comes on this stream
		return nil, err
	}
	answer, err := control.receive(op)
	if err != nil {
		return nil, err
	}
	accepted, ok := answer.(*wire.Subscribed)
	if !ok {
		return nil, refusalOf(op, answer)
	}
	return accepted, nil
}
