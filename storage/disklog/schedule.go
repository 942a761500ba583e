package disklog

import (
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/segment"
)

// todo is what next decided to start.
type todo struct{ write, sync, sole bool }

// next decides which jobs start now and marks them as started. mu is held.
//
// A sole op at the head of the queue waits for the jobs that run, and nothing is started in front of it. A roll syncs what was written by
// itself, so that the sync that a full segment still wants is not made twice.
func (l *Log) next() todo {
	if l.sole {
		return todo{}
	}
	if len(l.queue) > 0 && !l.writing && l.alone(&l.queue[0]) {
		if l.syncing {
			return todo{}
		}
		l.syncing, l.sole = true, true
		return todo{sole: true}
	}
	var t todo
	if len(l.queue) > 0 && !l.writing && l.mayWrite() {
		l.writing, t.write = true, true
	}
	if l.wantSync && !l.syncing && !l.poisoned {
		l.syncing, t.sync = true, true
	}
	return t
}

// alone reports whether an op needs the log for itself. mu is held.
func (l *Log) alone(o *op) bool {
	if o.kind != opAppend {
		return true
	}
	last := l.last()
	return l.failed == nil && (last.sealed || !l.fits(last.bytes, o.size))
}

// fits reports whether an append may go into the segment that is being written and is at bytes now.
func (l *Log) fits(bytes, size int64) bool {
	return bytes <= segment.HeaderSize || bytes+size+segment.FooterSize <= l.store.opts.SegmentBytes
}

// mayWrite holds writes back that would grow what a hanging sync has to cover. Under OnCommit the shard bounds what it has not been
// told of, and None promises nothing. mu is held.
func (l *Log) mayWrite() bool {
	return l.spec.fsync != Periodic || !l.syncing || int64(l.written-l.synced) < l.store.opts.UnsyncedBytes
}

// last is the segment at the end. mu is held.
func (l *Log) last() *segmentMeta { return &l.segs[len(l.segs)-1] }

// startAndUnlock starts what can run now.
func (l *Log) startAndUnlock() {
	t := l.next()
	l.mu.Unlock()
	l.start(t)
}

func (l *Log) start(t todo) {
	switch {
	case t.write && t.sync:
		l.submit(diskpool.Write, &l.owners[l.turn.Load()], l.works().write)
		l.submit(diskpool.Sync, l, l.works().sync)
	case t.write:
		l.submit(diskpool.Write, &l.owners[l.turn.Load()], l.works().write)
	case t.sync:
		l.submit(diskpool.Sync, l, l.works().sync)
	case t.sole:
		l.submit(diskpool.Sync, l, l.works().sole)
	}
}

func (l *Log) submit(kind diskpool.Kind, owner any, run func()) {
	w := l.works()
	l.store.opts.Exec.Go(diskpool.Job{Device: l.store.device, Kind: kind, Owner: owner, Run: run, Stalled: w.stalled, Back: w.back})
}

// works are the jobs of a log as functions, made once and not for each job, while the log is awake.
type works struct{ write, sync, sole, stalled, back func() }

func (l *Log) works() *works {
	if w := l.made.Load(); w != nil {
		return w
	}
	w := &works{write: l.runWrite, sync: l.runSync, sole: l.runSole, stalled: l.notify.Stalled, back: l.notify.Back}
	l.made.Store(w)
	return w
}

// continueWith goes on with what follows a write. The sync of what was just written does not go through another queue: this job does it.
// Writes of the log go on beside it meanwhile, so they are another owner's in the eyes of the executor.
func (l *Log) continueWith(t todo) {
	if l.store.opts.SyncApart || !t.sync && !t.sole {
		l.start(t)
		return
	}
	l.turn.Store(1 - l.turn.Load())
	l.start(todo{write: t.write})
	if t.sole {
		l.runSole()
	} else {
		l.runSync()
	}
}
