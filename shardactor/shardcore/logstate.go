package shardcore

import (
	"fmt"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// logState is what a core knows of one log.
//
//  1. base <= commit <= durable <= tail;
//  2. appends are in claim order, contiguous, and end where the claims begin, which end at tail; each covers at least one record;
//  3. unsynced is the sum of the appends' bytes;
//  4. pending holds, in claim order, exactly the writes that were claimed and have no outcome, and each ends at or below tail;
//  5. waiting holds, in the order they came, writes that wait for something above commit and at or below tail;
//  6. in a log that has failed nothing is claimed, and nobody waits.
type logState struct {
	generation id.Generation
	base       id.Offset // begin of what is kept, as far as it was told
	tail       id.Offset // end of what was claimed
	durable    id.Offset // end of what is safe here
	commit     id.Offset // end of what is safe on a majority: what was folded, may be read and answered
	appends    []appendState
	unsynced   int            // bytes
	claims     []*batch.Batch // claimed in this turn, not yet in an Append
	claimed    int            // bytes of claims
	pending    []pendingWrite
	waiting    []waitingWrite
	broken     string // why it takes nothing until it is opened anew, while the others go on; empty: it does
}

// appendState is one Append on its way.
type appendState struct {
	seq   uint64
	end   id.Offset
	bytes int
	done  bool
}

func (l *logState) begin(tail id.Offset) {
	*l = logState{generation: l.generation, tail: tail, durable: tail, commit: tail}
}

// dropPending forgets the oldest writes: they were answered.
func (l *logState) dropPending(done int) {
	if done == 0 {
		return
	}
	n := copy(l.pending, l.pending[done:])
	clear(l.pending[n:])
	l.pending = l.pending[:n]
}

// persisted marks the appends numbered from to to, both included, done and moves the durable end over the run of finished ones. It
// reports whether any was known.
func (l *logState) persisted(from, to uint64) bool {
	known := false
	for i := range l.appends {
		if a := &l.appends[i]; a.seq >= from && a.seq <= to {
			a.done, known = true, true
		}
	}
	done := 0
	for done < len(l.appends) && l.appends[done].done {
		l.durable = l.appends[done].end
		l.unsynced -= l.appends[done].bytes
		done++
	}
	l.appends = l.appends[:copy(l.appends, l.appends[done:])]
	return known
}

// abandon gives up the appends that are on their way: whether they are stored is not known, and their completions will mean nothing.
func (l *logState) abandon() { l.appends, l.unsynced, l.tail = l.appends[:0], 0, l.durable }

// failed gives back every claim from the append seq on.
func (l *logState) failed(seq uint64) bool {
	for i := range l.appends {
		if l.appends[i].seq != seq {
			continue
		}
		for _, a := range l.appends[i:] {
			l.unsynced -= a.bytes
		}
		l.appends = l.appends[:i]
		l.tail = l.durable
		if i > 0 {
			l.tail = l.appends[i-1].end
		}
		return true
	}
	return false
}

// check verifies the invariants, in constant time but for the appends on their way; answerable is the end of what may be answered.
func (l *logState) check(name Log, answerable id.Offset) error {
	if l.base > l.commit || l.commit > l.durable || l.durable > l.tail {
		return fmt.Errorf("log %d: base %d, commit %d, durable %d and tail %d are out of order", name, l.base, l.commit, l.durable, l.tail)
	}
	end, bytes := l.durable, 0
	for _, a := range l.appends {
		if a.end <= end && !a.done {
			return fmt.Errorf("log %d: append %d ends at %d, before %d", name, a.seq, a.end, end)
		}
		end, bytes = a.end, bytes+a.bytes
	}
	if n := len(l.claims); n > 0 && l.claims[0].Base == end {
		end = l.claims[n-1].End()
	}
	if end != l.tail || bytes != l.unsynced {
		return fmt.Errorf("log %d: appends and claims end at %d with %d bytes; tail is %d with %d", name, end, bytes, l.tail, l.unsynced)
	}
	if n := len(l.pending); n > 0 && (l.pending[0].batch.End() <= answerable || l.pending[n-1].batch.End() > l.tail) {
		return fmt.Errorf("log %d: writes [%d, %d) are pending outside (%d, %d]", name, l.pending[0].batch.Base, l.pending[n-1].batch.End(), answerable, l.tail)
	}
	if n := len(l.waiting); n > 0 && (len(l.pending) == 0 || !l.awaits(0) || !l.awaits(n-1)) {
		return fmt.Errorf("log %d: %d writes wait for something outside (%d, %d], and %d are pending", name, n, l.commit, l.tail, len(l.pending))
	}
	if l.broken != "" && (l.tail != l.durable || len(l.waiting) > 0) {
		return fmt.Errorf("log %d: it has failed; its tail is %d, durable %d, and %d writes wait", name, l.tail, l.durable, len(l.waiting))
	}
	return nil
}

// awaits reports whether a waiting write waits for what is claimed and not committed.
func (l *logState) awaits(i int) bool {
	return l.waiting[i].until > l.commit && l.waiting[i].until <= l.tail
}
