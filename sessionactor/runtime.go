package sessionactor

import (
	"context"

	"github.com/felixd/felixd/actors"
)

// Runtime runs the pumps of sessions. The real one gives each a goroutine; the simulation runs them one at a time, in an
// order that its seed decides. A pump blocks only in its connection, at its gate, and
// in the disk when it reads a log.
type Runtime interface {
	Go(run func())
	NewGate() Gate
}

// Gate is where one pump waits to be rung.
type Gate interface {
	// Ring lets the pump go on, now or at its next Wait; rings do not add up. It may be called from anywhere, with locks
	// held: it does not block.
	Ring()
	// Wait returns false when one of the contexts has ended, at once if it has already; true when the gate was rung since the
	// last Wait. Only the gate's own pump calls it.
	Wait(until ...context.Context) bool
}

// Goroutines is the real Runtime.
func Goroutines() Runtime { return goroutines{} }

type goroutines struct{}

func (goroutines) Go(run func()) { go run() }

func (goroutines) NewGate() Gate { return channelGate(make(chan struct{}, 1)) }

type channelGate chan struct{}

func (g channelGate) Ring() {
	select {
	case g <- struct{}{}:
	default:
	}
}

func (g channelGate) Wait(until ...context.Context) bool {
	var done [3]<-chan struct{} // a nil channel is never ready
	for i, ctx := range until {
		if ctx.Err() != nil {
			return false
		}
		done[i] = ctx.Done()
	}
	select {
	case <-g:
		return true
	case <-done[0]:
	case <-done[1]:
	case <-done[2]:
	}
	return false
}

// acquire waits at the gate for n bytes of credit; false means that ctx ended first, or the credit, and nothing is held.
func acquire(ctx context.Context, gate Gate, c *actors.Credit, n int) bool {
	if c.TryAcquire(0, n) {
		return true
	}
	r := c.Request(0, n, gate.Ring)
	for {
		if granted, err := r.State(); granted || err != nil {
			return granted
		}
		if !gate.Wait(ctx) {
			return !r.Cancel()
		}
	}
}
