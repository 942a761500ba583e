package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/felixd/felixd/wire"
)

// PendingPublish is a publish under way. Its record is with the client; it needs no further care, but its outcome is
// learned only here.
type PendingPublish struct {
	client    *Client
	pub       publication
	entry     *streamEntry
	route     *route
	via       *target
	held      int64 // of the byte budget
	request   request
	cancelled atomic.Bool
}

// submit takes the way of the shard, room in the byte budget and a slot of a lane, and gives all back when it fails.
func (p *PendingPublish) submit(ctx context.Context, place int) error {
	c := p.client
	via, err := p.route.enter(ctx, c.entry)
	if err != nil {
		return fmt.Errorf("%s: wait for earlier publishes of the shard, which has a new owner: %w", p.request.op(), err)
	}
	p.via = via
	if p.held, err = c.budget.take(ctx, &p.route.share, int64(p.pub.bytes)); err != nil {
		p.route.leave()
		return fmt.Errorf("%s: wait for room in flight: %w", p.request.op(), err)
	}
	if err := via.publishes.submit(ctx, place, &p.request); err != nil {
		c.budget.give(&p.route.share, p.held)
		p.route.leave()
		return err
	}
	return nil
}

// settled learns from the outcome and gives back what the publish held.
func (p *PendingPublish) settled(r *request) {
	ack := &r.answer.ack
	switch {
	case r.err != nil:
		p.route.forget(p.via)
	case ack.Refusal != nil:
		p.refused(ack.Refusal)
	case ack.Owner != nil:
		p.client.stats.forwarded.Add(1)
		p.route.learn(p.client, *ack.Owner)
	}
	p.route.leave()
	p.client.budget.give(&p.route.share, p.held)
}

func (p *PendingPublish) refused(refusal *wire.Refusal) {
	if refusal.Retry == wire.RetryRetry || refusal.Retry == wire.RetryRedirect {
		p.route.forget(p.via)
	}
	if p.pub.keyed && refusal.Code == wire.CodeNotFound { // what is known of its shards is of a stream that is gone
		p.entry.forgetWidth()
	}
}

// Done is closed when the outcome is known, and Wait returns at once.
func (p *PendingPublish) Done() <-chan struct{} { return p.request.done }

// Wait returns the outcome; see Publish. When ctx ends first, the publish goes on and Wait may be called again.
func (p *PendingPublish) Wait(ctx context.Context) (PublishResult, error) {
	select {
	case <-p.request.done:
	default:
		select {
		case <-p.request.done:
		case <-ctx.Done():
			if !p.cancelled.Swap(true) {
				p.client.stats.cancelled.Add(1)
			}
			return PublishResult{}, &OutcomeUnknownError{Op: p.request.op(), Err: fmt.Errorf("wait for the answer: %w", ctx.Err())}
		}
	}
	return p.outcome()
}

// outcome is the result once done is closed.
func (p *PendingPublish) outcome() (PublishResult, error) {
	r := &p.request
	switch {
	case r.err != nil:
		return PublishResult{}, r.err
	case r.silent:
		return PublishResult{}, nil
	case r.answer.msg != nil:
		return PublishResult{}, refusalOf(r.op(), r.answer.msg)
	case r.answer.ack.Refusal != nil:
		return PublishResult{}, brokerError(r.op(), *r.answer.ack.Refusal)
	}
	return PublishResult{Offset: r.answer.ack.Offset, HasOffset: r.answer.ack.HasOffset}, nil
}

// publishAndWait is Publish: an owner that was remembered wrongly is passed over once.
func (c *Client) publishAndWait(ctx context.Context, pub publication) (PublishResult, error) {
	p, err := c.start(ctx, pub)
	if err != nil {
		return PublishResult{}, err
	}
	result, err := p.Wait(ctx)
	if err == nil || p.via == c.entry || !untouched(err) {
		return result, err
	}
	if p, err = c.start(ctx, pub); err != nil { // the owner is forgotten by now
		return PublishResult{}, err
	}
	return p.Wait(ctx)
}

// untouched reports whether a broker said that it did nothing and that another one may.
func untouched(err error) bool {
	var refused *BrokerError
	return errors.As(err, &refused) && (refused.Retry == wire.RetryRetry || refused.Retry == wire.RetryRedirect)
}
