package diskpool

import "time"

// Clock is where a Pool gets time from. Tests give it one that stands still.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once, d from now, on a goroutine of the clock's choice; stop prevents that, and reports whether it did.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// machineClock is the clock of the machine.
type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
