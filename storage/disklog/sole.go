package disklog

import (
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// runSole does the op at the head of the queue, with no other job of the log beside it. If that is an append, it is a segment that has to
// be begun for it; the append itself stays for a write job.
func (l *Log) runSole() {
	l.mu.Lock()
	var o op
	if len(l.queue) > 0 {
		o = l.queue[0]
		if o.kind != opAppend {
			n := copy(l.queue, l.queue[1:])
			clear(l.queue[n:])
			l.queue = l.queue[:n]
		}
	}
	l.mu.Unlock()
	l.flush.Lock()
	l.perform(&o)
	l.flush.Unlock()
	l.deliver()
	l.mu.Lock()
	l.sole, l.syncing = false, false
	l.startAndUnlock()
}

func (l *Log) perform(o *op) {
	switch o.kind {
	case 0: // a sync failed while this waited, and the queue was dropped
	case opAppend:
		if err := l.roll(); err != nil {
			l.refuseHead(err)
		}
	case opSave:
		l.answer(o.seq, l.save(o.replica))
	case opKeep:
		o.done(l.save(o.replica))
	case opTruncate:
		l.answer(o.seq, l.truncate(o.offset))
	case opReset:
		l.answer(o.seq, l.reset(o.offset))
	case opSeal:
		l.answerSeal(o.seq, l.rollUsed())
	case opIdle:
		l.rest()
	case opClose:
		l.finish(l.leave())
	}
}

// refuseHead refuses the append for which no segment could be begun.
func (l *Log) refuseHead(err error) {
	l.mu.Lock()
	seq, queued := uint64(0), len(l.queue) > 0 && l.queue[0].kind == opAppend
	if queued {
		seq = l.queue[0].seq
	}
	l.mu.Unlock()
	if queued {
		l.refuse(seq, err)
	}
}

// answer completes an op that is done, or refuses it.
func (l *Log) answer(seq uint64, err error) {
	if err != nil {
		l.refuse(seq, err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.poisoned {
		l.pending = append(l.pending, completion{seq: seq, need: l.written})
	}
}

// answerSeal completes a Seal, or refuses it. What is queued behind it neither begins anywhere else nor knows of it: it is not dropped.
func (l *Log) answerSeal(seq uint64, err error) {
	if err != nil {
		l.countRefusal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.poisoned {
		l.pending = append(l.pending, completion{seq: seq, need: l.written, err: err, seal: true})
	}
}

// rollUsed begins a new segment unless the newest one is empty.
func (l *Log) rollUsed() error {
	l.mu.Lock()
	empty, failed := l.last().batches == 0, l.failed
	l.mu.Unlock()
	if failed != nil || empty {
		return failed
	}
	return l.roll()
}

// replicaChange is what a save changes.
type replicaChange struct {
	generation *id.Generation
	commit     *id.Offset
	lost       *[]segment.LostEnd
}

// save makes a change of the replica file durable.
func (l *Log) save(c replicaChange) error {
	l.mu.Lock()
	now, failed := l.kept, l.failed
	l.mu.Unlock()
	next := now
	if c.generation != nil {
		next.Generation = *c.generation
	}
	if c.commit != nil {
		next.Commit = *c.commit
	}
	if c.lost != nil {
		next.Lost = *c.lost
	}
	if failed != nil || next.Equal(&now) {
		return failed
	}
	bySync, err := writeSmall(l.store.fs, l.spec.dir, segment.ReplicaName, segment.AppendReplica(nil, l.spec.salt, &next))
	if err != nil {
		if bySync {
			l.poison(err)
		}
		return err
	}
	l.mu.Lock()
	l.kept = next
	l.mu.Unlock()
	return nil
}

// rest makes everything durable and gives the files back. The log goes on with the next append.
func (l *Log) rest() error {
	l.maint.Lock()
	defer l.maint.Unlock()
	l.mu.Lock()
	a, last, target, failed := l.active, *l.last(), l.written, l.failed
	dirty := l.written > l.synced && !l.poisoned
	l.mu.Unlock()
	if a == nil {
		return failed
	}
	if dirty && !l.sync(a, &last, target) { // of a log that is stuck, what was written before is as good as any
		failed = l.why()
	}
	if failed == nil {
		failed = l.mark.change(l, func(*segment.Mark) {})
	}
	if failed == nil && a.file != nil {
		l.saveIndex(a.index)
		a.trim(last.bytes)
	}
	l.closeFile(a)
	l.mark.close()
	l.mu.Lock()
	l.active, l.spare = nil, nil
	if len(l.queue) == 0 {
		l.queue = nil
	}
	if len(l.pending) == 0 {
		l.pending = nil
	}
	l.mu.Unlock()
	l.made.Store(nil)
	l.store.unwatch(l)
	return failed
}

// finish ends the log.
func (l *Log) finish(err error) {
	l.mu.Lock()
	l.closed = true
	lost := l.written - l.synced // of a log that failed
	if lost > 0 {
		l.synced, l.pending = l.written, nil
	}
	waiters := l.closeWaiters
	l.closeWaiters = nil
	l.mu.Unlock()
	l.store.opts.Counters.UnsyncedBytes.Add(-int64(lost))
	l.store.forget(l)
	for _, done := range waiters {
		done(err)
	}
}
