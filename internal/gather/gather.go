// Package gather lets what several goroutines have to write to one connection leave together. What is written by itself costs a packet, a
// system call and a wake of the connection at either end; but what came in one packet has woken as many goroutines as it has parts, of whom
// many write at once, and nobody knows which.
package gather

import (
	"runtime"
	"sync"
)

// Of is where those meet who have something to write. The first to come lets those run that are ready to, and then sees to all that are here by
// then. It waits for nothing: where nobody else is ready, it goes on at once.
//
// What is here more than once is seen to more than once, so a T notes that it is: until it is seen to, which somebody is about to do. The zero
// value is ready. Safe for concurrent use.
type Of[T any] struct {
	mu    sync.Mutex
	here  []T
	spare []T // room for the next
}

// Do has flush called for x, now or by another caller. flush is called without a lock, for one after the other.
func (g *Of[T]) Do(x T, flush func(T)) {
	if !g.Join(x) {
		return
	}
	runtime.Gosched()
	g.Flush(flush)
}

// Join puts x here; true makes the caller the one that calls Flush.
func (g *Of[T]) Join(x T) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.here = append(g.here, x)
	return len(g.here) == 1
}

// Flush calls flush for all that are here, in the order in which they came, and returns how many that were. Who comes from now on is the first
// again.
func (g *Of[T]) Flush(flush func(T)) int {
	all := g.take()
	for i, x := range all {
		flush(x)
		var none T
		all[i] = none
	}
	g.keep(all)
	return len(all)
}

func (g *Of[T]) take() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.here
	g.here, g.spare = g.spare[:0], nil
	return all
}

// keep keeps the room of what was taken.
func (g *Of[T]) keep(all []T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spare = all[:0]
}
