package client

import (
	"context"
	"errors"
	"fmt"
)

// PendingPublish is a publish under way. Its record is with the client; it needs no further care, but its outcome is
// learned only here.
type PendingPublish struct {
	client            *Client
	request           *request
	unknownWidth      bool // it was routed by what was known of the stream's shards
	namespace, stream string
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
			return PublishResult{}, &OutcomeUnknownError{Op: p.request.op, Err: fmt.Errorf("wait for the answer: %w", ctx.Err())}
		}
	}
	r := p.request
	if r.err != nil {
		return PublishResult{}, r.err
	}
	if r.silent {
		return PublishResult{}, nil
	}
	if r.answer.ack.Refusal == nil {
		return PublishResult{Offset: r.answer.ack.Offset, HasOffset: r.answer.ack.HasOffset}, nil
	}
	err := brokerError(r.op, *r.answer.ack.Refusal)
	if p.unknownWidth && errors.Is(err, ErrNotFound) { // what is known of its shards is of a stream that is gone
		p.client.widths.forget(p.namespace, p.stream)
	}
	return PublishResult{}, err
}
