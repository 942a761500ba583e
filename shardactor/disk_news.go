package shardactor

import (
	"sync"

	"github.com/felixd/felixd/wire/id"
)

// news is what jobs of the disk pool tell a shard. However much they tell, the shard's mailbox holds one message that says to look: ring is
// called when there is something and the shard has taken everything before.
//
//  1. rung says that the shard was called and did not look yet;
//  2. what is told in order stays in order: before, failed, after, and poisoned last. Of the rest only the newest counts.
type news struct {
	mu   sync.Mutex
	ring func()
	rung bool
	told told
}

// told is one look at the news.
type told struct {
	opened   *openedLog
	openErr  error
	before   uint64 // completed up to here, then
	failed   *failedWrite
	after    uint64 // completed up to here after that
	poisoned error
	unsealed error // the seal was refused, of which there is one at a time
	stalled  bool
	trimmed  id.Offset
	lostKept bool // or it failed, for this reason: what is to be kept of lost ends is durable
	lostErr  error
	snapshot bool // one of the producers, or of the keys, is wanted
	// turned says that a compaction which gave way may go on.
	turned bool
	// compacted is what came of the job of a compaction, of which there is one at a time; cold is of how many deletes the values were looked for, and
	// room says that there is some for the next value.
	compacted *compacted
	cold      int
	room      bool
}

// failedWrite is the first append or save that was refused.
type failedWrite struct {
	seq uint64
	err error
}

// tell changes what is told and calls the shard unless it was called.
func (n *news) tell(change func(*told)) {
	n.mu.Lock()
	change(&n.told)
	call := !n.rung && n.ring != nil
	n.rung = n.rung || call
	n.mu.Unlock()
	if call {
		n.ring()
	}
}

// take returns what was told since the last take; whether the disk stalls stays.
func (n *news) take() told {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rung = false
	out := n.told
	n.told = told{stalled: out.stalled}
	return out
}

// begin sets what calls the shard.
func (n *news) begin(ring func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ring = ring
}

func (x *told) persisted(seq uint64) {
	if x.failed == nil {
		x.before = seq
	} else {
		x.after = seq
	}
}

func (x *told) writeFailed(seq uint64, err error) {
	if x.failed == nil { // everything behind the first is void with it
		x.failed = &failedWrite{seq: seq, err: err}
	}
}
