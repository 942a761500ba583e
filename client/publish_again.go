package client

import (
	"context"
	"errors"
	"fmt"
)

// PublishAtLeastOnce publishes records as one batch and repeats it while the outcome is unknown or the broker asks for it,
// as often as the options allow: they are written at least once, maybe more often. It takes no key, because a repetition
// that comes late would break the order a key promises, and no AckNone, because without an answer there is nothing to
// repeat on. The error matches ErrOutcomeUnknown when any of the tries may have been written.
func (c *Client) PublishAtLeastOnce(ctx context.Context, namespace, stream string, payloads [][]byte, opts ...PublishOption) (PublishResult, error) {
	pub := newPublication("publish at least once", namespace, stream, payloads, opts)
	op := pub.String()
	switch {
	case pub.keyed:
		return PublishResult{}, &ArgumentError{Op: op, Argument: "key", Problem: "cannot go with repetition, which would break its order; publish without a key, or once"}
	case pub.ack == AckNone:
		return PublishResult{}, &ArgumentError{Op: op, Argument: "ack", Problem: "is AckNone, which leaves nothing to repeat on; use AckRecord or AckBatch"}
	}
	var result PublishResult
	var doubt error // the last try that may have been written
	err := c.repeat(ctx, op, mayRepeatPublish, func() (err error) {
		if result, err = c.publishAndWait(ctx, pub); errors.Is(err, ErrOutcomeUnknown) {
			doubt = err
		}
		return err
	})
	if err != nil && doubt != nil && !errors.Is(err, ErrOutcomeUnknown) {
		err = &OutcomeUnknownError{Op: op, Err: fmt.Errorf("an earlier try was not answered (%w), and the last one failed: %w", doubt, err)}
	}
	return result, err
}

// mayRepeatPublish reports whether a publish that may be written twice is worth another try.
func mayRepeatPublish(err error) bool {
	return errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrNotLeader) || repeatable(err)
}
