package sessionactor

import (
	"sync/atomic"

	"github.com/felixd/felixd/actors"
)

// Snapshots bounds what the watches of a node hold of current values, from when they look until the last one was written. Safe for
// concurrent use.
type Snapshots struct {
	places *actors.Credit // for those that look at an index right now
	held   atomic.Int64
}

const (
	// watchSnapshotBytes is the bound of one watch unless Options says otherwise: some hundred thousand small values.
	watchSnapshotBytes = 64 << 20
	// snapshotsHeld is how many of the largest all watches may hold together, snapshotPlaces how many look at once: each of those may have
	// twice as much in hand until it knows how much there is.
	snapshotsHeld  = 4
	snapshotPlaces = 2
	// snapshotPause is how long a watch is told to wait that found no room, in milliseconds.
	snapshotPause = 500
)

// NewSnapshots returns one that holds nothing.
func NewSnapshots() *Snapshots { return &Snapshots{places: actors.NewCredit(1, snapshotPlaces)} }

// Held is what watches hold now, in bytes.
func (s *Snapshots) Held() int64 { return s.held.Load() }

// take books bytes; false means that there is no room for them, of snapshotsHeld times largest.
func (s *Snapshots) take(bytes, largest int64) bool {
	if s.held.Add(bytes) > snapshotsHeld*largest {
		s.held.Add(-bytes)
		return false
	}
	return true
}

func (s *Snapshots) give(bytes int64) { s.held.Add(-bytes) }
