package shardcore

import (
	"fmt"
	"math"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Options bounds one core.
type Options struct {
	// UnsyncedBytes is how much may be claimed and not yet durable; a write beyond it is refused as overloaded.
	UnsyncedBytes int
	// HoldLimit is how long a write waits in a role that holds before it is refused.
	HoldLimit time.Duration
	// HeldBytes and HeldWrites bound what waits meanwhile.
	HeldBytes  int
	HeldWrites int
	// Duplicates bounds how many numbered writes wait for a batch that was sent before and has no outcome yet; one beyond it is refused
	// as overloaded.
	Duplicates int
	// SaveRetry is the pause before a generation that could not be saved, for lack of space say, is saved again.
	SaveRetry time.Duration
	// Blocking withholds the answer of a write until every reader has room for it: until Released covers it. Writes that wait
	// for that are bounded by the permits their senders hold.
	Blocking bool
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
//  1. every log is in order (logState);
//  2. pending holds, in claim order, exactly the writes that were claimed and have no outcome, and each ends at or below
//     the tail of its log and above what may be answered: the lower of its commit offset and released;
//  3. duplicates wait for batches that end above what may be answered;
//  4. producers has noted exactly the batches of the main log below its durable end that are not trimmed, and claimed holds the
//     numbered batches from there to the tail;
//  5. held is empty unless the role holds.
type Core struct {
	opts    Options
	role    role
	logs    [logCount]logState
	seq     uint64
	claims  []*batch.Batch // claimed in this turn, not yet in an Append
	bytes   int            // of claims
	pending []pendingWrite
	held    []heldWrite
	heldLen int
	// producers is what the durable part of the main log tells of numbered publishes, claimed what the rest will.
	producers  *Producers
	claimed    *claimedRuns
	duplicates []duplicate
	// base is the oldest offset of the main log.
	base id.Offset
	// released is the end of what readers have room for; forAll when nobody is asked.
	released id.Offset
	deadline time.Duration // that was asked for, zero = none
	turn     *turnEffects  // of this turn
	spare    *turnEffects  // of the turn before, to be used again
	serving  bool
	gate     bool
}

// pendingWrite is a write that was claimed. It was answered already if acked is set, and is kept to be counted should it be lost.
type pendingWrite struct {
	reply Reply
	token Token
	batch *batch.Batch
	apply bool
	acked bool
	seq   uint64
}

// turnEffects is what a turn asks for. Two of them take turns, so that a busy shard allocates nothing for its lists.
type turnEffects struct {
	list    []Effect
	answers []*Answers // used[:used] are in list
	used    int
}

func (t *turnEffects) reset() {
	clear(t.list)
	t.list = t.list[:0]
	for _, a := range t.answers[:t.used] {
		clear(a.List)
		a.List = a.List[:0]
	}
	t.used = 0
	if len(t.answers) > answersKept {
		t.answers = t.answers[:answersKept:answersKept]
	}
}

// answersKept is how many lists of answers a core keeps for its next turns.
const answersKept = 4

type heldWrite struct {
	write *Write
	until time.Duration
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

// Serving reports whether this replica serves.
func (c *Core) Serving() bool { return c.serving }

// Tail is the end of what was claimed in the main log.
func (c *Core) Tail() id.Offset { return c.logs[LogMain].tail }

// ProducersSnapshot encodes what the durable part of the main log tells of numbered publishes, to be read by DecodeProducers; asOf is
// where that part ends.
func (c *Core) ProducersSnapshot() (asOf id.Offset, body []byte) {
	return c.logs[LogMain].durable, c.producers.Encode(nil)
}

// Step takes one input. It cannot fail and cannot wait.
func (c *Core) Step(at At, in Input) {
	switch in := in.(type) {
	case *Write:
		c.write(at, in)
	case Persisted:
		c.persisted(at, in.Seq, in.Seq)
	case PersistedTo:
		c.persisted(at, 0, in.Seq)
	case WriteFailed:
		c.writeFailed(at, in)
	case Poisoned:
		c.poisoned(at, in)
	case Released:
		c.release(in.End)
	case Trimmed:
		c.trimmed(in.Base)
	case Open:
		c.open(at, in)
	case Recovered:
		c.recovered(in)
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

// Take returns what must be done for all that was stepped since the last Take. The slice, and the lists of answers in it,
// are valid until the next Take; Step may be called meanwhile.
func (c *Core) Take() []Effect {
	c.flushClaims()
	c.turn, c.spare = c.spare, c.turn
	c.turn.reset()
	return c.spare.list
}

func (c *Core) emit(e Effect) { c.turn.list = append(c.turn.list, e) }

func (c *Core) refuse(w *Write, f *wire.Refusal) {
	c.answer(Answer{Reply: w.Reply, Token: w.Token, Refusal: f})
}

// answer adds to the answers that leave next; those that follow each other leave as one effect.
func (c *Core) answer(a Answer) {
	t := c.turn
	if n := len(t.list); n > 0 {
		if last, ok := t.list[n-1].(*Answers); ok {
			last.List = append(last.List, a)
			return
		}
	}
	if t.used == len(t.answers) {
		t.answers = append(t.answers, &Answers{})
	}
	next := t.answers[t.used]
	t.used++
	next.List = append(next.List, a)
	c.emit(next)
}
