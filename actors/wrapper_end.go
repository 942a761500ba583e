package actors

// refuseQueued gives back what was accepted and will not be stepped. It runs once the stop is decided, before the Stopping turn.
func (w *wrapper) refuseQueued() {
	w.takeNotices()
	data, control := w.b.drain()
	for data.n > 0 {
		w.unstepped++
		w.callback("unstepped", w.spec.onUnstepped, data.pop(&w.b.sys.chunks).msg)
	}
	for control.n > 0 {
		w.callback("undelivered", w.spec.onUndelivered, control.pop(&w.b.sys.chunks).msg)
	}
}

// takeNotices moves notices that came before the stop to where the last turn before Stopping finds them.
func (w *wrapper) takeNotices() {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.ended = append(w.ended, w.b.notices...)
	w.b.notices = nil
}

// unanswered settles as unknown whatever may still wait for an answer: the data messages of the turn that just panicked, and the ledger.
func (w *wrapper) unanswered(turn []any) {
	for w.ledger.q.n > 0 {
		w.unknownIfOpen(w.ledger.q.pop(&w.b.sys.chunks).msg)
	}
	for _, m := range turn {
		w.unknownIfOpen(m)
	}
}

func (w *wrapper) unknownIfOpen(m any) {
	if settled(m) {
		return
	}
	w.unknown++
	w.callback("unanswered", w.spec.onUnanswered, m)
}

// callback calls one of the Spec's functions with one message; its panic costs only that call.
func (w *wrapper) callback(during string, f func(any), m any) {
	if f == nil {
		return
	}
	ok := false
	defer w.recover(during, &ok)
	f(m)
	ok = true
}

// finish ends the incarnation: nothing of it is left when its watchers and its parent hear of it. A ref kept by somebody pins the
// mailbox, but none of what the actor held.
func (w *wrapper) finish() {
	b := w.b
	w.unanswered(nil)
	if w.timer != nil {
		w.timer.Stop()
	}
	b.dropFault()
	for _, target := range w.watching {
		target.unwatch(actorWatcher{b})
	}
	top := w.spec.top
	w.watching, w.actor, w.ended, w.ctx, w.spec = nil, nil, nil, nil, spec{tenant: w.spec.tenant}
	reason := Orderly
	if w.failure != nil {
		reason = Panicked
	}
	b.kind.remove(b)
	b.kind.stopped[reason].Inc()
	b.sys.Emit(ActorStopped{Path: b.path, Kind: b.kind.name, Reason: reason, Unstepped: w.unstepped, Unknown: w.unknown})
	b.sys.ended(b, top)
	for _, watcher := range b.depart() {
		watcher.ended(w.terminated())
	}
}

// terminated describes the end of this incarnation.
func (w *wrapper) terminated() Terminated {
	t := Terminated{Path: w.b.path, Name: w.b.name, ID: w.b.id}
	if w.failure != nil {
		t.Reason, t.Panic = Panicked, w.failure
	}
	return t
}
