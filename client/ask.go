package client

import (
	"context"
	"errors"
	"time"

	"github.com/felixd/felixd/wire"
)

// smallMessage is an upper bound for the token-free parts of a request without payload, in bytes, as far as the send window
// is concerned: names apart, a few hundred bytes of JSON.
const smallMessage = 1 << 10

// oneShot is a request on a stream of its own.
type oneShot struct {
	op      string
	needs   wire.Features
	feature string // what is missing when the broker does not offer that
	message wire.Message
	writes  bool // it changes something: without an answer the outcome is unknown
	// idempotent: it may be done twice. So it is sent again when its outcome is unknown, with writes.
	idempotent bool
	wait       time.Duration // how long the broker may take for the answer on purpose
	seat       *uint64       // of the connection that has to take it; nil: any
}

// ask sends a question to the entry and returns the answer. Questions change nothing, so a failed one is asked again as the
// options allow.
func (c *Client) ask(ctx context.Context, op string, feature wire.Features, name string, question wire.Message) (wire.Message, error) {
	q := oneShot{op: op, needs: feature, feature: name, message: question}
	return c.run(ctx, &q, func(ctx context.Context, step func(*target) error) error { return step(c.entry) })
}

// askOwner sends a request to whoever owns a shard. One that writes is sent again only when nothing happened for certain.
func (c *Client) askOwner(ctx context.Context, r *route, q *oneShot) (wire.Message, error) {
	return c.run(ctx, q, func(ctx context.Context, step func(*target) error) error { return c.follow(ctx, r, step) })
}

func (c *Client) run(ctx context.Context, q *oneShot, at func(context.Context, func(*target) error) error) (wire.Message, error) {
	if c.isClosed() {
		return nil, closedError(q.op)
	}
	frame := wire.AppendJSONFrame(nil, q.message)
	if n := len(frame) - wire.HeaderSize; n > c.opts.MaxFrameBytes {
		return nil, longRequest.error(q.op, n, c.opts.MaxFrameBytes)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	var answer wire.Message
	again, doubt := untaken, false // whether a try went without an answer
	if q.idempotent {
		again = func(err error) bool { return untaken(err) || errors.Is(err, ErrOutcomeUnknown) }
	}
	err := c.repeat(ctx, q.op, again, func() error {
		return at(ctx, func(t *target) (err error) {
			answer, err = c.askAt(ctx, t, q, frame)
			doubt = doubt || errors.Is(err, ErrOutcomeUnknown)
			return err
		})
	})
	if err != nil && doubt && !errors.Is(err, ErrOutcomeUnknown) { // the last try did nothing, but an earlier one may have
		err = &OutcomeUnknownError{Op: q.op, Err: err}
	}
	return answer, err
}

// untaken reports whether a request may be sent again: it had no effect, and may succeed a little later.
func untaken(err error) bool { return !errors.Is(err, ErrOutcomeUnknown) && repeatable(err) }

// askAt is one try at one broker. Its errors are refusals, and what kept the answer from coming.
func (c *Client) askAt(ctx context.Context, t *target, q *oneShot, frame []byte) (answer wire.Message, err error) {
	pool := t.cacheLinks
	seat := q.seat
	if seat == nil {
		next := pool.turn.Add(1) - 1
		seat = &next
	}
	control, err := c.openControlAt(ctx, pool, q.op, smallMessage+len(frame), *seat)
	if err != nil {
		return nil, err
	}
	defer control.finish()
	if !control.grant.Features.Has(q.needs) {
		return nil, &UnsupportedError{Op: q.op, Feature: q.feature}
	}
	err = c.exchangeWithin(ctx, control, q.op, q.wait, func() error {
		if _, err := control.stream.Write(frame); err != nil {
			return err
		}
		if answer, err = control.receive(q.op); err != nil {
			return err
		}
		switch answer.(type) {
		case *wire.ErrorAnswer, *wire.NotLeader:
			return refusalOf(q.op, answer)
		}
		return nil
	})
	if err != nil && q.writes && !decided(err) {
		if lost, ok := err.(*ConnectionLostError); ok { // the error around it names the operation
			err = &ConnectionLostError{Addr: lost.Addr, Err: lost.Err}
		}
		return nil, &OutcomeUnknownError{Op: q.op, Err: err}
	}
	return answer, err
}

// decided reports whether err is the broker's word on a request. An error without a code does not say what became of it.
func decided(err error) bool {
	var refused *BrokerError
	if errors.As(err, &refused) {
		return refused.Retry != 0
	}
	return isAnswer(err)
}
