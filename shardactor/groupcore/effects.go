package groupcore

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Effect is everything a group can ask for. Effects of one turn are performed in order; what they point to is valid until the next Take.
//
//sumtype:decl
type Effect interface{ effect() }

// Log names one of the two logs that a group writes.
type Log uint8

const (
	// LogCursors holds positions, settled ranges and delivery numbers.
	LogCursors Log = iota
	// LogDeadLetters holds dead letters.
	LogDeadLetters

	logCount
)

// Persist appends one batch of kind Records to a log, whole or not at all. Answered by Persisted or Failed with the same Seq. Of each log
// one is on its way at most. Body belongs to the shell from here on.
type Persist struct {
	Seq   uint64
	Log   Log
	Body  []byte // Count records as AppendRecord makes them
	Count uint32
	// Wait says that somebody waits for it; if not, it may take its time.
	Wait bool
}

// Fetch reads records for a poll, in this order, as far as the payload of one answer goes. Answered by Read or ReadFailed. Ask is that of the
// poll, which the Deliver that follows answers, or another Fetch comes first.
type Fetch struct {
	Ask
	Poll    uint64
	Offsets []id.Offset
}

// Handed is one record of a Deliver.
type Handed struct {
	Offset   id.Offset
	Attempts uint32 // of this delivery, at most the limit
	Skipped  uint64 // offsets just below that hold no record any more, or never held one for clients
}

// Deliver answers a poll: with what was found for it, or with nothing, Fetched is the Fetch that read the payloads; 0 if there was none.
type Deliver struct {
	Ask
	Fetched uint64
	Records []Handed
}

// Answers go to their askers.
type Answers struct{ List []Answer }

// Answer answers a request that is no Poll, or refuses any.
type Answer struct {
	Ask
	Refusal *wire.Refusal // nil: it was done
	// Visible answers Extend: how long the claim stands from now.
	Visible time.Duration
	// Offset and Moved answer Seek.
	Offset id.Offset
	Moved  bool
	// Existed answers Remove.
	Existed bool
	// Dead answers ListDead, ascending.
	Dead []id.Offset
	Info Info // answers Describe
}

// Info is how far a group is.
type Info struct {
	Exists   bool
	Cursor   id.Offset // that is durable
	Tail     id.Offset
	InFlight int // claimed, or on their way to a poll
	Delayed  int // neither claimed nor to be had yet
	Owed     int // to be handed out again
	Dead     int // listed
}

// Deadline asks for a Wake at this moment; it replaces an earlier one. Monotonic time, as in Step.
type Deadline struct{ At time.Duration }

// Idle says that the group was untouched for Options.IdleAfter and holds nothing that only memory holds: the core may be dropped, and be
// made again when somebody asks.
type Idle struct{}

// Spare gives room back that was granted.
type Spare struct {
	Of      Budget
	Records int
}

func (*Persist) effect() {}
func (*Fetch) effect()   {}
func (*Deliver) effect() {}
func (*Answers) effect() {}
func (Deadline) effect() {}
func (Idle) effect()     {}
func (Spare) effect()    {}
