package shardactor

import (
	"sync"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// ages says, roughly, when the records of a log were committed: to ageStep, and for what was there before the log was looked at, not before
// that. It costs nothing until there are groups.
type ages struct {
	mu   sync.Mutex
	ends []ageMark // ascending in both, at most agesKept; the oldest are thinned out
}

// ageMark says that the log ended at end at a time.
type ageMark struct {
	end id.Offset
	at  time.Time
}

const (
	ageStep  = time.Second
	agesKept = 1024
)

// note takes the end of the log.
func (a *ages) note(end id.Offset, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.ends); n > 0 {
		last := &a.ends[n-1]
		if end <= last.end {
			return
		}
		if now.Sub(last.at) < ageStep {
			last.end = end // they count as old as the oldest of them
			return
		}
		if n == agesKept { // each mark of the older half takes over what the one behind it has: records seem older, never younger
			kept := a.ends[:0]
			for i := 0; i < n/2; i += 2 {
				kept = append(kept, ageMark{a.ends[i+1].end, a.ends[i].at})
			}
			a.ends = append(kept, a.ends[n/2:]...)
		}
	}
	a.ends = append(a.ends, ageMark{end, now})
}

// since is when the record at an offset was committed; false if it was not yet.
func (a *ages) since(o id.Offset) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lo, hi := 0, len(a.ends)
	for lo < hi {
		if mid := (lo + hi) / 2; a.ends[mid].end > o {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == len(a.ends) {
		return time.Time{}, false
	}
	return a.ends[lo].at, true
}
