package disklog

import (
	"time"
)

// runSync is the sync job. It covers everything that is written when it begins.
func (l *Log) runSync() {
	l.syncNow()
	l.mu.Lock()
	l.syncing = false
	l.startAndUnlock()
}

// syncNow syncs what is written when it begins, in whatever job it is called: after the sync or the op that is under way, if there is one, which
// waits for the disk alone and for no job.
func (l *Log) syncNow() {
	l.flush.Lock()
	defer l.flush.Unlock()
	l.mu.Lock()
	l.wantSync = false
	a, last, target := l.active, *l.last(), l.written
	idle := l.poisoned || a == nil || target == l.synced
	l.mu.Unlock()
	if !idle && l.sync(a, &last, target) {
		l.deliver()
		l.reserve(a, last.bytes)
	}
}

// sync makes the newest segment durable up to where last says it ended when written was target. It reports success; otherwise the log
// is poisoned.
func (l *Log) sync(a *active, last *segmentMeta, target uint64) bool {
	start := l.store.opts.Exec.Now()
	if err := a.file.Sync(); err != nil {
		l.poison(err)
		return false
	}
	took := l.store.opts.Exec.Now().Sub(start)
	l.mark.move(l, last)
	l.settle(last, target, took)
	return true
}

// settle notes that what was written when written was target is durable.
func (l *Log) settle(last *segmentMeta, target uint64, took time.Duration) {
	c := l.store.opts.Counters
	l.mu.Lock()
	records := uint64(last.end) - l.durable.Load()
	bytes := target - l.synced
	l.synced = target
	l.durable.Store(uint64(last.end))
	if l.timer != nil && l.timed && l.written == l.synced {
		if l.timer() {
			l.timed = false
		}
		l.timer = nil
	}
	l.mu.Unlock()
	c.UnsyncedBytes.Add(-int64(bytes))
	c.synced(records, took)
}
