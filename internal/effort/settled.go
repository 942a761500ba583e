package effort

import (
	"flag"
	"os"
	"os/signal"
	"runtime"
	"time"
)

// settling is how long a package's last goroutines may take to end.
const settling = time.Minute

// Runner is what a testing.M is to whoever looks for goroutines that a package leaves behind.
type Runner interface{ Run() int }

// Settled is a Runner whose end waits until as many goroutines are left as there were at its beginning, for a minute at most: connections are
// given up in their own time after the last test, and a busy machine needs more of it than somebody who looks for leaks allows. It does not wait
// for a fuzzer, which keeps goroutines of its own.
func Settled(m Runner) Runner { return settled{m} }

type settled struct{ m Runner }

// Run implements Runner.
func (s settled) Run() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt) // who asks for signals first has a goroutine started for them, and that stays
	signal.Stop(signals)
	before := runtime.NumGoroutine()
	code := s.m.Run()
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		return code
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for late := time.Now().Add(settling); runtime.NumGoroutine() > before && time.Now().Before(late); {
		<-look.C
	}
	return code
}
