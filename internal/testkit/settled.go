package testkit

import (
	"runtime"
	"time"
)

// Runner is what a testing.M is to whoever looks for goroutines that a package leaves behind.
type Runner interface{ Run() int }

// Settled is a Runner whose end waits until as many goroutines are left as there were at its beginning, for Patience at most: connections are
// given up in their own time after the last test, and a busy machine needs more of it than somebody who looks for leaks allows.
func Settled(m Runner) Runner { return settled{m} }

type settled struct{ m Runner }

// Run implements Runner.
func (s settled) Run() int {
	before := runtime.NumGoroutine()
	code := s.m.Run()
	for late := time.Now().Add(Patience); runtime.NumGoroutine() > before && time.Now().Before(late); {
		After(5 * time.Millisecond)
	}
	return code
}
