package actors

import (
	"context"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// workerPool runs functions on goroutines it keeps: a new goroutine per wake costs six times as much, because its stack grows anew
// each time. Goroutines are taken from a stack, so that the warmest runs next and the coldest ones end when idle.
type workerPool struct {
	clock Clock

	mu      sync.Mutex
	idle    []*worker
	waiting runQueue // runs beyond workersMax; each live actor and executor is in it at most once
	workers int
	spare   int   // the least number of idle workers since the last check: so many were never needed
	check   Timer // ends spare workers; pending only while somebody is idle
	pending bool
	closed  bool
	told    bool
	ended   chan struct{} // closed when closed and no worker is left
}

// worker is one goroutine; it sleeps on its channel. nil tells it to end.
type worker struct{ run chan func() }

var _ actor.Dispatcher = (*workerPool)(nil)

func newWorkerPool(clock Clock) *workerPool {
	return &workerPool{clock: clock, ended: make(chan struct{})}
}

// Throughput is asked for by protoactor's own mailboxes only.
func (p *workerPool) Throughput() int { return turnItemsMax }

// Schedule runs f soon on a goroutine of the pool. After close it still does: an actor's last turn must not be lost.
func (p *workerPool) Schedule(f func()) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.spare = min(p.spare, n-1)
		p.mu.Unlock()
		w.run <- f
		return
	}
	if p.workers >= workersMax {
		p.waiting.push(f)
		p.mu.Unlock()
		return
	}
	p.workers++
	p.mu.Unlock()
	w := &worker{run: make(chan func(), 1)}
	go p.work(w, f)
}

// work is the life of a worker.
func (p *workerPool) work(w *worker, f func()) {
	returned := false
	defer func() {
		if !returned { // what ran ended its goroutine
			p.mu.Lock()
			p.forget()
			p.mu.Unlock()
		}
	}()
	for f != nil {
		f()
		if f = p.another(w); f == nil {
			f = <-w.run
		}
	}
	returned = true
}

// another is a waiting run, or nil after w was put to sleep or told to end.
func (p *workerPool) another(w *worker) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.waiting.pop(); f != nil {
		return f
	}
	if p.closed {
		p.dismiss(w)
		return nil
	}
	p.idle = append(p.idle, w)
	p.armCheck()
	return nil
}

// dismiss tells w to end; mu is held.
func (p *workerPool) dismiss(w *worker) {
	w.run <- nil
	p.forget()
}

// forget counts a worker out; mu is held.
func (p *workerPool) forget() {
	p.workers--
	p.tellEnded()
}

// tellEnded tells who waits in close once no worker is left; mu is held. A late run may start a worker again after that.
func (p *workerPool) tellEnded() {
	if p.closed && p.workers == 0 && !p.told {
		p.told = true
		close(p.ended)
	}
}

// armCheck makes sure that idle workers are looked at after a while; mu is held.
func (p *workerPool) armCheck() {
	if p.pending {
		return
	}
	p.pending = true
	p.spare = len(p.idle)
	if p.check == nil {
		p.check = p.clock.AfterFunc(workerIdleAfter, p.endSpare)
		return
	}
	p.check.Reset(workerIdleAfter)
}

// endSpare ends the workers that were idle during the whole period before.
func (p *workerPool) endSpare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = false
	if p.closed {
		return
	}
	n := min(p.spare, len(p.idle))
	for _, w := range p.idle[:n] {
		p.dismiss(w)
	}
	p.idle = append([]*worker(nil), p.idle[n:]...)
	if len(p.idle) > 0 {
		p.armCheck()
	}
}

// close ends the goroutines: idle ones at once, others after their run, and waits for them.
func (p *workerPool) close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		if p.check != nil {
			p.check.Stop()
		}
		p.tellEnded()
		for _, w := range p.idle {
			p.dismiss(w)
		}
		p.idle = nil
	}
	p.mu.Unlock()
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errPoolBusy, ctx.Err())
	}
}

// size is the number of goroutines and how many of them are idle.
func (p *workerPool) size() (workers, idle int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers, len(p.idle)
}

// foreignDispatcher lets protoactor schedule on a Scheduler of the options.
type foreignDispatcher struct{ s Scheduler }

func (d foreignDispatcher) Schedule(f func()) { d.s.Schedule(f) }

// Throughput is asked for by protoactor's own mailboxes only.
func (d foreignDispatcher) Throughput() int { return 1 }
