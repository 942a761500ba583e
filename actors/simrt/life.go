package simrt

// Life is one run of a process: what belongs to it runs until it ends, and then never again, wherever it stood. Nothing is told of the end:
// what the process had in memory is gone, and what is around it has to be ended by whoever ends the life.
//
//  1. no function, timer or coroutine of a life that has ended runs after End;
//  2. none of its timers is armed then.
type Life struct {
	world      *World
	coroutines []*coroutine // also those that have ended, now and then
	over       bool
}

// NewLife returns a life that has begun.
func (w *World) NewLife() *Life { return &Life{world: w} }

// Over reports whether it has ended.
func (l *Life) Over() bool { return l.over }

// Post is World.Post for something that runs only if the life has not ended by then.
func (l *Life) Post(c Class, who string, run func()) {
	if l.over {
		return
	}
	l.world.Post(c, who, func() {
		if l.over {
			l.world.Note("belongs to a process that is gone")
			return
		}
		run()
	})
}

// Go is World.Go for a coroutine that ends with the life. One that is started after that never runs.
func (l *Life) Go(class Class, name string, run func()) {
	if l.over {
		return
	}
	l.coroutines = append(l.coroutines, l.world.start(class, name, run))
	if n := len(l.coroutines); n > 64 && n > 2*len(l.world.alive) {
		l.forgetEnded()
	}
}

func (l *Life) forgetEnded() {
	kept := l.coroutines[:0]
	for _, c := range l.coroutines {
		if c.place >= 0 {
			kept = append(kept, c)
		}
	}
	clear(l.coroutines[len(kept):])
	l.coroutines = kept
}

// Scheduler is World.Scheduler for the actors of this life.
func (l *Life) Scheduler(node string) *Scheduler {
	s := l.world.Scheduler(node)
	s.life = l
	return s
}

// Clock is a clock like c whose timers belong to this life.
func (l *Life) Clock(c *Clock) *Clock {
	own := *c
	own.life = l
	return &own
}

// End ends the life. Its coroutines are ended where they wait: each wait returns false from now on, and what they still do on their way out
// reaches nothing but the memory of their own process. It must not be called from a coroutine of this life.
func (l *Life) End() {
	if l.over {
		return
	}
	l.over = true
	for _, c := range l.coroutines {
		c.kill()
	}
	l.coroutines = nil
	l.world.timers.dropOf(l)
}

// kill ends a coroutine wherever it waits.
func (c *coroutine) kill() {
	if c.place < 0 {
		return
	}
	w := c.world
	if w.current == c {
		panic("simrt: " + c.name + " ends its own life")
	}
	before := w.current
	c.killed = true
	w.current = c
	c.stop()
	w.current = before
	w.forget(c)
}

// dropOf disarms the timers of a life.
func (h *timerHeap) dropOf(l *Life) {
	kept := (*h)[:0]
	for _, t := range *h {
		if t.clock.life == l {
			t.at = -1
			continue
		}
		t.at = len(kept)
		kept = append(kept, t)
	}
	clear((*h)[len(kept):])
	*h = kept
	h.order()
}

// ended reports whether a clock's timers may not ring any more.
func (c *Clock) ended() bool { return c.life != nil && c.life.over }
