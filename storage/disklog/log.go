package disklog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// Log is one shard's log. Its methods may be called from any goroutine; those that take a seq are called by the one that numbers them.
//
// How it works: what is asked for stands in one queue, in order. A job of the executor takes the appends at its head and writes them; when
// it is done, what is written gets synced by one job at a time, while the next appends are written beside it. What needs the
// log for itself (roll, cut, save, idle, close) waits until no job runs and then takes the place of both. So the fields of the file at the
// end are touched by one job at a time, and those that others look at are behind mu.
//
//	queue   -> write job -> written, index, tail           appends only
//	written -> sync job  -> synced, durable, durable.mark   one sync covers all that was written when it began
//	queue   -> sole job  -> segments, small files           nothing else runs
type Log struct {
	store  *Store
	spec   *place
	notify Notify

	base, durable, tail atomic.Uint64
	turn                atomic.Uint32 // which of owners write jobs are submitted for
	owners              [2]byte
	made                atomic.Pointer[works]

	notifyMu sync.Mutex // held while completions are handed out, so that they stay in order; before mu
	mark     mark
	maint    sync.Mutex // held by whatever removes or replaces segments or snapshots; before mu

	mu       sync.Mutex
	queue    []op
	spare    []op // the queue of before, empty, to be used again
	pending  []completion
	nextBase id.Offset // where the next append has to begin
	voiding  bool      // a write failed: appends that do not begin at nextBase are dropped
	writing  bool      // a write job is queued or runs
	syncing  bool      // a sync job, or a sole one, is queued or runs
	sole     bool      // it is a sole one
	wantSync bool
	timed    bool // a timer runs that will ask for a sync
	closing  bool
	closed   bool
	failed   error // a *PoisonedError or *StuckError: why nothing is written any more
	poisoned bool

	segs    []segmentMeta // oldest first; the last one is being written, unless it is sealed
	cuts    uint64        // how often segments were cut or replaced: a read that saw it move begins again
	written uint64        // bytes appended since the log was opened
	synced  uint64        // of them, those known to be durable
	kept    segment.Replica
	retain  Retention
	active  *active // the files for writing; nil while idle

	recovery     *RecoveryInfo
	nextAwake    *Log // in the store's list of logs to look after
	prevAwake    *Log
	awake        bool
	touched      bool
	timer        func() bool // takes the timer of timed back
	closeWaiters []func(error)
}

// place is what does not change about a log: where it is and whose.
type place struct {
	shard    string // as errors call it
	dir      string
	device   uint64
	log      id.LogID
	salt     segment.Salt
	nameHash uint64
	compress bool
}

// segmentMeta is what a log keeps in memory of each of its segments.
type segmentMeta struct {
	id       uint64
	base     id.Offset
	end      id.Offset // after its last record
	bytes    int64     // up to the end of its batches
	least    uint64    // append time of its oldest and newest record, in microseconds; 0 if it has none
	greatest uint64
	batches  uint32
	sum      uint32 // of the file up to bytes, if summed
	summed   bool
	sealed   bool
	packed   bool // CompressSealed is done with it
}

// fileBytes is the size of the segment's file.
func (m *segmentMeta) fileBytes() int64 {
	if m.sealed {
		return m.bytes + segment.FooterSize
	}
	return m.bytes
}

// RecoveryInfo says what opening a log found and did.
type RecoveryInfo struct {
	TruncatedBytes int64  // cut off the end: an append that was under way
	Repaired       string // what was done about it; empty if nothing
	Duration       time.Duration
	Segments       int
	Created        bool // the log is new
}

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
