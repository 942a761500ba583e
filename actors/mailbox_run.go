package actors

import "github.com/asynkron/protoactor-go/actor"

// run takes turns until there is no work, or its share of the pool is used. It is what the dispatcher calls.
func (b *mailbox) run() {
	returned := false
	defer func() {
		if !returned { // the actor ended the goroutine, as testing's FailNow does; its stop is decided and another one goes on
			b.dispatcher.Schedule(b.runFn)
		}
	}()
	b.runTurns()
	returned = true
}

func (b *mailbox) runTurns() {
	t := b.sys.borrowTurn()
	b.w.turn = t
	for range b.sys.turnsPerDispatch {
		if !b.next(t) {
			b.sys.returnTurn(t)
			return
		}
		b.perform(t)
	}
	more := b.rest()
	b.sys.returnTurn(t)
	if more {
		b.dispatcher.Schedule(b.runFn)
	}
}

// runOne takes one turn and reports the bytes it stepped, and whether the actor has more to do and must be scheduled again.
func (b *mailbox) runOne() (bytes int, more bool) {
	t := b.sys.borrowTurn()
	b.w.turn = t
	if b.next(t) {
		bytes = b.perform(t)
		more = b.rest()
	}
	b.sys.returnTurn(t)
	return bytes, more
}

// next gathers the next turn into t. Without work it leaves the mailbox unscheduled and returns false; from then on another
// goroutine may run the actor, so the caller must not touch it any more.
func (b *mailbox) next(t *Turn) bool {
	b.mu.Lock()
	if len(b.sysq) > 0 {
		t.sys = b.takeSystem()
		b.mu.Unlock()
		return true
	}
	if !b.ready() {
		b.w.turn = nil
		b.scheduled = false
		b.mu.Unlock()
		return false
	}
	if b.fault != nil {
		t.crash = b.fault.takeTurn()
	}
	items, bytes := b.sys.turnLimits()
	b.feedOut(items)
	b.takeControl(t, items)
	b.takeSignals(t)
	b.mu.Unlock()
	b.takeData(t, items-len(t.control), bytes)
	return true
}

// rest ends a dispatch: it reports whether there is more to do, and otherwise leaves the mailbox unscheduled.
func (b *mailbox) rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.w.turn = nil
	b.scheduled = len(b.sysq) > 0 || b.ready()
	return b.scheduled
}

// ready reports whether a turn can be taken now; mu is held, by the running goroutine or while nobody runs the actor.
func (b *mailbox) ready() bool {
	if b.closed || b.suspended {
		return false
	}
	if b.fault != nil {
		return b.readyDespiteFault()
	}
	return b.hasWork()
}

// hasWork reports whether there is anything for a turn; mu is held as for ready.
func (b *mailbox) hasWork() bool {
	return b.in.n+b.out.n+b.control.n > 0 || len(b.cells)+len(b.notices)+len(b.w.ended) > 0 || b.wake
}

// takeSystem removes the oldest of protoactor's messages; mu is held.
func (b *mailbox) takeSystem() any {
	m := b.sysq[0]
	b.sysq[0] = nil
	if b.sysq = b.sysq[1:]; len(b.sysq) == 0 {
		b.sysq = nil
	}
	return m
}

// feedOut makes the next turn's data messages available to takeData, which works without the lock; mu is held. An empty half is filled by
// swapping; a rest from before is topped up, so that turns stay full.
func (b *mailbox) feedOut(items int) {
	if b.out.n == 0 {
		b.in, b.out = b.out, b.in
		return
	}
	for b.in.n > 0 && b.out.n < items {
		b.out.push(&b.sys.chunks, b.in.pop(&b.sys.chunks))
	}
}

// takeControl moves completions to t, leaving a share of the turn to waiting data; mu is held.
func (b *mailbox) takeControl(t *Turn, items int) {
	n := min(b.control.n, items)
	if b.out.n > 0 {
		n = min(n, items-min(turnDataMin, items/2))
	}
	for range n {
		t.control = append(t.control, b.control.pop(&b.sys.chunks).msg)
	}
}

// takeSignals moves cells, notices and the timer's ring to t; mu is held.
func (b *mailbox) takeSignals(t *Turn) {
	t.rang, b.wake = b.wake, false
	if len(b.cells) > 0 {
		t.cells = append(t.cells, b.cells...)
		clear(b.cells)
		b.cells, b.cellIndex = b.cells[:0], nil
		if cap(b.cells) > cellsKept {
			b.cells = nil
		}
	}
	if len(b.notices) > 0 {
		t.ended = append(t.ended, b.notices...)
		b.notices = nil
	}
}

// takeData moves data messages from the half that only the running goroutine touches, and frees their room.
func (b *mailbox) takeData(t *Turn, items, bytes int) {
	taken := 0
	for b.out.n > 0 && len(t.data) < items && (len(t.data) == 0 || b.out.front().bytes <= bytes-taken) {
		it := b.out.pop(&b.sys.chunks)
		taken += it.bytes
		t.data = append(t.data, it.msg)
	}
	if len(t.data) > 0 {
		t.bytes = taken
		b.bytes.Add(-int64(taken)) // before items: a sender may see room late, never early
		b.items.Add(-int64(len(t.data)))
	}
}

// perform hands what next gathered to protoactor, which hands it to the wrapper. It returns the bytes of data stepped.
func (b *mailbox) perform(t *Turn) int {
	if t.sys != nil {
		m := t.sys
		t.sys = nil
		b.performSystem(m)
		return 0
	}
	bytes := t.bytes
	b.invoker.InvokeUserMessage(t)
	t.clear()
	return bytes
}

func (b *mailbox) performSystem(m any) {
	switch m.(type) {
	case *actor.SuspendMailbox:
		b.suspended = true
	case *actor.ResumeMailbox:
		b.suspended = false
	case *actor.Stop:
		b.w.refuseQueued()
		b.invoker.InvokeSystemMessage(m)
	default:
		b.invoker.InvokeSystemMessage(m)
	}
}

// drain takes everything still queued out of a closed mailbox: data in order, then control in order.
func (b *mailbox) drain() (data, control queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data = b.out
	for b.in.n > 0 {
		data.push(&b.sys.chunks, b.in.pop(&b.sys.chunks))
	}
	control = b.control
	b.in, b.out, b.control = queue{}, queue{}, queue{}
	b.cells, b.cellIndex = nil, nil
	b.bytes.Store(0)
	b.items.Store(0)
	b.wake = false
	return data, control
}
