package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Actor is what the wrapper runs: a shell around a pure core. Receive is called with one turn at a time, never concurrently. It
// must not block. A panic in it ends the incarnation.
type Actor interface{ Receive(t *Turn) }

// wrapper stands between protoactor and one Actor. To protoactor it is the actor.Actor; it recovers whatever the Actor throws, keeps
// the ledger of requests, and settles what the Actor leaves open. Only the goroutine that runs the mailbox touches it.
//
//  1. the Actor's Receive is called for Started first, for Stopping and Stopped last, at most once each.
//  2. after a failure Receive is called for Stopped only.
//  3. when finish has run, every accepted data message was stepped or given to OnUnstepped, and each stepped Settler was settled or
//     given to OnUnanswered.
type wrapper struct {
	b       *mailbox
	spec    spec
	actor   Actor
	ctx     actor.Context // protoactor's, the same for a lifetime
	turn    *Turn         // lent by the dispatch in progress
	failure *PanicInfo

	ledger    ledger
	unstepped int
	unknown   int

	children map[string]*mailbox // by name, from Spawn until Terminated was seen
	ended    []Terminated        // children seen gone, to be told in the next turn
	watching []*mailbox

	timer    Timer
	deadline time.Time // what the actor wants; zero: nothing
	armedFor time.Time // when the timer will ring; zero: it will not
	turns    uint64
}

// Receive is protoactor's call. It never panics on account of the Actor.
func (w *wrapper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Turn:
		w.step(m)
	case *actor.Started:
		w.ctx = ctx
		w.begin()
	case *actor.Terminated:
		w.childGone(m.Who.Id)
	case *actor.Stopping:
		w.stopping()
	case *actor.Stopped:
		w.stopped()
	}
}

// begin creates the Actor and gives it its Started turn.
func (w *wrapper) begin() {
	if w.create() {
		w.lifecycle(Started)
	}
}

// create calls New under the same protection as a turn: it runs here and not in protoactor's producer, where a panic would reach the
// spawning actor.
func (w *wrapper) create() (ok bool) {
	defer w.recover("new", &ok)
	w.actor = w.spec.new()
	if w.actor == nil {
		panic("Spec.New returned nil")
	}
	return true
}

// step gives an ordinary turn to the Actor and updates the ledger.
func (w *wrapper) step(t *Turn) {
	t.ended = append(t.ended, w.ended...)
	w.ended = nil
	t.now = w.b.sys.clock.Now()
	w.checkWake(t)
	t.view = append(append(t.view, t.control...), t.data...)
	if len(t.view)+len(t.cells)+len(t.ended) == 0 && !t.woken && !t.crash {
		return // the timer rang for a deadline that has moved
	}
	ok := w.call(t, "turn")
	w.count(t)
	if !ok {
		return
	}
	for _, m := range t.data {
		if _, asks := m.(Settler); asks && !settled(m) {
			w.ledger.add(&w.b.sys.chunks, m)
		}
	}
	w.ledger.sweep(&w.b.sys.chunks)
}

// count adds a turn to the instruments of its kind.
func (w *wrapper) count(t *Turn) {
	k := w.b.kind
	k.turns.Inc()
	if w.turns%turnSampleEvery == 0 {
		k.seconds.Observe(w.b.sys.clock.Now().Sub(t.now).Seconds())
	}
	w.turns++
	if n := len(t.data); n > 0 {
		k.data.Add(float64(n))
	}
	if n := len(t.control); n > 0 {
		k.control.Add(float64(n))
	}
	if n := len(t.cells); n > 0 {
		k.cell.Add(float64(n))
	}
}

// call runs Receive; it reports false after a panic, and has then settled what was open. That happens in deferred calls, so that it
// holds also when Receive ends its goroutine.
func (w *wrapper) call(t *Turn, during string) (ok bool) {
	t.w = w
	defer w.settleFailed(t, &ok)
	defer w.recover(during, &ok)
	if o := w.b.sys.observer; o != nil {
		defer func() { o.EndTurn(t, w.actor, ok) }()
		o.BeginTurn(t)
	}
	if t.crash {
		panic(ErrInjected)
	}
	w.actor.Receive(t)
	return true
}

// recover is deferred around everything of the Actor's. ok is what the protected function returns.
func (w *wrapper) recover(during string, ok *bool) {
	if *ok {
		return
	}
	value := recover()
	if value == nil {
		value = "the goroutine was ended with runtime.Goexit"
	}
	w.fail(newPanicInfo(during, value))
}

// settleFailed runs after recover, once the failure is recorded and the mailbox closed.
func (w *wrapper) settleFailed(t *Turn, ok *bool) {
	t.w = nil
	if !*ok {
		w.unanswered(t.data)
	}
}

// fail records a panic and decides the end. The first failure is the one the parent hears of.
func (w *wrapper) fail(p *PanicInfo) {
	if w.failure == nil {
		w.failure = p
	}
	w.b.kind.panics.Inc()
	w.b.sys.Emit(ActorPanicked{Path: w.b.path, Kind: w.b.kind.name, Panic: p})
	w.b.stop()
}

// lifecycle gives the Actor a turn without messages, if there is an Actor.
func (w *wrapper) lifecycle(l Lifecycle) {
	if w.actor == nil {
		return
	}
	t := w.turn
	t.lifecycle, t.now = l, w.b.sys.clock.Now()
	w.call(t, l.String())
	t.clear()
}

// stopping runs when protoactor has seen the stop, before it stops the children.
func (w *wrapper) stopping() {
	if w.failure != nil || w.actor == nil {
		return
	}
	if len(w.ended) > 0 {
		w.tellEnded()
	}
	if w.failure == nil {
		w.lifecycle(Stopping)
	}
}

// tellEnded gives the Actor a turn that has only ChildTerminated.
func (w *wrapper) tellEnded() {
	t := w.turn
	t.ended, w.ended = append(t.ended, w.ended...), nil
	t.now = w.b.sys.clock.Now()
	w.call(t, "turn")
	t.clear()
}

// stopped runs when the last child is gone; protoactor tells the parent right after it returns.
func (w *wrapper) stopped() {
	w.lifecycle(Stopped)
	w.finish()
}
