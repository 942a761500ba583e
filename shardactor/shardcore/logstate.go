package shardcore

import (
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// logState is what a core knows of one log.
//
//  1. commit <= durable <= tail;
//  2. appends are in claim order, contiguous, and end at tail; each covers at least one record;
//  3. unsynced is the sum of the appends' bytes.
type logState struct {
	generation id.Generation
	tail       id.Offset // end of what was claimed
	durable    id.Offset // end of what is safe here
	commit     id.Offset // end of what is safe on a majority: what may be read and answered
	appends    []appendState
	unsynced   int
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

// check verifies the invariants; open says that claims of the current turn lie between the last append and the tail.
func (l *logState) check(name Log, open bool) error {
	if l.commit > l.durable || l.durable > l.tail {
		return fmt.Errorf("log %d: commit %d, durable %d and tail %d are out of order", name, l.commit, l.durable, l.tail)
	}
	end, bytes := l.durable, 0
	for _, a := range l.appends {
		if a.end <= end && !a.done {
			return fmt.Errorf("log %d: append %d ends at %d, before %d", name, a.seq, a.end, end)
		}
		end, bytes = a.end, bytes+a.bytes
	}
	if open && end < l.tail {
		end = l.tail
	}
	if end != l.tail || bytes != l.unsynced {
		return fmt.Errorf("log %d: appends end at %d with %d bytes; tail is %d with %d", name, end, bytes, l.tail, l.unsynced)
	}
	return nil
}
