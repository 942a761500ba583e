package bench

import (
	"context"
	"fmt"
	"time"
)

// Clock is time as a schedule sees it. The zero instant is the clock's own.
type Clock interface {
	Now() time.Duration
	// SleepUntil returns at an instant, or a little later, or with the error of ctx.
	SleepUntil(ctx context.Context, at time.Duration) error
}

// Schedule is an open loop: things are due at a fixed rate whatever becomes of them. One that could not be started in time is started
// at once and still counts from when it was due, so that a server which stalls cannot hide its stall by keeping the generator from
// sending (coordinated omission).
type Schedule struct {
	clock Clock
	start time.Duration
	rate  float64 // per second
	n     uint64
}

// NewSchedule begins now. It panics on a rate that is not positive: callers check what users ask for.
func NewSchedule(clock Clock, rate float64) *Schedule {
	if rate <= 0 {
		panic(fmt.Sprintf("bench: a rate of %v per second", rate))
	}
	return &Schedule{clock: clock, start: clock.Now(), rate: rate}
}

// Due is when the next thing is due. It is computed from the start, so that rounding does not add up.
func (s *Schedule) Due() time.Duration {
	return s.start + time.Duration(float64(s.n)*float64(time.Second)/s.rate)
}

// Next waits until the next thing is due and returns when that was, and how late it is. idle, if not nil, is called before a
// wait.
func (s *Schedule) Next(ctx context.Context, idle func() error) (due, late time.Duration, err error) {
	due = s.Due()
	s.n++
	if now := s.clock.Now(); now < due {
		if idle != nil {
			if err := idle(); err != nil {
				return 0, 0, err
			}
		}
		if err := s.clock.SleepUntil(ctx, due); err != nil {
			return 0, 0, err
		}
	}
	return due, max(0, s.clock.Now()-due), nil
}

// Now implements Clock: the time of a trial.
func (t *trial) Now() time.Duration { return t.now() }

// SleepUntil implements Clock.
func (t *trial) SleepUntil(ctx context.Context, at time.Duration) error {
	timer := time.NewTimer(at - t.now())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
