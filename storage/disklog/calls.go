package disklog

import (
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// ID is the log's identity: the same on all replicas, and never that of another log.
func (l *Log) ID() id.LogID { return l.spec.log }

// Dir is the log's directory, below the store's root.
func (l *Log) Dir() string { return l.spec.dir }

// Bounds returns the oldest offset kept, the end of what is known to be on the device, and the end of what is written. It is cheap.
func (l *Log) Bounds() (base, durable, tail id.Offset) {
	// In this order base <= durable <= tail holds for what is returned even while all three move up.
	base, durable = id.Offset(l.base.Load()), id.Offset(l.durable.Load())
	return base, durable, id.Offset(l.tail.Load())
}

// Whole reports whether the log still has its first segment: nothing that was ever appended was removed at its head, wherever its offsets begin.
func (l *Log) Whole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segs[0].id == 0
}

// Size is how many bytes the segments of the log hold, headers and footers included: what Retention.Bytes is compared with. It is cheap.
func (l *Log) Size() int64 { return l.size.Load() }

// Recovery tells what opening the log found.
func (l *Log) Recovery() RecoveryInfo { return *l.recovery }

// Generation is the one saved last, zero for none. SaveGeneration changes it once it is durable.
func (l *Log) Generation() id.Generation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Generation
}

// SetRetention replaces what Retain goes by.
func (l *Log) SetRetention(r Retention) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retain = r
}

// Append queues batches to be written as one, whole or not at all. They continue each other, and the first begins where the one queued
// before ended; anything else is a broken invariant, except after a failed write. From now on they belong to the log and to its
// readers: nobody changes them. It never blocks. How much is queued is the caller's to bound.
func (l *Log) Append(seq uint64, batches []*batch.Batch) {
	size, end := measure(batches)
	l.mu.Lock()
	if !l.accepts(batches[0].Base) {
		l.mu.Unlock()
		return
	}
	l.nextBase = end
	l.queue = append(l.queue, op{kind: opAppend, seq: seq, batches: batches, size: size})
	l.startAndUnlock()
}

// accepts reports whether an append at base is to be queued. mu is held.
func (l *Log) accepts(base id.Offset) bool {
	switch {
	case l.closing || l.poisoned:
		return false
	case base == l.nextBase:
		l.voiding = false
		return true
	case l.voiding:
		return false
	}
	panic("disklog: append at offset " + base.String() + " to a log that ends at " + l.nextBase.String())
}

// SaveGeneration makes g durable before anything that is queued after it. It writes nothing if g is saved already.
func (l *Log) SaveGeneration(seq uint64, g id.Generation) {
	l.enqueue(op{kind: opSave, seq: seq, replica: replicaChange{generation: &g}})
}

// Lost is how the log was shorter, when it was opened, than logs beside it say, as it is kept. The caller does not change it.
func (l *Log) Lost() []segment.LostEnd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Lost
}

// SaveBeginning is SaveGeneration, which makes durable with it what Lost returns from then on: at most segment.MaxLostEnds of them, and the log's
// from now on.
func (l *Log) SaveBeginning(seq uint64, g id.Generation, lost []segment.LostEnd) {
	l.enqueue(op{kind: opSave, seq: seq, replica: replicaChange{generation: &g, lost: &lost}})
}

// KeepLost makes what Lost returns durable on its own, whatever else is written, and calls done from a job of the executor. A failure refuses
// nothing but this. It is not called if the log fails or is closed before it comes to that.
func (l *Log) KeepLost(lost []segment.LostEnd, done func(error)) {
	l.enqueue(op{kind: opKeep, replica: replicaChange{lost: &lost}, done: done})
}

// SaveCommit makes the commit offset durable. Cuts below it are refused from then on.
func (l *Log) SaveCommit(seq uint64, commit id.Offset) {
	l.enqueue(op{kind: opSave, seq: seq, replica: replicaChange{commit: &commit}})
}

// TruncateTo drops everything at and after an offset, which begins a batch or is the tail. It is refused, by WriteFailed, with a
// *BelowCommitError or a *NotBoundaryError.
func (l *Log) TruncateTo(seq uint64, off id.Offset) {
	l.enqueue(op{kind: opTruncate, seq: seq, offset: off})
}

// ResetTo drops everything and goes on at base. It is refused, by WriteFailed, with a *BelowCommitError.
func (l *Log) ResetTo(seq uint64, base id.Offset) {
	l.enqueue(op{kind: opReset, seq: seq, offset: base})
}

// Seal ends the segment that is being written, if it holds anything, and begins the next one.
func (l *Log) Seal(seq uint64) { l.enqueue(op{kind: opSeal, seq: seq}) }

// Sync asks for a sync of what is written, whatever the mode. Bounds tells when it is done.
func (l *Log) Sync() {
	l.mu.Lock()
	l.wantSync = l.written > l.synced
	l.startAndUnlock()
}

// Close writes and syncs what is queued, gives back the files, and calls done, from a job of the executor, with what went wrong. Whatever
// is asked for afterwards is dropped; reads fail with a *ClosedError.
func (l *Log) Close(done func(error)) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		done(nil)
		return
	}
	l.closeWaiters = append(l.closeWaiters, done)
	if l.closing {
		l.mu.Unlock()
		return
	}
	l.closing = true
	l.queue = append(l.queue, op{kind: opClose})
	l.startAndUnlock()
}

func (l *Log) enqueue(o op) {
	l.mu.Lock()
	if l.closing || l.poisoned {
		l.mu.Unlock()
		return
	}
	switch o.kind {
	case opTruncate:
		l.nextBase = min(l.nextBase, o.offset)
	case opReset:
		l.nextBase = o.offset
	}
	l.queue = append(l.queue, o)
	l.startAndUnlock()
}
