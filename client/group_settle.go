package client

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// GroupAck finishes a record: it is never handed out again. Any member may do it, also when the claim has lapsed meanwhile; one
// that is finished already is a success. When it returns nil the broker has made it durable.
//
// It may be done twice without harm, so it is sent again as Options.Attempts allow when no answer comes; only if none ever does
// the error matches ErrOutcomeUnknown. A record that was not handed out since the group was moved or rebuilt is a
// *StaleClaimError.
func (c *Client) GroupAck(ctx context.Context, namespace, stream string, shard uint32, group string, offset id.Offset) error {
	k := c.groupCall(fmt.Sprintf("ack offset %s for", offset), namespace, stream, shard, group)
	k.message = &wire.GroupAck{GroupTarget: k.target, Offset: offset}
	k.writes, k.idempotent = true, true
	k.settles(offset, 0)
	return k.settle(ctx)
}

// GroupNackOptions say how a record is given back.
type GroupNackOptions struct {
	// Attempts is the Message.Attempts of the delivery that is given back: if it does not stand any more, nothing happens and the
	// error is a *StaleClaimError. 0 gives back whatever delivery stands, which may be somebody else's by now.
	Attempts uint32
	// Delay is how long the record is not to be handed out, rounded up to milliseconds; 0 leaves it to the broker.
	Delay time.Duration
}

// GroupNack gives a record back, which is then handed out again, or becomes a dead letter when it failed too often. Without an
// answer the error matches ErrOutcomeUnknown, and it is not sent again. With Attempts it may be, by the caller: a
// *StaleClaimError then may mean that the first one took effect.
func (c *Client) GroupNack(ctx context.Context, namespace, stream string, shard uint32, group string, offset id.Offset, o GroupNackOptions) error {
	k := c.groupCall(fmt.Sprintf("nack offset %s for", offset), namespace, stream, shard, group)
	if o.Delay < 0 || o.Delay > groupTimeMax {
		return &ArgumentError{Op: k.op, Argument: "Delay", Problem: fmt.Sprintf("is %v; use a positive one, or 0 for the broker's", o.Delay)}
	}
	k.message = &wire.GroupNack{GroupTarget: k.target, Offset: offset, Attempts: o.Attempts, DelayMillis: roundUpMillis(o.Delay)}
	k.writes = true
	if o.Attempts > 0 || o.Delay > 0 {
		k.require(wire.FeatureGroupClaimControl, "attempts and delays on group_nack")
	}
	k.settles(offset, o.Attempts)
	return k.settle(ctx)
}

// GroupExtend prolongs one delivery of a record: it stays claimed for so long from now, rounded up to milliseconds. It returns
// what was granted, which the broker bounds. A delivery that does not stand any more is a *StaleClaimError. It may be done twice
// without harm, and is sent again like GroupAck.
func (c *Client) GroupExtend(ctx context.Context, namespace, stream string, shard uint32, group string, offset id.Offset, attempts uint32, visibility time.Duration) (granted time.Duration, err error) {
	k := c.groupCall(fmt.Sprintf("extend offset %s for", offset), namespace, stream, shard, group)
	switch {
	case visibility <= 0 || visibility > groupTimeMax:
		return 0, &ArgumentError{Op: k.op, Argument: "visibility", Problem: fmt.Sprintf("is %v; use a positive one", visibility)}
	case attempts == 0:
		return 0, &ArgumentError{Op: k.op, Argument: "attempts", Problem: "is 0; give the Attempts of the message"}
	}
	m := &wire.GroupExtend{GroupTarget: k.target, Offset: offset, Attempts: attempts, ExtendMillis: roundUpMillis(visibility)}
	k.message, k.writes, k.idempotent = m, true, true
	k.require(wire.FeatureGroupClaimControl, "group_extend")
	k.settles(offset, attempts)
	answer, err := k.ask(ctx)
	if err != nil {
		return 0, err
	}
	extended, ok := answer.(*wire.GroupExtended)
	if !ok {
		return 0, k.refused(answer)
	}
	return milliseconds(extended.VisibleMillis), echoes(k.op, k.target.RequestID, extended.RequestID)
}

// GroupDeadLetter gives up on a record that was handed out: it is listed among the dead letters of the group, and then finished.
// One that is finished already is refused, and the error matches ErrInvalidRequest. Without an answer the error matches
// ErrOutcomeUnknown, and it is not sent again; doing it again does no harm.
func (c *Client) GroupDeadLetter(ctx context.Context, namespace, stream string, shard uint32, group string, offset id.Offset) error {
	k := c.groupCall(fmt.Sprintf("give up on offset %s for", offset), namespace, stream, shard, group)
	k.message, k.writes = &wire.GroupDeadLetter{GroupTarget: k.target, Offset: offset}, true
	k.require(wire.FeatureGroupClaimControl, "group_dead_letter")
	k.settles(offset, 0)
	return k.settle(ctx)
}
