package client

import (
	"context"
	"errors"
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

// repeat runs step until it succeeds, fails for good, or was tried as often and as long as the options allow; then the
// error is a *GaveUpError. Only steps that may run twice belong here: it does not look at what a failed try may have done.
func (c *Client) repeat(ctx context.Context, op string, again func(error) bool, step func() error) error {
	return c.repeatWithin(ctx, op, limits{tries: c.opts.Attempts, time: c.opts.RetryDeadline}, again, step)
}

// limits bound a repetition. 0 means that this one does not.
type limits struct {
	tries int
	time  time.Duration
	first int // tries that count as made before: pauses begin longer
}

func (c *Client) repeatWithin(ctx context.Context, op string, l limits, again func(error) bool, step func() error) error {
	began := c.now()
	var missing time.Time // when not_found came first
	for try := 1; ; try++ {
		err := step()
		var given *GaveUpError // by a repetition inside the step
		if err == nil || ctx.Err() != nil || errors.As(err, &given) || !again(err) {
			return err
		}
		if c.isClosed() {
			return closedError(op)
		}
		pause, now := c.pause(l.first+try, err), c.now()
		if errors.Is(err, ErrNotFound) {
			if missing.IsZero() {
				missing = now
			}
			if now.Add(pause).Sub(missing) > notFoundGrace {
				return err
			}
		}
		if l.tries > 0 && try >= l.tries || l.time > 0 && now.Add(pause).Sub(began) > l.time {
			return &GaveUpError{Tries: try, Err: err}
		}
		c.stats.retries.Add(1)
		c.opts.Hooks.retrying(Retry{Op: op, Try: try, Pause: pause, Err: err})
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
	case errors.Is(err, ErrStaleClaim):
		return false // the same settlement stays void, whatever its class says: the record has to be handed out again first
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
