package sessionactor

import (
	"math"
	"sync"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Snapshots bounds what the watches of a node hold of current values, from when they look until the last one was written: of one watch, of a
// connection and of all, of which a tenant may always have a share. Safe for concurrent use.
type Snapshots struct {
	places  *actors.Credit // for those that look at an index right now
	held    *Parking
	largest int64
}

const (
	// watchSnapshotBytes is the bound of one watch unless Options says otherwise: some hundred thousand small values.
	watchSnapshotBytes = 64 << 20
	// snapshotsHeld is how many of the largest all watches may hold together, snapshotsOfConn how many those of one connection; one is the share
	// of a tenant. snapshotPlaces is how many look at once: each of those may have twice as much in hand until it knows how much there is.
	snapshotsHeld   = 4
	snapshotsOfConn = 2
	snapshotPlaces  = 2
	// snapshotPatience is how long a watch holds current values of which its client takes none: none of the up to 128 KiB that are written at
	// a time. What they take is missing to others, and a client that reads takes that much in a few round trips; one that does not is told where
	// to go on, and misses nothing.
	snapshotPatience = 10 * time.Second
)

// NewSnapshots returns one that holds nothing, and allows one watch so many bytes; positive.
func NewSnapshots(largest int64) *Snapshots {
	n := int(min(largest, math.MaxInt/snapshotsHeld))
	limits := sessioncore.ParkLimits{Conn: snapshotsOfConn * n, Tenant: n, Node: snapshotsHeld * n}
	return &Snapshots{
		places: actors.NewCredit(1, snapshotPlaces), largest: largest,
		held: newParking(sessioncore.Parked{Name: "current values for watches", Reason: wire.ReasonWatchSnapshots}, limits),
	}
}

// Held is what watches hold now, in bytes; Limit what they may, and Largest what one of them may.
func (s *Snapshots) Held() int64    { return int64(s.held.Used()) }
func (s *Snapshots) Limit() int64   { return int64(s.held.Limits().Node) }
func (s *Snapshots) Largest() int64 { return s.largest }

// currentValues are those that a watch has yet to write, by version. The pump of the watch takes them one by one; a timer lets go of
// them when it gets nowhere. Whoever has taken one does not keep it over a write, so that what was let go of is gone.
type currentValues struct {
	giveBack func() // what was booked for them; neither of the two calls back
	gone     func() // the timer has let go of some

	mu       sync.Mutex
	list     []keyed.Entry
	next     int // of list, the first that was not taken
	patience actors.Timer
	held     bool      // they are booked
	lost     bool      // some were let go of that nobody had taken
	resume   id.Offset // the version of the first of those
}

// begin has values written that were booked. The timer runs from here on.
func (c *currentValues) begin(clock actors.Clock, list []keyed.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.held = list, true
	c.patience = clock.AfterFunc(snapshotPatience, c.tired)
}

// pending reports whether there is something to be written: values, or where to go on.
func (c *currentValues) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost || c.next < len(c.list)
}

// take takes the next value; false when there is none.
func (c *currentValues) take() (e keyed.Entry, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == len(c.list) {
		return keyed.Entry{}, false
	}
	c.next++
	return c.list[c.next-1], true
}

// moved says that the client has taken something.
func (c *currentValues) moved() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.patience.Reset(snapshotPatience)
	}
}

// missed is where to go on for a client that was not given all of them.
func (c *currentValues) missed() (resume id.Offset, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resume, c.lost
}

// tired lets go of what was not taken.
func (c *currentValues) tired() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held && c.next < len(c.list) {
		c.lost, c.resume = true, c.list[c.next].Version
		c.gone()
	}
	c.letGo()
}

// drop lets go of all.
func (c *currentValues) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.letGo()
}

func (c *currentValues) letGo() {
	if c.held {
		c.patience.Stop()
		c.giveBack()
	}
	c.list, c.next, c.held = nil, 0, false
}
