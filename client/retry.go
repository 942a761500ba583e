package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

const (
	// firstPause and longestPause are the ceilings of the pause before the second and the later tries; it doubles between.
	firstPause   = 200 * time.Millisecond
	longestPause = 2 * time.Second
	// notFoundGrace is how long not_found is believed to be news that has not arrived yet.
	notFoundGrace = 5 * time.Second
)

// repeat runs step until it succeeds, fails for good, or was tried as often as the options allow. Only steps that may run
// twice belong here: it does not look at what a failed try may have done.
func (c *Client) repeat(ctx context.Context, op string, step func() error) error {
	began := time.Now()
	for try := 1; ; try++ {
		err := step()
		if err == nil || ctx.Err() != nil || !repeatable(err) {
			return err
		}
		if c.isClosed() {
			return closedError(op)
		}
		if try >= c.opts.Attempts {
			return fmt.Errorf("%w (gave up after %d tries)", err, try)
		}
		pause := c.pause(try, err)
		if errors.Is(err, ErrNotFound) && time.Since(began)+pause > notFoundGrace {
			return err
		}
		if err := c.sleep(ctx, pause); err != nil {
			return c.ended(ctx, op)
		}
	}
}

// pause is how long to wait after the given try: a random part of a growing ceiling (full jitter), and at least what the
// broker asked for.
func (c *Client) pause(try int, err error) time.Duration {
	ceiling := longestPause
	if try < 5 { // 200 ms doubled four times is past the longest pause
		ceiling = min(firstPause<<(try-1), longestPause)
	}
	pause := c.jitter(ceiling)
	var refused *BrokerError
	if errors.As(err, &refused) {
		pause = max(pause, refused.RetryAfter)
	}
	return pause
}

// repeatable reports whether the same step may succeed a little later without anybody changing a setting.
func repeatable(err error) bool {
	var refused *BrokerError
	var unreachable *ConnectError
	var dial *transport.DialError
	switch {
	case errors.As(err, &unreachable):
		for _, f := range unreachable.Failures {
			if errors.As(f.Err, &dial) && dial.Retryable() {
				return true
			}
		}
		return false
	case errors.As(err, &refused):
		return refused.Retry == wire.RetryRetry || refused.Retry == wire.RetryAfter || refused.Retry == 0
	}
	return errors.Is(err, ErrConnectionLost)
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
