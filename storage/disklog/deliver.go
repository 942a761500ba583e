package disklog

// deliver hands out the completions whose time has come, in order.
func (l *Log) deliver() {
	l.notifyMu.Lock()
	defer l.notifyMu.Unlock()
	for {
		l.mu.Lock()
		c, ok := l.ripe()
		l.mu.Unlock()
		switch {
		case !ok:
			return
		case c.err != nil && c.seal:
			l.notify.SealFailed(c.seq, c.err)
		case c.err != nil:
			l.notify.WriteFailed(c.seq, c.err)
		default:
			l.notify.Persisted(c.seq)
		}
	}
}

// ripe takes the next completion that may be given: of successes that follow each other, the last stands for all. mu is held.
func (l *Log) ripe() (c completion, ok bool) {
	if l.poisoned {
		return c, false
	}
	n := 0
	for n < len(l.pending) {
		p := l.pending[n]
		if l.spec.fsync == OnCommit && p.need > l.synced || ok && p.err != nil {
			break
		}
		c, ok = p, true
		n++
		if p.err != nil {
			break
		}
	}
	rest := copy(l.pending, l.pending[n:])
	clear(l.pending[rest:])
	l.pending = l.pending[:rest]
	return c, ok
}

// poison ends the log after a sync that failed: of a file or of a directory, by whatever job.
func (l *Log) poison(err error) {
	p := &PoisonedError{Shard: l.spec.shard, Err: err}
	l.store.opts.Counters.SyncFailures.Add(1)
	l.store.poison(l.spec.dir, p)
	l.notifyMu.Lock()
	defer l.notifyMu.Unlock()
	l.mu.Lock()
	first := !l.poisoned
	if first {
		l.poisoned, l.failed = true, p
		l.pending, l.wantSync = nil, false
		l.dropAll()
	}
	l.mu.Unlock()
	if first {
		l.notify.Poisoned(p)
	}
}

// dropAll empties the queue of everything but a close. mu is held.
func (l *Log) dropAll() {
	closing := false
	for i := range l.queue {
		closing = closing || l.queue[i].kind == opClose
	}
	clear(l.queue)
	l.queue = l.queue[:0]
	if closing {
		l.queue = append(l.queue, op{kind: opClose})
	}
}

// stuck ends writing after a cut that could not be finished; the next start finishes it. It returns why nothing is written any more.
func (l *Log) stuck(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = &StuckError{Shard: l.spec.shard, Err: err}
	}
	return l.failed
}

func (l *Log) isPoisoned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.poisoned
}
