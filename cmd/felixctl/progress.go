package main

import (
	"fmt"
	"sync"
	"time"
)

const (
	// progressAfter is how long an operation may take before people are told what it does.
	progressAfter = 2 * time.Second
	// progressEvery is how often they are told again.
	progressEvery = 250 * time.Millisecond
)

// progress shows text on one line of a terminal while an operation takes longer than two seconds. stop takes the line
// away and returns when nothing more is written; it may be called again. text is called from another goroutine.
func (a *app) progress(text func() string) (stop func()) {
	if !a.sys.stderrTerminal || a.flags.quiet {
		return func() {}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		began := time.Now()
		timer := time.NewTimer(progressAfter)
		defer timer.Stop()
		shown := false
		for {
			select {
			case <-timer.C:
				fmt.Fprintf(a.sys.stderr, "\r\x1b[K%s (%ds)", text(), int(time.Since(began).Seconds()))
				shown = true
				timer.Reset(progressEvery)
			case <-done:
				if shown {
					fmt.Fprint(a.sys.stderr, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-gone
	})
}
