package shardcore

import (
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Log names one of the logs of a shard.
type Log uint8

const (
	// LogMain holds the records of a stream or the writes of a cache.
	LogMain Log = iota
	// LogCursors holds the positions of a stream's consumer groups.
	LogCursors
	// LogDeadLetters holds the offsets those groups gave up on.
	LogDeadLetters
	// LogCounters holds the counters beside a cache.
	LogCounters

	logCount
)

// Reply is where an answer goes. The core carries it from a request to its answer and never looks inside.
type Reply any

// Token is the place of a request at its Reply.
type Token uint64

// Input is everything that can happen to a shard.
//
//sumtype:decl
type Input interface{ input() }

// Open starts the replica at a generation. Its answer is the effect Recover.
type Open struct{ Generation id.Generation }

// Recovered says where the logs end that Recover opened.
type Recovered struct{ Tails [logCount]id.Offset }

// MainTail is what Recovered carries for a shard whose other logs are empty.
func MainTail(end id.Offset) [logCount]id.Offset {
	var tails [logCount]id.Offset
	tails[LogMain] = end
	return tails
}

// OpenFailed says that a log could not be opened.
type OpenFailed struct{ Reason string }

// Write asks for one batch to be appended to the main log. Answered by exactly one Answer. The core keeps the Write until
// then; it fills the batch's Base, Generation and AppendMicros when it claims the offsets.
type Write struct {
	Reply Reply
	Token Token
	Batch *batch.Batch
	// Apply asks for the batch to be folded into the shard's reading before it is answered (cache writes).
	Apply bool
	// Stamp, when not nil, is called at the claim with the wall clock in Unix milliseconds, before the batch goes anywhere:
	// a cache put fixes its absolute expiry there.
	Stamp func(b *batch.Batch, nowMillis uint64)
}

// Persisted completes the Append of that number: its batches are safe.
type Persisted struct{ Seq uint64 }

// Released says that readers have room for everything below End. Under Options.Blocking the shell answers each Readable with
// it, and gives it again when End has moved; ends do not fall.
type Released struct{ End id.Offset }

// WriteFailed completes an Append that failed; nothing from Seq on was written and every later claim is void.
type WriteFailed struct {
	Seq    uint64
	Reason string
}

// DiskStalled and DiskBack say that writes of this shard hang, and that they go on.
type DiskStalled struct{}

// DiskBack ends waitingForDisk.
type DiskBack struct{}

// Damaged says that the replica's data is known to be bad.
type Damaged struct{ Reason string }

// Drain asks to finish what was claimed and to take nothing more. Answered by the effect Drained.
type Drain struct{}

// Wake says that the deadline named by an effect has passed.
type Wake struct{}

func (Open) input()        {}
func (Recovered) input()   {}
func (OpenFailed) input()  {}
func (*Write) input()      {}
func (Persisted) input()   {}
func (Released) input()    {}
func (WriteFailed) input() {}
func (DiskStalled) input() {}
func (DiskBack) input()    {}
func (Damaged) input()     {}
func (Drain) input()       {}
func (Wake) input()        {}

// At is one input with the time it is stepped: wall clock for what is stored, monotonic for deadlines.
type At struct {
	Wall time.Time
	Mono time.Duration
}

// Effect is everything a shard can ask for. Effects of one turn are performed in order.
//
//sumtype:decl
type Effect interface{ effect() }

// Recover opens the logs; answered by Recovered or OpenFailed.
type Recover struct{}

// Save persists the generation before any Append of it.
type Save struct{ Generation id.Generation }

// Append writes batches at the tail of a log; answered by Persisted or WriteFailed with the same Seq.
type Append struct {
	Seq     uint64
	Log     Log
	Batches []*batch.Batch
}

// Readable lets readers of a log see everything below End.
type Readable struct {
	Log Log
	End id.Offset
}

// Answers ends requests, in this order.
type Answers struct{ List []Answer }

// Answer ends one request. Refusal nil means done: the batch begins at Offset. Apply asks the shell to fold that batch
// into the reading first and to answer with the outcome of that.
type Answer struct {
	Reply   Reply
	Token   Token
	Refusal *wire.Refusal
	Offset  id.Offset
	Apply   *batch.Batch
}

// Gate says whether the data lane is taken (Open) or held back by the mailbox.
type Gate struct{ Open bool }

// Deadline asks for a Wake at that time; the newest Deadline replaces the one before, zero time cancels it.
type Deadline struct{ At time.Duration }

// Serving says that this replica began or ceased to serve.
type Serving struct{ On bool }

// Drained says that nothing claimed is left.
type Drained struct{}

// RoleChanged reports a change of role, for events.
type RoleChanged struct {
	From, To string
	Reason   string
}

func (Recover) effect()     {}
func (Save) effect()        {}
func (Append) effect()      {}
func (Readable) effect()    {}
func (*Answers) effect()    {}
func (Gate) effect()        {}
func (Deadline) effect()    {}
func (Serving) effect()     {}
func (Drained) effect()     {}
func (RoleChanged) effect() {}
