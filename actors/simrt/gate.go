package simrt

import "context"

// Gate is where one coroutine waits to be rung. Rings do not add up: one that finds nobody waiting lets the next Wait through.
type Gate struct {
	world  *World
	rung   bool
	waiter *coroutine
}

// NewGate returns a gate nobody has rung.
func (w *World) NewGate() *Gate { return &Gate{world: w} }

// Ring lets the coroutine go on at a later step. It may be called from anywhere inside a step, with locks held.
func (g *Gate) Ring() {
	g.rung = true
	if g.waiter != nil {
		g.waiter.wake()
	}
}

// Wait gives way until the gate is rung, and returns true; or until one of the contexts has ended or the world closes, and returns
// false, at once if that is so already. Only a coroutine may call it, and only one at a time.
func (g *Gate) Wait(until ...context.Context) bool {
	c := g.world.current
	if c == nil {
		panic("simrt: " + g.world.Running() + " waits at a gate, and only coroutines may: the world would stand still")
	}
	if g.waiter != nil {
		panic("simrt: " + c.name + " waits at the gate of " + g.waiter.name)
	}
	for !c.killed {
		for _, ctx := range until {
			if ctx.Err() != nil {
				return false
			}
		}
		if g.rung {
			g.rung = false
			return true
		}
		if !c.wait(g, until) {
			return false
		}
	}
	return false
}

// Pause gives the others a step. It returns false when the world closes. Only a coroutine may call it.
func (w *World) Pause() bool {
	g := w.NewGate()
	g.rung = true
	c := w.current
	if c == nil {
		panic("simrt: " + w.Running() + " pauses, and only coroutines may")
	}
	if w.closing || c.killed {
		return false
	}
	w.Post(c.class, c.name, c.resume)
	return c.yield(struct{}{}) && !w.closing && !c.killed
}
