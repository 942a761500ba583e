package shardcore

import (
	"fmt"
	"math"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// Options bounds one core.
type Options struct {
	// UnsyncedBytes is how much may be claimed and not yet durable in all logs together; a write beyond it is refused as overloaded.
	UnsyncedBytes int
	// HoldLimit is how long a write waits in a role that holds before it is refused.
	HoldLimit time.Duration
	// HeldBytes and HeldWrites bound what waits meanwhile.
	HeldBytes  int
	HeldWrites int
	// Duplicates bounds how many writes wait for the outcome of others: numbered ones for a batch that was sent before, judged ones for
	// the claims their verdicts rest on. One beyond it is refused as overloaded.
	Duplicates int
	// SaveRetry is the pause before a generation that could not be saved, for lack of space say, is saved again.
	SaveRetry time.Duration
	// Blocking withholds the answer of a write to the main log until every reader has room for it: until Released covers it. Writes that
	// wait for that are bounded by the permits their senders hold.
	Blocking bool
	// Book is told of the claims that will be folded; nil if nobody asks.
	Book Book
}

// DefaultOptions are the bounds of a shard: 64 MiB claimed and not durable (the largest burst a node admits), and 2 s of
// patience with a role that passes, the time a mover is given before clients are told to come back. 4096 duplicates are the whole
// windows of 64 producers that lost their connections at once.
func DefaultOptions() Options {
	return Options{
		UnsyncedBytes: 64 << 20, HoldLimit: 2 * time.Second, HeldBytes: 8 << 20, HeldWrites: 1024,
		Duplicates: 4096, SaveRetry: time.Second,
	}
}

// Core is one shard replica. It is not safe for concurrent use: its actor owns it.
//
// Invariants, checked after every Step:
//
//  1. every log is in order (logState), and what is pending in it ends above what may be answered: its commit offset or, in the main
//     log, released if that is lower;
//  2. duplicates wait for batches that end above what may be answered;
//  3. producers has noted exactly the batches of the main log below its durable end that are not trimmed, and claimed holds the
//     numbered batches from there to the tail;
//  4. held is empty unless the role holds.
type Core struct {
	opts    Options
	role    role
	logs    [logCount]*logState // nil where nothing was claimed or found yet: most shards have no other than the main one
	seq     uint64
	held    []heldWrite
	heldLen int // bytes
	// producers is what the durable part of the main log tells of numbered publishes, claimed what the rest will.
	producers  *Producers
	claimed    *claimedRuns
	duplicates []duplicate
	waitingLen int            // bytes that the waiting writes of all logs keep
	due        []waitingWrite // to be used again
	// released is the end of what readers of the main log have room for; forAll when nobody is asked.
	released id.Offset
	deadline time.Duration // that was asked for, zero = none
	turn     *turnEffects  // of this turn
	spare    *turnEffects  // of the turn before, to be used again
	serving  bool
	shows    bool // see Serving.Shows
	gate     bool
}

// pendingWrite is a write that was claimed. It was answered already if acked is set, and is kept to be counted should it be lost.
type pendingWrite struct {
	reply Reply
	token Token
	batch *batch.Batch
	fold  bool
	acked bool
}

type heldWrite struct {
	write *Write
	until time.Duration
	size  int
}

// New returns the core of a replica that was not opened yet.
func New(opts Options) *Core {
	c := &Core{opts: opts, role: closed{reason: "not opened yet"}, gate: true, turn: &turnEffects{}, spare: &turnEffects{}}
	c.producers, c.claimed = NewProducers(), newClaimedRuns()
	if !opts.Blocking {
		c.released = forAll
	}
	return c
}

// forAll releases whatever is committed.
const forAll = id.Offset(math.MaxUint64)

// Role is the name of the role played now; Serving says whether requests are served.
func (c *Core) Role() string { return c.role.name() }

// Serving reports whether this replica serves: claims are taken, and everything that is asked is answered.
func (c *Core) Serving() bool { return c.serving }

// log is what is known of a log.
func (c *Core) log(log Log) *logState {
	if c.logs[log] == nil {
		l := &logState{}
		if main := c.logs[LogMain]; main != nil {
			l.generation = main.generation
		}
		c.logs[log] = l
	}
	return c.logs[log]
}

// Tail is the end of what was claimed in a log.
func (c *Core) Tail(log Log) id.Offset { return c.log(log).tail }

// Number returns a number of the series of Append and Save, for an operation of the shell at a log that is neither. It is in order if the
// shell performed every Append it took before: every later Append has a higher one. A completion of it means nothing to the core.
func (c *Core) Number() uint64 {
	c.seq++
	return c.seq
}

// ProducersSnapshot encodes what the durable part of the main log tells of numbered publishes, to be read by DecodeProducers; asOf is
// where that part ends.
func (c *Core) ProducersSnapshot() (asOf id.Offset, body []byte) {
	return c.log(LogMain).durable, c.producers.Encode(nil)
}

// Step takes one input. It cannot fail and cannot wait.
func (c *Core) Step(at At, in Input) {
	switch in := in.(type) {
	case *Write:
		c.write(at, in)
	case Persisted:
		c.persisted(at, in.Log, in.Seq, in.Seq)
	case PersistedTo:
		c.persisted(at, in.Log, 0, in.Seq)
	case WriteFailed:
		c.writeFailed(at, in)
	case Poisoned:
		c.poisoned(at, in)
	case Released:
		c.release(in.End)
	case Trimmed:
		c.trimmed(in)
	case Open:
		c.open(at, in)
	case Recovered:
		c.recovered(in)
	case LogOpened:
		c.logOpened(in)
	case LogFailed:
		c.logFailed(in)
	case OpenFailed:
		c.openFailed(at, in)
	case DiskStalled:
		if r, ok := c.role.(leading); ok {
			c.become(at, waitingForDisk(r), "the disk does not answer")
		}
	case DiskBack:
		if r, ok := c.role.(waitingForDisk); ok {
			c.become(at, leading(r), "the disk answers again")
		}
	case Damaged:
		c.fail(at, damaged{reason: in.Reason}, in.Reason)
	case Drain:
		c.drain(at)
	case Wake:
		c.wake(at)
	default:
		panic(fmt.Sprintf("shardcore: unknown input %T", in))
	}
	c.arm()
	if err := c.check(); err != nil {
		panic("shardcore: after " + fmt.Sprintf("%T", in) + ": " + err.Error())
	}
}
