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
	snap     *snapshot // comes first; nil for none
	retained bool      // the broker serves current values with their count
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

// open is one try to subscribe, wherever redirects lead. A snapshot whose end cannot be told is asked for in the way that
// has it counted, where the broker serves that.
func (s *source) open(ctx context.Context, from wire.Start) (*opened, error) {
	var o *opened
	try := func() error {
		return s.client.follow(ctx, s.route, func(t *target) (err error) {
			o, err = s.openAt(ctx, t, from)
			return err
		})
	}
	err := try()
	if err == nil && o.snap != nil && !o.snap.counted && o.retained {
		back := o.snap.back
		o.stop()
		from = wire.Start{Kind: wire.StartEarliest}
		if err = try(); err == nil {
			o.snap.back, o.snap.replaces = back, true
		}
	}
	return o, err
}

// openAt is the request on a stream of its own, then the event stream the broker opens.
func (s *source) openAt(ctx context.Context, t *target, from wire.Start) (*opened, error) {
	c, op, request := s.client, s.op, s.topic.request(from)
	control, err := c.openControl(ctx, t.eventLinks, op, request.bytes+smallMessage)
	if err != nil {
		return nil, err
	}
	defer control.finish()
	if !control.grant.Features.Has(request.needs) {
		return nil, &UnsupportedError{Op: op, Feature: request.feature}
	}
	o := &opened{link: control.link, retained: control.grant.Features.Has(wire.FeatureCacheWatchRetained)}
	err = c.exchange(ctx, control, op, func() error {
		answer, err := askOnce(control, op, request.message)
		if err != nil {
			return err
		}
		o.accepted, o.snap, err = s.topic.accept(op, from, answer)
		return err
	})
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, c.opts.AckTimeout)
	defer cancel()
	o.events, err = control.link.events.claim(waiting, op, o.accepted.SubscriptionID)
	switch {
	case err == nil:
	case ctx.Err() == nil && waiting.Err() != nil:
		return nil, &ProtocolError{Op: op, What: "accepted the subscription and opened no event stream"}
	default:
		return nil, c.broken(ctx, op, control.link, err)
	}
	control.link.busy.Add(1)
	control.link.pulse.listen()
	return o, nil
}

// askOnce sends the only request of a stream and reads its answer.
func askOnce(control *control, op string, message wire.Message) (wire.Message, error) {
	if err := control.send(message); err != nil {
		return nil, err
	}
	if err := control.stream.Close(); err != nil { // no further request comes on this stream
		return nil, err
	}
	return control.receive(op)
}
