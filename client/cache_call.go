package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixd/felixd/wire"
)

// cacheCall is one request to a cache.
type cacheCall struct {
	op      cacheOp
	read    bool
	bytes   int // of the value in it
	needs   wire.Features
	feature string // what is missing when the broker does not offer that
	message func(requestID uint64) wire.Message

	set     *laneSet
	place   int
	held    int64 // of the send window
	request request
}

// encode makes the frame.
func (k *cacheCall) encode(l *lane, id uint64, out *outbox) error {
	if !l.control.grant.Features.Has(k.needs) {
		return &UnsupportedError{Op: k.op.String(), Feature: k.feature}
	}
	return out.takeJSON(k.op.String, k.message(id), l.client.opts.MaxFrameBytes, longRequest)
}

// settled gives back what the request held.
func (k *cacheCall) settled(*request) { k.release() }

func (k *cacheCall) release() {
	k.set.places[k.place].users.Add(-1)
	k.set.pool.sending.give(k.set.pool.sending.share(), k.held)
}

// frameBytes is about how long the frame is: base64 makes four bytes of three.
func (k *cacheCall) frameBytes() int64 {
	return int64(smallMessage + len(k.op.namespace) + len(k.op.cache) + len(k.op.key) + (k.bytes+2)/3*4)
}

// cacheRead is a request that changes nothing: when its connection is lost it is sent again, once.
func (c *Client) cacheRead(ctx context.Context, op cacheOp, needs wire.Features, feature string, message func(requestID uint64) wire.Message) (wire.Message, error) {
	read := func() (wire.Message, error) {
		return c.cacheRequest(ctx, &cacheCall{op: op, read: true, needs: needs, feature: feature, message: message})
	}
	answer, err := read()
	if errors.Is(err, ErrConnectionLost) && ctx.Err() == nil {
		answer, err = read()
	}
	return answer, err
}

// valueOf takes the answer of a request that is answered by a value or the lack of one.
func valueOf(op cacheOp, answer wire.Message, err error) ([]byte, bool, error) {
	if err != nil {
		return nil, false, err
	}
	m, ok := answer.(*wire.CacheValue)
	if !ok {
		return nil, false, refusalOf(op.String(), answer)
	}
	return m.Value.V, m.Value.Set, nil
}

// unlessUnknown is refusalOf for a request that must not be made twice: an answer that does not say what became of it is an
// *OutcomeUnknownError.
func unlessUnknown(op string, answer wire.Message) error {
	err := refusalOf(op, answer)
	if decided(err) {
		return err
	}
	return &OutcomeUnknownError{Op: op, Err: err}
}

// cacheRequest sends one request on the least busy lane and waits for its answer.
func (c *Client) cacheRequest(ctx context.Context, k *cacheCall) (wire.Message, error) {
	if c.isClosed() {
		return nil, closedError(k.op.String())
	}
	k.set = c.entry.caches
	r := &k.request
	r.what, r.encoder, r.owner, r.safe, r.done = &k.op, k, k, k.read, make(chan struct{})
	var err error
	if k.held, err = k.set.pool.sending.take(ctx, k.set.pool.sending.share(), k.frameBytes()); err != nil {
		return nil, fmt.Errorf("%s: wait for room in flight: %w", k.op, err)
	}
	k.place = k.set.leastBusy()
	if err := k.set.submit(ctx, k.place, r); err != nil {
		k.release()
		return nil, err
	}
	select {
	case <-r.done:
		return r.answer.msg, r.err
	case <-ctx.Done():
		if r.safe {
			return nil, fmt.Errorf("%s: wait for the answer: %w", k.op, ctx.Err())
		}
		return nil, r.unanswered(fmt.Errorf("wait for the answer: %w", ctx.Err()))
	}
}
