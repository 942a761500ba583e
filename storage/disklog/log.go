package disklog

import (
	"sync"
	"sync/atomic"

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
	size                atomic.Int64  // of all segments: the sum of their fileBytes; changed with mu held
	turn                atomic.Uint32 // which of owners write jobs are submitted for
	owners              [2]byte
	made                atomic.Pointer[works]

	notifyMu sync.Mutex // held while completions are handed out, so that they stay in order; before mu
	mark     mark
	flush    sync.Mutex // held by the one that syncs, or has the log for itself; before maint
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

	saving map[string]bool // names of the snapshots that are being written; nil: none
	drops  uint64          // how often snapshots were dropped: one that saw it move is not to be kept

	segs    []segmentMeta // oldest first; the last one is being written, unless it is sealed
	behind  int           // segments dropped from the head of segs since its memory was last given back
	cuts    uint64        // how often segments were cut or replaced: a read that saw it move begins again
	written uint64        // bytes appended since the log was opened
	synced  uint64        // of them, those known to be durable
	kept    segment.Replica
	from    id.Offset // where appends began after the open, and how far they may be told of: see Spec.GivenOnce
	told    id.Offset
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
