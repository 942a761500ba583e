package simrt

import (
	"context"
	"fmt"
	"iter"
)

// coroutine is one pump. It runs on a goroutine of its own, but only while Step has handed control to it.
type coroutine struct {
	world *World
	class Class
	name  string
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	place int // in world.alive, -1 when it has ended
	queue int // in world.waiting, -1 when not
	until []context.Context
	gate  *Gate // the one it waits at
	// killed says that its life has ended: its waits return false.
	killed bool
}

// Go starts a coroutine whose first step may come at once. run must wait at gates only. A panic in it is one of the Step that ran it.
func (w *World) Go(class Class, name string, run func()) { w.start(class, name, run) }

func (w *World) start(class Class, name string, run func()) *coroutine {
	if w.closing {
		panic("simrt: " + name + " was started while the world ends")
	}
	if len(w.alive) >= coroutinesMax {
		panic(fmt.Sprintf("simrt: %d coroutines are alive and %s is one more: something leaks", len(w.alive), name))
	}
	c := &coroutine{world: w, class: class, name: name, place: len(w.alive), queue: -1}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		run()
	})
	w.alive = append(w.alive, c)
	w.Post(class, name, c.resume)
	return c
}

// Running is the name of the coroutine or actor that runs now, empty between steps.
func (w *World) Running() string {
	if w.current != nil {
		return w.current.name
	}
	return w.who
}

// resume lets the coroutine go on until it waits or ends.
func (c *coroutine) resume() {
	w := c.world
	if c.killed { // since it was woken
		w.Note("belongs to a process that is gone")
		return
	}
	w.current = c
	defer func() { w.current = nil }()
	if _, more := c.next(); !more {
		w.forget(c)
	}
}

func (w *World) forget(c *coroutine) {
	last := w.alive[len(w.alive)-1]
	w.alive[c.place], last.place = last, c.place
	w.alive[len(w.alive)-1] = nil
	w.alive = w.alive[:len(w.alive)-1]
	c.place = -1
}

// wait gives way until wake; false means that the world ends and the coroutine must too.
func (c *coroutine) wait(g *Gate, until []context.Context) bool {
	w := c.world
	if w.closing || c.killed {
		return false
	}
	c.gate, g.waiter = g, c
	c.until = append(c.until[:0], until...)
	c.queue = len(w.waiting)
	w.waiting = append(w.waiting, c)
	goOn := c.yield(struct{}{})
	clear(c.until)
	if c.gate != nil { // nobody woke it: the world closes
		c.leaveGate()
	}
	return goOn && !w.closing && !c.killed
}

// wake makes a waiting coroutine ready.
func (c *coroutine) wake() {
	c.leaveGate()
	c.world.Post(c.class, c.name, c.resume)
}

// leaveGate takes a coroutine out of those that wait.
func (c *coroutine) leaveGate() {
	w := c.world
	last := w.waiting[len(w.waiting)-1]
	w.waiting[c.queue], last.queue = last, c.queue
	w.waiting[len(w.waiting)-1] = nil
	w.waiting = w.waiting[:len(w.waiting)-1]
	c.queue = -1
	c.gate.waiter, c.gate = nil, nil
}

// wakeEnded wakes the coroutines that wait for a context which has ended. A context that ends is seen at the next step and not earlier,
// whatever goroutine its other followers run on.
func (w *World) wakeEnded() {
	for i := 0; i < len(w.waiting); {
		if c := w.waiting[i]; c.ended() {
			c.wake() // another one takes its place
		} else {
			i++
		}
	}
}

func (c *coroutine) ended() bool {
	for _, ctx := range c.until {
		if ctx.Err() != nil {
			return true
		}
	}
	return false
}

// Alive are the names of the coroutines that have not ended, in no order that means anything.
func (w *World) Alive() []string {
	names := make([]string, len(w.alive))
	for i, c := range w.alive {
		names[i] = c.name
	}
	return names
}

// Close ends every coroutine that is left: each wait returns false, now and from now on. It returns the names of those that did not
// end by themselves. Nothing may run after it.
func (w *World) Close() (left []string) {
	w.closing = true
	for len(w.alive) > 0 {
		c := w.alive[len(w.alive)-1]
		left = append(left, c.name)
		w.current = c
		c.stop()
		w.current = nil
		w.forget(c)
	}
	return left
}
