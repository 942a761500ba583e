package actors

import "time"

// Clock is where actors and pumps get time from. A node uses RealClock; a simulation and tests use a ManualClock.
// Implementations are safe for concurrent use.
type Clock interface {
	// Now is the current instant. On the real clock it carries a monotonic reading.
	Now() time.Time
	// AfterFunc calls f once, d from now, on a goroutine of the clock's choice. f must not block. d <= 0 means as soon as possible.
	AfterFunc(d time.Duration, f func()) Timer
	// NewTimer returns a timer that sends its instant on a channel once, d from now.
	NewTimer(d time.Duration) ChanTimer
}

// Timer is one pending call.
type Timer interface {
	// Stop prevents the call; it reports whether it was still pending.
	Stop() bool
	// Reset makes the call happen d from now, also when it has already happened; it reports whether it was still pending.
	Reset(d time.Duration) bool
}

// ChanTimer is a Timer that tells by a channel.
type ChanTimer interface {
	Timer
	// C receives the instant of expiry. After Stop or Reset no stale value is received.
	C() <-chan time.Time
}

// RealClock is the clock of the machine.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func (realClock) NewTimer(d time.Duration) ChanTimer { return realChanTimer{time.NewTimer(d)} }

type realChanTimer struct{ t *time.Timer }

func (r realChanTimer) Stop() bool                 { return r.t.Stop() }
func (r realChanTimer) Reset(d time.Duration) bool { return r.t.Reset(d) }
func (r realChanTimer) C() <-chan time.Time        { return r.t.C }
