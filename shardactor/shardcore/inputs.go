package shardcore

import (
	"time"

	"github.com/felixd/felixd/storage/batch"
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

// LogOpened says that a log other than the main one was opened: one which Recovered told nothing of, because it is needed now and nothing was
// claimed in it before; or one that has failed, anew.
type LogOpened struct {
	Log  Log
	Tail id.Offset
}

// LogFailed says that a log other than the main one acknowledges nothing any more: a sync failed, and what was on its way may or may not be
// stored. The rest of the replica goes on without it; writes to it are refused until LogOpened. Where the rest does not, it is Poisoned.
type LogFailed struct {
	Log    Log
	Reason string
}

// OpenFailed says that a log could not be opened. Damaged: what it holds is known to be bad, and only an operator can help.
type OpenFailed struct {
	Reason  string
	Damaged bool
}

// Write asks for one batch to be appended to a log. Answered by exactly one Answer. The core keeps the Write until
// then; it fills the batch's Base, Generation and AppendMicros when it claims the offsets.
//
// A batch with a ProducerID is numbered: it is appended only if its Sequence is the next of that producer. One that is remembered with
// the same content is not appended again; it waits for the first one and is answered its offset. Only the main log takes numbered and
// conditional writes, and neither has a Judge.
type Write struct {
	Reply Reply
	Token Token
	Log   Log
	// Batch is what is appended. Before a Judge has filled it, its PayloadBytes say how much the write keeps in memory.
	Batch *batch.Batch
	// HasExpected makes the write conditional: it is appended only if it would begin at Expected. The batch that is compared with is the
	// last one claimed, whether or not it is safe yet.
	HasExpected bool
	Expected    id.Offset
	// AtClaim asks for the answer at the claim, without an offset; a write that fails later is reported by AckedLost. It has no effect
	// on numbered and conditional writes, whose answers are about the log, nor under Options.Blocking, where the answer is what holds
	// a publisher back.
	AtClaim bool
	// Fold hands the batch to the shell, by the effect Fold, before it is readable and answered. Commits are handed over by their kind.
	Fold bool
	// Judge, when not nil, decides at the claim what becomes of the write: whether it is appended, and what. It is called with the offset
	// that the batch would get and the wall clock in Unix milliseconds, after everything that was claimed before is in the Book. It may
	// be called again, and has no side effect but to fill the Batch's Body, Count and PayloadBytes. A write that is held is judged
	// when it is claimed.
	Judge func(base id.Offset, nowMillis uint64) Verdict
}

// Persisted completes the Append of that number at a log, or the Save, which is the main log's: it is safe. A number that is not known,
// because a failure before it voided it or because it is one of Core.Number, changes nothing.
type Persisted struct {
	Log Log
	Seq uint64
}

// PersistedTo completes every Append at a log, and the Save if it is the main log, up to that number: for a log that completes them in
// order and tells the newest only.
type PersistedTo struct {
	Log Log
	Seq uint64
}

// Released says that readers have room for everything below End. Under Options.Blocking the shell answers each Readable with
// it, and gives it again when End has moved; ends do not fall.
type Released struct{ End id.Offset }

// WriteFailed completes an Append that failed; nothing of that log was written from Seq on, and every later claim in it is void. Its next
// Append lands where this one would have. The other logs go on. A Save that failed, of the main log, is tried again.
type WriteFailed struct {
	Log    Log
	Seq    uint64
	Reason string
	// Full says that there was no room: certainly nothing was written, and writes work again once there is room.
	Full bool
}

// Poisoned says that one of the logs, which the others are nothing without, acknowledges nothing any more: a sync failed, and what was on its
// way may or may not be stored. That ends the whole replica; the way back is a new Open.
type Poisoned struct{ Reason string }

// Trimmed says that everything of a log below Base was removed.
type Trimmed struct {
	Log  Log
	Base id.Offset
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
func (LogOpened) input()   {}
func (LogFailed) input()   {}
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
