package actors

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// fairDispatcher shares out turns among tenants by deficit round robin: each tenant has a run queue of its actors with work; a round gives
// every tenant in it 64 KiB, a turn costs the bytes it stepped plus 1 KiB, and a tenant is served until it has used up its share. So a
// tenant with a thousand busy shards gets as much as one with a single busy shard. Costs are known after a turn only, hence a tenant
// may go into debt by one turn per executor, and sits out until the debt is paid.
//
// A tenant whose actors all run at this moment has an empty queue, but its share is not over: when one of them has more to do, the tenant
// goes on at the head of the round. A tenant that was really idle enters at the end, with one share and without savings.
//
// Executors are runs on the scheduler below, at most max at a time; an idle dispatcher owns no goroutine.
type fairDispatcher struct {
	below   actor.Dispatcher
	max     int
	loop    bool // an executor goes on until there is no work; otherwise it is scheduled anew for each turn
	metrics *metrics
	stepFn  func()

	mu          sync.Mutex
	tenants     map[string]*tenant
	first, last *tenant // round of the tenants that have work
	busy        int
	epoch       uint64 // counts the times that nobody had work: debts of before are forgiven
}

// tenant is one share of the dispatcher. It exists while it has actors.
type tenant struct {
	name       string
	fair       *fairDispatcher
	actors     int
	head, tail *mailbox // run queue, intrusive through mailbox.runNext
	running    int      // actors taken out of the queue and not yet charged
	deficit    int      // bytes it may still step in this round
	queued     bool     // in the round
	next       *tenant
	epoch      uint64
}

// fairSlot is the actor.Dispatcher of one actor: what it schedules is always that actor.
type fairSlot struct{ b *mailbox }

func (s fairSlot) Schedule(func()) { s.b.tenant.fair.enqueue(s.b) }

// Throughput is asked for by protoactor's own mailboxes only.
func (s fairSlot) Throughput() int { return turnItemsMax }

func newFairDispatcher(below actor.Dispatcher, executors int, loop bool, m *metrics) *fairDispatcher {
	f := &fairDispatcher{below: below, max: executors, loop: loop, metrics: m, tenants: make(map[string]*tenant)}
	f.stepFn = f.execute
	m.executors.Set(float64(executors))
	return f
}

// join takes b into its tenant.
func (f *fairDispatcher) join(b *mailbox) actor.Dispatcher {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := b.w.spec.tenant
	t := f.tenants[name]
	if t == nil {
		t = &tenant{name: name, fair: f}
		f.tenants[name] = t
	}
	t.actors++
	b.tenant = t
	return fairSlot{b}
}

// leave takes b out of its tenant; b has no work any more.
func (f *fairDispatcher) leave(b *mailbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := b.tenant
	if t.actors--; t.actors == 0 {
		delete(f.tenants, t.name)
	}
}

// enqueue puts an actor with work into its tenant's run queue, and wakes an executor if one is free.
func (f *fairDispatcher) enqueue(b *mailbox) {
	f.mu.Lock()
	f.push(b)
	start := f.busy < f.max
	if start {
		f.busy++
		f.metrics.busy.Set(float64(f.busy))
	}
	f.mu.Unlock()
	if start {
		f.below.Schedule(f.stepFn)
	}
}

// execute is the life of an executor.
func (f *fairDispatcher) execute() {
	for {
		b := f.take()
		if b == nil {
			return
		}
		f.runOne(b)
		if !f.loop {
			f.below.Schedule(f.stepFn)
			return
		}
		// Executors that always find work would otherwise keep their cores for the 10 ms after which the Go scheduler takes one
		// away, and each step of a request that needs no actor waits for that again: with every core in long turns, giving way
		// between them takes a third off such a request's p99.
		runtime.Gosched()
	}
}

// runOne gives b a turn and charges its tenant. An actor that ends its goroutine takes neither itself nor the executor with it.
func (f *fairDispatcher) runOne(b *mailbox) {
	returned := false
	defer func() {
		if !returned {
			f.charge(b, 0, true)
			f.below.Schedule(f.stepFn)
		}
	}()
	bytes, more := b.runOne()
	returned = true
	f.charge(b, bytes, more)
}

// take removes the next actor to run, or ends the executor and returns nil.
func (f *fairDispatcher) take() *mailbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.first != nil {
		t := f.first
		if t.deficit > 0 {
			return f.pop(t)
		}
		f.rotate()
	}
	f.busy--
	f.metrics.busy.Set(float64(f.busy))
	if f.busy == 0 {
		f.epoch++
	}
	return nil
}

// charge makes the tenant pay for a turn; the actor queues again if it has more to do.
func (f *fairDispatcher) charge(b *mailbox, bytes int, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.tenant.deficit -= bytes + turnChargeMin
	if more {
		f.push(b)
	}
	b.tenant.running-- // after push: until here the tenant was not idle
}
