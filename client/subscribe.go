package client

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Start is where a subscription begins. The zero value is Latest.
type Start struct{ start wire.Start }

// Latest begins with what is published from now on.
func Latest() Start { return Start{} }

// Earliest begins with the oldest record there is.
func Earliest() Start { return Start{wire.Start{Kind: wire.StartEarliest}} }

// At begins at an offset: that of the first record not seen yet. In-memory streams have no offsets and refuse it.
func At(offset id.Offset) Start { return Start{wire.Start{Kind: wire.StartOffset, Offset: offset}} }

// SubscribeOptions says what to read. The zero value reads shard 0 from now on.
type SubscribeOptions struct {
	Shard uint32
	From  Start
	// QueueCapacity asks for a queue of so many batches at the broker; 0 leaves it to the broker. A broker that cannot be
	// asked fails the call with an *UnsupportedError.
	QueueCapacity uint32
}

// Event is one record as a subscriber gets it.
type Event struct {
	Payload   []byte // belongs to the receiver
	Shard     uint32
	Offset    id.Offset // means something only with HasOffset: in-memory streams have none
	HasOffset bool
	// SkippedBefore is how many offsets right before this one hold no event. Offset - SkippedBefore - 1 is the offset of
	// the event before, or events were dropped.
	SkippedBefore uint64
	Publisher     string    // with Options.Publishers; empty when not told
	Time          time.Time // with Options.Timestamps: when the broker appended it; zero when not told
}

// Subscribe opens a subscription to one shard. It returns once the broker has accepted it: what is published after that is
// delivered. A start offset that cannot be served is a *CursorError; an unknown stream matches ErrNotFound. Refusals the
// broker calls temporary are tried again as the options allow. ctx bounds the opening, not the subscription; Close ends it.
func (c *Client) Subscribe(ctx context.Context, namespace, stream string, o SubscribeOptions) (*Subscription, error) {
	op := fmt.Sprintf("subscribe to %s/%s shard %d", namespace, stream, o.Shard)
	if err := checkNames(op, namespace, "stream", stream); err != nil {
		return nil, err
	}
	if c.isClosed() {
		return nil, closedError(op)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	message := &wire.Subscribe{TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream}
	if o.From.start.Kind != wire.StartLatest {
		message.Start = wire.Some(o.From.start)
	}
	if o.Shard != 0 {
		message.Shard = wire.Some(o.Shard)
	}
	if o.QueueCapacity != 0 {
		message.QueueCapacity = wire.Some(o.QueueCapacity)
	}
	var s *Subscription
	err := c.repeat(ctx, op, func() (err error) {
		s, err = c.subscribe(ctx, op, message)
		return err
	})
	return s, err
}

// subscribe is one try: the request on a stream of its own, then the event stream the broker opens.
func (c *Client) subscribe(ctx context.Context, op string, message *wire.Subscribe) (*Subscription, error) {
	control, err := c.openControl(ctx, c.eventLinks, op)
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
	events, err := control.link.events.claim(waiting, accepted.SubscriptionID)
	switch {
	case err == nil:
	case ctx.Err() == nil && waiting.Err() != nil:
		return nil, &ProtocolError{Op: op, What: "accepted the subscription and opened no event stream"}
	default:
		return nil, c.broken(ctx, op, control.link, err)
	}
	return newSubscription(c, control.link, op, message.Shard.V, accepted, events), nil
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
