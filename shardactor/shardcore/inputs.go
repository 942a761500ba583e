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

// Recovered says what Recover found. The core leads once the generation is saved, see Save.
type Recovered struct {
	// Tails are the ends of the logs.
	Tails [logCount]id.Offset
	// Base is the oldest offset the main log still holds.
	Base id.Offset
	// Producers is the memory of numbered publishes: everything noted from the batches of the main log. It belongs to the core from
	// here on; nil is an empty one.
	Producers *Producers
}

// MainTail is what Recovered carries for a shard whose other logs are empty.
func MainTail(end id.Offset) [logCount]id.Offset {
	var tails [logCount]id.Offset
	tails[LogMain] = end
	return tails
}

// OpenFailed says that a log could not be opened. Damaged: what it holds is known to be bad, and only an operator can help.
type OpenFailed struct {
	Reason  string
	Damaged bool
}

// Write asks for one batch to be appended to the main log. Answered by exactly one Answer. The core keeps the Write until
// then; it fills the batch's Base, Generation and AppendMicros when it claims the offsets.
//
// A batch with a ProducerID is numbered: it is appended only if its Sequence is the next of that producer. One that is remembered with
// the same content is not appended again; it waits for the first one and is answered its offset.
type Write struct {
	Reply Reply
	Token Token
	Batch *batch.Batch
	// HasExpected makes the write conditional: it is appended only if it would begin at Expected. The batch that is compared with is the
	// last one claimed, whether or not it is safe yet.
	HasExpected bool
	Expected    id.Offset
	// AtClaim asks for the answer at the claim, without an offset; a write that fails later is reported by AckedLost. It has no effect
	// on numbered and conditional writes, whose answers are about the log, nor under Options.Blocking, where the answer is what holds
	// a publisher back.
	AtClaim bool
	// Apply asks for the batch to be folded into the shard's reading before it is answered (cache writes).
	Apply bool
	// Stamp, when not nil, is called at the claim with the wall clock in Unix milliseconds, before the batch goes anywhere:
	// a cache put fixes its absolute expiry there.
	Stamp func(b *batch.Batch, nowMillis uint64)
}

// Persisted completes the Append or Save of that number: it is safe. A number that is not known, because a failure before it
// voided it, changes nothing.
type Persisted struct{ Seq uint64 }

// PersistedTo completes every Append and Save up to that number: for a log that completes them in order and tells the newest only.
type PersistedTo struct{ Seq uint64 }

// Released says that readers have room for everything below End. Under Options.Blocking the shell answers each Readable with
// it, and gives it again when End has moved; ends do not fall.
type Released struct{ End id.Offset }

// WriteFailed completes an Append that failed; nothing from Seq on was written and every later claim is void. The next Append lands
// where this one would have. A Save that failed is tried again.
type WriteFailed struct {
	Seq    uint64
	Reason string
	// Full says that there was no room: certainly nothing was written, and writes work again once there is room.
	Full bool
}

// Poisoned says that the log acknowledges nothing any more: a sync failed, and what was on its way may or may not be stored. The way
// back is a new Open.
type Poisoned struct{ Reason string }

// Trimmed says that retention removed everything of the main log below Base.
type Trimmed struct{ Base id.Offset }

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
func (PersistedTo) input() {}
func (Released) input()    {}
func (WriteFailed) input() {}
func (Poisoned) input()    {}
func (Trimmed) input()     {}
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

// Save persists the generation before any Append of it; answered by Persisted or WriteFailed with the same Seq. Nothing is served
// until it is persisted. Numbers of Save and Append ascend together.
type Save struct {
	Seq        uint64
	Generation id.Generation
}

// Append writes batches at the tail of a log; answered by Persisted or WriteFailed with the same Seq. Batches is empty when a failure
// voided it before it left: then there is nothing to do and nothing to answer.
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

// Fold hands over commits that are about to become readable, for the state they change: it comes right before the Readable that shows
// their events.
type Fold struct{ Batches []*batch.Batch }

// AckedLost says that Records were answered at the claim and are not in the log, or may not be.
type AckedLost struct{ Records uint64 }

// Answers ends requests, in this order.
type Answers struct{ List []Answer }

// Answer ends one request. It is done when Refusal and Refused are nil: then the batch begins at Offset. Apply asks the shell to
// fold that batch into the reading first and to answer with the outcome of that.
type Answer struct {
	Reply   Reply
	Token   Token
	Refusal *wire.Refusal
	// Refused says why a numbered or conditional write was not appended: sequence_gap, unknown_producer, sequence_expired,
	// sequence_reused or offset_mismatch. Nothing was written.
	Refused *wire.RefusedReason
	Offset  id.Offset
	// NoOffset says that the write was answered at the claim: Offset is not told, since the claim may still fail.
	NoOffset bool
	Apply    *batch.Batch
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
func (Fold) effect()        {}
func (AckedLost) effect()   {}
func (RoleChanged) effect() {}
