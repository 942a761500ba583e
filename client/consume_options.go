package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Handler works on one record. Returning nil finishes it; an error gives it back, to be handed out again after a pause, and one that
// matches ErrDeadLetter gives it up for good. A panic is like an error, and reported. It is called by several goroutines at once.
//
// ctx ends when the record's claim is gone (context.Cause is a *StaleClaimError then: somebody else may have it), and when Stop
// runs out of time. Its values are those of the context of Consume. A handler may stop its consumer: with this ctx, Stop does not wait
// for the handler that calls it, see ErrStopInHandler.
type Handler func(ctx context.Context, m Message) error

// DeadLetter is an error by which a handler gives up on a record for good, because of cause. It matches ErrDeadLetter.
func DeadLetter(cause error) error {
	if cause == nil {
		return ErrDeadLetter
	}
	return fmt.Errorf("%w: %w", ErrDeadLetter, cause)
}

// RetryAfterError is an error by which a handler gives a record back and says when it is to be handed out again. See RetryAfter.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

// RetryAfter is an error by which a handler gives a record back because of cause, not to be handed out again for so long.
func RetryAfter(after time.Duration, cause error) error {
	return &RetryAfterError{After: min(max(after, 0), groupTimeMax), Err: cause}
}

// Error gives the cause and the pause.
func (e *RetryAfterError) Error() string { return fmt.Sprintf("%v (again after %v)", e.Err, e.After) }

// Unwrap gives the cause.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// ConsumeOptions shape a Consumer. A zero means the default.
type ConsumeOptions struct {
	// Concurrency is how many handlers run at the same time, over all shards.
	Concurrency int
	// MaxInHand is how many records may be claimed and not settled, over all shards; one per shard at least, and Concurrency at
	// least. What is not being worked on is not there for others either, so it should not be much more than Concurrency.
	MaxInHand int
	// MaxInHandBytes bounds their payloads: at it no further poll begins. Each shard may have one poll under way when it is reached,
	// whose answer is bounded by the broker (4 MiB, or one larger record).
	MaxInHandBytes int64
	// Visibility is how long a claim stands without a sign of life; the consumer prolongs what is in hand long before. When this
	// process dies, others get its records after so long. From ConsumeVisibilityMin to ConsumeVisibilityMax.
	Visibility time.Duration
	// PollWait is how long one poll waits at the broker for records.
	PollWait time.Duration
	// Member names this consumer to the broker. After a connection broke, records of an answer that did not arrive are taken back by
	// that name at once. Empty means a name nobody else has. Give one that stays the same to take back what this process had claimed
	// before it was restarted; two consumers of a group at the same time must never have the same.
	Member string
	// RetryDelay says how long a record that failed with err is not to be handed out again; 0 leaves it to the broker. nil means a
	// second, twice as long after each further delivery, up to a minute. RetryAfter and ErrDeadLetter come before it.
	RetryDelay func(m Message, err error) time.Duration
	// StopTimeout is how long Stop may take when its context has no deadline.
	StopTimeout time.Duration
	// OnError is told what went wrong: what handlers returned and panicked with, settlements that were refused, and polls that
	// failed (with m nil; the consumer goes on). It must be quick, and may be called by several goroutines at once, which are the
	// consumer's own: what they have to do waits for it. Stop may be called from here, and returns when its time is up, because it
	// waits for this call; `go consumer.Stop(ctx)` does not. So may Client.Close. nil tells nobody; ConsumerStats counts in any case.
	OnError func(m *Message, err error)
}

// Defaults and bounds of ConsumeOptions.
const (
	DefaultConcurrency    = 16
	DefaultMaxInHandBytes = 16 << 20
	DefaultVisibility     = 30 * time.Second
	DefaultPollWait       = 20 * time.Second
	DefaultStopTimeout    = 30 * time.Second
	// ConsumeVisibilityMin leaves room for a broker that answers slowly: a claim is prolonged when a third of it has passed.
	ConsumeVisibilityMin = 100 * time.Millisecond
	ConsumeVisibilityMax = 12 * time.Hour
	// inHandMax bounds Concurrency and MaxInHand: a goroutine, and a claim at the broker, for each.
	inHandMax = 1 << 16
)

func (o ConsumeOptions) complete(op string) (ConsumeOptions, error) {
	bad := func(argument, problem string) (ConsumeOptions, error) {
		return o, &ArgumentError{Op: op, Argument: argument, Problem: problem}
	}
	switch {
	case min(o.Concurrency, o.MaxInHand) < 0 || o.MaxInHandBytes < 0 || min(o.Visibility, o.PollWait, o.StopTimeout) < 0:
		return bad("ConsumeOptions", "hold a negative number; use a positive one, or 0 for the default")
	case max(o.Concurrency, o.MaxInHand) > inHandMax:
		return bad("ConsumeOptions", fmt.Sprintf("ask for more than %d records at a time; use less", inHandMax))
	case o.Visibility > 0 && (o.Visibility < ConsumeVisibilityMin || o.Visibility > ConsumeVisibilityMax):
		return bad("Visibility", fmt.Sprintf("is %v; use %v to %v", o.Visibility, ConsumeVisibilityMin, ConsumeVisibilityMax))
	case max(o.PollWait, o.StopTimeout) > groupTimeMax:
		return bad("ConsumeOptions", fmt.Sprintf("hold a time of more than %v; use a shorter one", groupTimeMax))
	}
	if problem := memberProblem(o.Member); problem != "" {
		return bad("Member", problem)
	}
	o.Concurrency = orDefault(o.Concurrency, DefaultConcurrency)
	o.MaxInHand = max(o.Concurrency, orDefault(o.MaxInHand, 2*o.Concurrency))
	o.MaxInHandBytes = orDefault(o.MaxInHandBytes, DefaultMaxInHandBytes)
	o.Visibility = orDefault(o.Visibility, DefaultVisibility)
	o.PollWait = orDefault(o.PollWait, DefaultPollWait)
	o.StopTimeout = orDefault(o.StopTimeout, DefaultStopTimeout)
	return o, nil
}

// Pauses of RetryDelay's default.
const (
	firstRetryDelay   = time.Second
	longestRetryDelay = time.Minute
)

// delayOf is how long a record that failed is not to be handed out again.
func (o *ConsumeOptions) delayOf(m Message, err error) time.Duration {
	var asked *RetryAfterError
	switch {
	case errors.As(err, &asked):
		return asked.After
	case o.RetryDelay != nil:
		return min(max(o.RetryDelay(m, err), 0), groupTimeMax)
	}
	if m.Attempts > 6 { // a second doubled six times is past the longest
		return longestRetryDelay
	}
	return min(firstRetryDelay<<(max(m.Attempts, 1)-1), longestRetryDelay)
}
